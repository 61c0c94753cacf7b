import pytest
from msgspec.structs import replace

from accel_checks.hng002_rank_dependent_collective import CHECK as HNG002
from accel_checks.hng004_killed_rank import CHECK
from accel_doctor.evidence import Evidence, LoopExit, RankEnd, SiteCode, Watch
from accel_doctor.evidence.run import Failure, Position
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_traced_rank, healthy_user_run
from log_evidence import evidence_of
from log_texts import QUIET, SICK


def test_a_rank_that_the_kernel_killed_is_named_with_its_memory() -> None:
    (finding,) = findings(CHECK, evidence_of(SICK["killed by the kernel"].text))
    assert finding.ranks == (1,)
    assert "1126360kB" in finding.message
    assert finding.location is not None
    assert finding.fix


def test_it_is_silent_where_another_fault_or_none_is_told() -> None:
    assert findings(CHECK, evidence_of(SICK["an exit code alone"].text)) == ()
    result = outcome(CHECK, evidence_of(QUIET["a healthy run with alarming words"]))
    assert (result.outcome.value, result.findings) == ("skipped", ())
    assert result.reason == "nothing in it tells of a failure"


def killed(number: int, **seen: int) -> Evidence:
    position = Position(phase="collective", op="barrier", site=at(44), steps=7, since_s=100.0)
    rank = replace(
        healthy_traced_rank(1, position=position, steps=7),
        end=RankEnd(how="signal", signal=number, at_s=100.0),
        watch=Watch(state="", **seen),
    )
    return healthy_user_run(ranks=(healthy_traced_rank(0), rank))


@pytest.mark.parametrize(
    ("number", "seen", "why"),
    [
        (9, {"group_oom_kills": 1, "memory_limit_bytes": 2**30}, "under its control group's limit of 1 GiB"),
        (9, {"host_oom_kills": 2}, "the kernel killed processes of this host for want of memory"),
        (9, {"group_oom_kills": 0, "host_oom_kills": 0}, "so somebody sent it"),
        (9, {}, "the kernel for want of memory, a scheduler's limit, or somebody"),
        (11, {}, "compiled code touched memory"),
        (10, {}, "somebody or something sent it"),
    ],
)
def test_a_killed_rank_of_a_run_is_named_with_its_place_and_the_reason(
    number: int, seen: dict[str, int], why: str
) -> None:
    (finding,) = findings(CHECK, killed(number, **seen))
    assert finding.ranks == (1,)
    assert "in barrier at train.py:44, after 7 optimizer steps" in finding.message
    assert why in finding.message
    assert finding.values["signal"] == number


def test_a_backend_that_aborts_because_a_peer_left_the_loop_is_no_death_of_its_own() -> None:
    loop = SiteCode(
        site=at(30),
        loop_line=30,
        loop_end_line=36,
        exits=(LoopExit(line=36, condition_line=35, condition="bad > 3", skips=False),),
    )
    gone = Failure(kind="RuntimeError", message="Connection reset by peer", at_s=100.1, site=at(33), peer_gone=True)
    position = Position(phase="collective", op="all_reduce", site=at(44), since_s=100.0)
    first = healthy_traced_rank(0, failure=gone)
    aborted = replace(
        healthy_traced_rank(1, position=position, loaders=()), end=RankEnd(how="signal", signal=6, at_s=100.0)
    )
    run = healthy_user_run(ranks=(first, aborted), code=(loop,))
    assert findings(CHECK, run) == ()
    (finding,) = findings(HNG002, run)
    assert finding.ranks == (1,)
    assert finding.location is not None
    assert finding.location.line == 35
    forward = replace(aborted, trace=healthy_traced_rank(1, position=replace(position, phase="forward")).trace)
    assert len(findings(CHECK, healthy_user_run(ranks=(first, forward), code=(loop,)))) == 1


def test_ranks_that_end_well_or_were_stopped_are_not_killed() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
    stopped = replace(healthy_traced_rank(1), end=RankEnd(how="stopped", signal=9))
    assert findings(CHECK, healthy_user_run(ranks=(healthy_traced_rank(0), stopped))) == ()
