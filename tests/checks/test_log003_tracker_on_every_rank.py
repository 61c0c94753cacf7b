from msgspec.structs import replace

from accel_checks.log003_tracker_on_every_rank import CHECK
from accel_doctor.evidence.run import Said
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_user_run, sick_user_run

RUN = Said(kind="tracker", site=at(12), count=1, name="wandb.init")


def test_a_tracker_on_every_rank() -> None:
    (finding,) = findings(CHECK, sick_user_run({"said": (RUN,)}))
    assert finding.message == "wandb.init at train.py:12 is called by ranks 0 and 1: 2 runs of one training"
    assert finding.severity.value == "warning"


def test_a_group_of_runs_is_a_note_and_passes() -> None:
    run = sick_user_run({"said": (RUN,)})
    ranks = tuple(replace(r, environment={"WANDB_RUN_GROUP": "a"}) for r in run.world)
    assert outcome(CHECK, replace(run, ranks=ranks)).outcome.value == "passed"


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
