import msgspec

from accel_checks.lch003_disconnected_ranks import CHECK
from accel_doctor.check import Location
from accel_doctor.testing import findings, healthy_rank, healthy_run, outcome
from launch_records import launch, setting

ALONE = tuple(msgspec.structs.replace(r, group=healthy_rank(0, 1).group) for r in healthy_run().world)


def test_two_processes_that_each_think_they_are_alone() -> None:
    (finding,) = findings(CHECK, healthy_run(ranks=ALONE))
    assert finding.message == "2 processes were started and each believes it is alone: 2 separate runs of world size 1"
    assert finding.ranks == (0, 1)
    assert "2 main processes" in finding.seen


def test_a_config_that_names_the_type_is_where_to_look() -> None:
    sick = launch(settings={"distributed_type": setting("MULTI_GPU", "c.yaml:3")})
    (finding,) = findings(CHECK, healthy_run(ranks=ALONE, launch=sick))
    assert finding.location == Location(path="c.yaml", line=3)


def test_it_follows_from_a_torch_that_cannot_use_the_devices() -> None:
    assert "ENV013" in CHECK.consequence_of


def test_one_process_alone_is_no_fault() -> None:
    assert findings(CHECK, healthy_run(ranks=(healthy_rank(0, 1),))) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"
