from accel_checks.dat002_loader_sharded_twice import CHECK
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import healthy_loader, healthy_user_run, sick_user_run

TWICE = healthy_loader(sharded_by=("BatchSamplerShard", "DistributedSampler"))


def test_a_distributed_sampler_below_prepare() -> None:
    (finding,) = findings(CHECK, sick_user_run({"loaders": (TWICE,)}))
    assert finding.location is not None
    assert finding.location.line == 25
    assert "DistributedSampler below BatchSamplerShard" in finding.message


def test_a_part_of_its_own_on_each_rank() -> None:
    run = sick_user_run({"loaders": (healthy_loader(subset=(1, 2)),)}, loaders=(healthy_loader(subset=(3, 4)),))
    assert len(findings(CHECK, run)) == 1


def test_one_split_for_all_ranks_is_fine() -> None:
    assert findings(CHECK, sick_user_run({"loaders": (healthy_loader(subset=(1, 2)),)})) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
