from accel_checks.ckp011_rank_dependent_path import CHECK
from accel_doctor.evidence.run import Written
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_user_run, sick_user_run


def written(path: str) -> dict[str, object]:
    return {"written": (Written(path=path, site=at(16)),)}


def test_a_directory_of_its_own_on_each_rank() -> None:
    run = sick_user_run(written("runs/run-1796079459123-1000/a.json"), **written("runs/run-1796079459456-1001/a.json"))
    (finding,) = findings(CHECK, run)
    assert finding.location is not None
    assert finding.location.line == 16


def test_the_number_of_the_rank_in_the_name_is_fine() -> None:
    assert findings(CHECK, sick_user_run(written("out/part_0.pt"), **written("out/part_1.pt"))) == ()


def test_other_names_are_not_one_path() -> None:
    assert findings(CHECK, sick_user_run(written("out/train.txt"), **written("out/test.txt"))) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
