from msgspec.structs import replace

from accel_checks.net001_wrong_collective_result import CHECK
from accel_doctor.evidence import WrongResult
from accel_doctor.testing import findings, healthy_rank, healthy_run, outcome, sick_rank

SWEEP = healthy_rank(1).sweep


def wrong(op: str, size_bytes: int) -> WrongResult:
    return WrongResult(op=op, size_bytes=size_bytes, wanted=3.0, got=4.0)


def test_one_finding_a_collective_with_the_smallest_size_and_the_ranks() -> None:
    assert SWEEP
    seen = (wrong("all_reduce", 2**20), wrong("all_reduce", 1024), wrong("broadcast", 1024))
    first, second = findings(CHECK, sick_rank(1, sweep=replace(SWEEP, wrong=seen)))
    assert first.message == "all_reduce returned wrong values on rank 1: 4 instead of 3 on rank 1 with 1024 bytes"
    assert first.ranks == (1,)
    assert first.values == {"wrong_results": 2, "checked_results": 18, "size_bytes": 1024}
    assert second.message.startswith("broadcast returned wrong values on rank 1")


def test_what_is_no_number_is_said_by_its_name() -> None:
    assert SWEEP
    nan = WrongResult(op="all_reduce", size_bytes=1024, wanted=3.0, got="nan")
    (finding,) = findings(CHECK, sick_rank(1, sweep=replace(SWEEP, wrong=(nan,))))
    assert finding.message.endswith("rank 1: nan instead of 3 on rank 1 with 1024 bytes")
    assert finding.seen == "nan"


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"
