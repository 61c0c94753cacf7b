from msgspec.structs import replace

from accel_checks.ckp003_checkpoint_written_by_every_rank import CHECK
from accel_checks.log004_file_written_by_every_rank import CHECK as LOG004
from accel_doctor.evidence.run import Written
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_user_run, sick_user_run

PATH = Written(path="out/last.pt", site=at(12), how="torch.save", collective=3, step=3)


def test_one_file_written_by_every_rank() -> None:
    (finding,) = findings(CHECK, sick_user_run({"written": (PATH,)}))
    assert finding.location is not None
    assert finding.location.line == 12
    assert finding.message.startswith("out/last.pt is written by ranks 0 and 1 at train.py:12")


def test_ranks_that_write_in_turn_between_barriers_are_fine() -> None:
    assert findings(CHECK, sick_user_run({"written": (PATH,)}, written=(replace(PATH, collective=4),))) == ()


def test_data_made_ready_before_the_first_step_are_no_checkpoint() -> None:
    run = sick_user_run({"written": (replace(PATH, step=0),)})
    assert findings(CHECK, run) == ()
    assert len(findings(LOG004, run)) == 1


def test_another_kind_of_file_is_not_a_matter_of_this_check() -> None:
    assert findings(CHECK, sick_user_run({"written": (Written(path="out/log.txt", site=at(12), how="open"),)})) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
