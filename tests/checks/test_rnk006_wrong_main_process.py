from msgspec.structs import replace

from accel_checks.rnk006_wrong_main_process import CHECK
from accel_doctor.evidence import Evidence, Guards, Rank, RankEnd
from accel_doctor.testing import changed, findings, healthy_rank, healthy_run, outcome
from accel_doctor.testing_trace import healthy_traced_rank, healthy_user_run

ALL = Guards(accelerator_print=1, logger=1, on_main=1, on_local_main=1)
NONE = Guards(accelerator_print=0, logger=0, on_main=0, on_local_main=0)
ONLY_LOCAL = Guards(accelerator_print=1, logger=0, on_main=0, on_local_main=1)


def rank(number: int, guards: Guards, **group: object) -> Rank:
    return replace(changed(healthy_rank(number), "group", **group), guards=guards)


def run(*ranks: Rank) -> Evidence:
    return healthy_run(ranks=ranks)


def test_two_local_main_processes_on_one_host() -> None:
    evidence = run(healthy_rank(0), replace(rank(1, ONLY_LOCAL, is_local_main=True, local_rank=0), local_rank=0))
    (finding,) = findings(CHECK, evidence)
    assert finding.message == (
        "ranks 0 and 1 take themselves for the local main process of ws1: 2 of 2 ranks, and it must be 1"
    )
    assert finding.host == "ws1"
    assert finding.ranks == (0, 1)
    assert "rank 1 has LOCAL_RANK 0" in finding.evidence[0]


def test_two_main_processes_of_the_world() -> None:
    first, second = findings(CHECK, run(healthy_rank(0), rank(1, ALL, is_main=True, is_local_main=True)))
    assert first.message.startswith("ranks 0 and 1 take themselves for the main process of the world")
    assert first.values == {"main_processes": 2, "ranks": 2}
    assert second.message.startswith("ranks 0 and 1 take themselves for the local main process of ws1")


def test_no_main_process_is_a_finding_once_every_rank_was_seen() -> None:
    nobody = run(*(rank(n, NONE, is_main=False, is_local_main=False) for n in range(2)))
    assert findings(CHECK, nobody)[0].message.startswith("no rank takes itself for the main process of the world")
    unseen = run(rank(1, NONE, is_main=False, is_local_main=False))
    assert findings(CHECK, unseen) == ()


def test_a_guard_that_lets_another_rank_through_is_named() -> None:
    talkative = replace(NONE, logger=1)
    (finding,) = findings(CHECK, run(healthy_rank(0), rank(1, talkative)))
    assert finding.message == "get_logger().info ran 1 times on rank 1 and must have run 0 times by is_main"


def test_one_local_main_process_on_each_of_two_hosts_is_right() -> None:
    other = rank(1, ONLY_LOCAL, is_local_main=True, local_rank=0)
    assert findings(CHECK, run(healthy_rank(0), replace(other, host="ws2", local_rank=0))) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"


def together(first: int, second: int, port: str = "29500", started_s: float = 100.5) -> Evidence:
    """Return two processes of a run with these RANKs; the second meets at a port, and starts at a time."""
    ranks = [
        replace(
            healthy_traced_rank(number),
            pid=pid,
            environment={"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": meets},
            started_s=at_s,
            end=RankEnd(how="finished", at_s=at_s + 9),
        )
        for pid, number, meets, at_s in ((1, first, "29500", 100.0), (2, second, port, started_s))
    ]
    return healthy_user_run(ranks=tuple(ranks))


def test_two_processes_with_one_rank_in_a_run() -> None:
    (finding,) = findings(CHECK, together(0, 0))
    assert finding.message == (
        "2 processes of one world of 2, which meets at 127.0.0.1:29500, have RANK=0: another number is missing, and "
        "the others wait for it"
    )
    assert finding.values == {"processes": 2, "world_size": 2}


def test_one_rank_twice_is_no_fault_in_two_worlds_or_one_after_the_other() -> None:
    assert outcome(CHECK, together(0, 1)).outcome.value == "passed"
    assert findings(CHECK, together(0, 0, port="29501")) == ()
    assert findings(CHECK, together(0, 0, started_s=200.0)) == ()
