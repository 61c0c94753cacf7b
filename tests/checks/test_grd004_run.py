from accel_checks.grd004_diverged_replicas import CHECK
from accel_doctor.evidence.run import Replica
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import healthy_user_run, sick_user_run


def test_parameters_that_differ_after_a_step() -> None:
    other = (Replica(step=1, parameters=1001), Replica(step=2, parameters=5))
    (finding,) = findings(CHECK, sick_user_run(replicas=other))
    assert finding.values == {"step": 2}


def test_shards_are_not_compared_and_no_fault() -> None:
    shards = (Replica(step=1, parameters=5, sharded=True),)
    assert outcome(CHECK, sick_user_run({"replicas": shards})).outcome.value == "skipped"


def test_replicas_part_by_design_under_local_sgd() -> None:
    other = (Replica(step=1, parameters=1001), Replica(step=2, parameters=5))
    assert outcome(CHECK, sick_user_run({"local_sgd": True}, replicas=other)).outcome.value == "skipped"


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
