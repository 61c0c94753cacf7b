from msgspec.structs import replace

from accel_checks.log004_file_written_by_every_rank import CHECK
from accel_doctor.evidence.run import Written
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_user_run, sick_user_run

PATH = Written(path="out/log.jsonl", site=at(12), how="append", collective=3)


def test_one_file_written_by_every_rank() -> None:
    (finding,) = findings(CHECK, sick_user_run({"written": (PATH,)}))
    assert finding.location is not None
    assert finding.location.line == 12
    assert finding.message.startswith("out/log.jsonl is written by ranks 0 and 1 at train.py:12")


def test_ranks_that_write_in_turn_between_barriers_are_fine() -> None:
    assert findings(CHECK, sick_user_run({"written": (PATH,)}, written=(replace(PATH, collective=4),))) == ()


def test_another_kind_of_file_is_not_a_matter_of_this_check() -> None:
    assert (
        findings(CHECK, sick_user_run({"written": (Written(path="out/last.pt", site=at(12), how="open", step=3),)}))
        == ()
    )


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
