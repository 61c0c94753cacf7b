import msgspec

from accel_checks.lch003_disconnected_ranks import CHECK
from accel_doctor.testing import findings, healthy_rank, healthy_run, outcome


def test_two_processes_that_each_think_they_are_alone() -> None:
    alone = tuple(
        msgspec.structs.replace(r, group=msgspec.structs.replace(healthy_rank(0, 1).group, world_size=1))
        for r in healthy_run().world
    )
    (finding,) = findings(CHECK, healthy_run(ranks=alone))
    assert finding.message == "2 processes were started and each believes it is alone: 2 separate runs of world size 1"
    assert finding.ranks == (0, 1)
    assert "2 main processes" in finding.seen


def test_one_process_alone_is_no_fault() -> None:
    assert findings(CHECK, healthy_run(ranks=(healthy_rank(0, 1),))) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"
