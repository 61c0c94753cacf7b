"""What must hold of every check, whoever wrote it."""

import ast
import re
from pathlib import Path

import pytest

import accel_checks
from accel_doctor.catalogue import checks_of, load_checks
from accel_doctor.check import Check, Severity
from accel_doctor.evidence.exam import EXAM_SUBJECTS
from accel_doctor.testing import healthy_run, outcome

CHECKS = load_checks()
HERE = Path(__file__).parent
SOURCE = Path(accel_checks.__file__).parent


def by_id(check: Check) -> str:
    return check.id


def file_name(check: Check) -> str:
    return f"{check.id.lower()}_{check.name.replace('-', '_')}.py"


def test_the_entry_point_finds_every_check_of_the_package() -> None:
    assert {c.id for c in checks_of(accel_checks)} == {c.id for c in CHECKS}
    files = {p.name for p in SOURCE.glob("[a-z][a-z][a-z][0-9][0-9][0-9]_*.py")}
    assert files == {file_name(c) for c in CHECKS}


@pytest.mark.parametrize("check", CHECKS, ids=by_id)
def test_a_check_is_whole(check: Check) -> None:
    assert re.fullmatch("[A-Z]{3}[0-9]{3}", check.id)
    assert re.fullmatch("[a-z0-9]+(-[a-z0-9]+)*", check.name)
    assert all((check.title, check.why, check.fix, check.judges))
    assert all(t.key.startswith(f"{check.id}.") and t.why for t in check.thresholds)
    subjects = frozenset().union(*EXAM_SUBJECTS.values())
    assert all(need.split(".")[0] in subjects for judge in check.judges for need in judge.needs)


@pytest.mark.parametrize("check", CHECKS, ids=by_id)
def test_a_healthy_run_raises_nothing(check: Check) -> None:
    result = outcome(check, healthy_run())
    assert result.outcome.value in ("passed", "skipped"), result
    assert all(f.severity is Severity.NOTE for f in result.findings)


@pytest.mark.parametrize("check", CHECKS, ids=by_id)
def test_a_check_is_tested_both_ways(check: Check) -> None:
    paths = sorted(HERE.glob(f"test_{file_name(check)[:-3]}*.py"))
    assert paths
    tests = [ast.unparse(n) for p in paths for n in ast.parse(p.read_text()).body if is_test(n)]
    silent = [t for t in tests if re.search(r"== \(\)|== \[\]|'passed'|PASSED|not findings|silent|== 0", t)]
    assert silent, "no test in which it finds nothing"
    assert len(tests) > len(silent), "no test in which it finds something"


def is_test(node: ast.stmt) -> bool:
    return isinstance(node, ast.FunctionDef) and node.name.startswith("test_")


def test_a_consequence_names_a_check_that_exists_or_is_in_the_catalogue_and_never_itself() -> None:
    topics = {"LCH", "RNK", "ENV", "GPU", "NET", "DAT", "LOG", "GRD", "SHD", "MEM", "CKP", "HNG", "SPD", "SRC"}
    for check in CHECKS:
        assert check.id not in check.consequence_of
        assert all(cause[:3] in topics for cause in check.consequence_of)


def test_no_two_checks_explain_each_other_away() -> None:
    causes = {c.id: set(c.consequence_of) for c in CHECKS}
    for check in CHECKS:
        reached: set[str] = set()
        border = set(causes[check.id])
        while border:
            reached |= border
            border = set().union(*(causes.get(c, set()) for c in border)) - reached
        assert check.id not in reached, f"{check.id} is a consequence of its own consequence: {sorted(reached)}"
