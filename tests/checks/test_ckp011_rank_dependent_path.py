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


def state(*paths: str) -> dict[str, object]:
    return {"written": tuple(Written(path=path, site=at(16), via="save_state") for path in paths)}


def test_a_folder_of_its_own_for_the_state_of_each_rank() -> None:
    own = state("runs/0612-479/ep0/random_states_1.pkl")
    run = sick_user_run(state("runs/0612-483/ep0/model.safetensors", "runs/0612-483/ep0/random_states_0.pkl"), **own)
    assert len(findings(CHECK, run)) == 1


def test_one_folder_for_the_state_of_all_ranks() -> None:
    own = state("runs/0612-483/ep0/random_states_1.pkl")
    run = sick_user_run(state("runs/0612-483/ep0/model.safetensors", "runs/0612-483/ep0/random_states_0.pkl"), **own)
    assert findings(CHECK, run) == ()


def test_other_names_are_not_one_path() -> None:
    assert findings(CHECK, sick_user_run(written("out/train.txt"), **written("out/test.txt"))) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
