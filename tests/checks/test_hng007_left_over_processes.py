import msgspec

from accel_checks.hng007_left_over_processes import CHECK
from accel_doctor.evidence import Evidence, LeftOver
from accel_doctor.testing import findings, healthy_host, healthy_run, outcome

RANK = LeftOver(
    pid=411,
    kind="rank",
    command="python train.py",
    rank=0,
    run="127.0.0.1:29500",
    started_s=100.0 - 7200,
    memory_bytes=2**30,
)


def with_left_over(*processes: LeftOver) -> Evidence:
    return healthy_run(hosts=(msgspec.structs.replace(healthy_host(), left_over=processes),))


def test_processes_of_one_run_are_one_finding() -> None:
    second = msgspec.structs.replace(RANK, pid=412, rank=1)
    worker = msgspec.structs.replace(RANK, pid=413, kind="worker")
    (finding,) = findings(CHECK, with_left_over(RANK, second, worker))
    assert finding.message == (
        "2 ranks and 1 worker of an earlier run are still alive: pid 411, 412, 413 (python train.py), started 2.0 h ago"
    )
    assert finding.seen == "3 GiB of memory held, rank 0, 1"
    assert finding.command == "kill 411 412 413"
    assert outcome(CHECK, with_left_over(RANK)).outcome.value == "warned"


def test_two_runs_are_two_findings() -> None:
    assert len(findings(CHECK, with_left_over(RANK, msgspec.structs.replace(RANK, pid=9, run="127.0.0.1:29501")))) == 2


def test_unread_processes_are_not_judged() -> None:
    host = msgspec.structs.replace(healthy_host(), left_over=None)
    assert outcome(CHECK, healthy_run(hosts=(host,))).outcome.value == "skipped"


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"
