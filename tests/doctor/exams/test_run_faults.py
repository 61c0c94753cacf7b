"""Each fault of the list on two real ranks: the right rank, line and check, in time, and no process left."""

from pathlib import Path

import pytest

from fault_injector import (
    ALONE,
    CATCH_LINE,
    CATCHES,
    FAULT_LINE,
    FAULTS,
    HEALTHY,
    STALL_S,
    Fault,
    Told,
    examine,
    script,
)

pytestmark = pytest.mark.ranks
CHEAP = ("an exception",)
GRACE_S = 5.0
OTHERS_S = 90.0
"""What a slow or shared machine may take on top."""


def check(told: Told, fault: Fault) -> None:
    assert set(told.failed) <= set(fault.ids.split()), told.failed
    assert told.failed, told.output
    (findings,) = told.failed.values()
    (finding,) = findings
    if not fault.either:
        assert finding["ranks"] == [1], finding
    line = (finding["location"] or {}).get("line")
    assert line == FAULT_LINE if fault.line else line in (None, FAULT_LINE), finding
    assert told.after_s < STALL_S + GRACE_S + OTHERS_S
    assert told.left == []


@pytest.mark.parametrize("name", [n if n in CHEAP else pytest.param(n, marks=pytest.mark.slow) for n in FAULTS])
def test_a_fault_is_named_with_its_rank_and_line(name: str, tmp_path: Path) -> None:
    check(examine(tmp_path, script(FAULTS[name])), FAULTS[name])


@pytest.mark.slow
@pytest.mark.parametrize("handles", ["pass", "print('skipped')"])
def test_an_error_that_one_rank_catches_is_the_cause_of_what_comes_after(handles: str, tmp_path: Path) -> None:
    told = examine(tmp_path, CATCHES.replace("WHO", "sick").replace("HANDLES", handles))
    failed = told.failed
    assert "HNG008" in failed, (failed, told.output)
    (finding,) = failed.pop("HNG008")
    assert failed.keys() <= {"LOG001"}, failed
    assert finding["ranks"] == [1]
    assert finding["location"]["line"] == CATCH_LINE
    assert told.left == []


@pytest.mark.slow
@pytest.mark.parametrize(("limit", "severity"), [(20, "warning"), (6, "error"), (600, "")])
def test_a_rank_that_works_alone_is_weighed_against_the_timeout(limit: int, severity: str, tmp_path: Path) -> None:
    told = examine(tmp_path, ALONE.replace("LIMIT", f"timedelta(seconds={limit})"), stall_s=30)
    failed = told.failed
    found = failed.pop("HNG006", [])
    assert [f["severity"] for f in found] == ([severity] if severity else [])
    assert [f["ranks"] for f in found] == ([[0]] if severity else [])
    assert failed == {}, failed
    assert told.left == []


@pytest.mark.slow
def test_the_healthy_twin_is_silent(tmp_path: Path) -> None:
    told = examine(tmp_path, script(HEALTHY))
    assert told.failed == {}, told.failed
    assert told.report["command"]["exit_code"] == 0
    assert told.left == []
