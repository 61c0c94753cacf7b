"""One line a finding, as editors and terminals link them: ``path:line:column ID name message``."""

from accel_doctor.check import Finding, Severity
from accel_doctor.diagnose import Diagnosis, Outcome, Result

SHOWN = (Outcome.FAILED, Outcome.WARNED, Outcome.BROKEN)


def render(diagnosis: Diagnosis, *, verbosity: int = 0) -> str:
    """Return the findings in order of place, each with what it was seen by, and the verdict."""
    found = [(r, f) for r in diagnosis.results if r.outcome in SHOWN or verbosity > 0 for f in r.findings]
    found = [(r, f) for r, f in found if f.severity is not Severity.NOTE or verbosity > 0]
    lines = [_line(r, f, verbosity) for r, f in sorted(found, key=_place)]
    lines += [f"{r.id} {r.name} is broken: {r.reason}\n" for r in diagnosis.results if r.outcome is Outcome.BROKEN]
    return "".join(lines) + _verdict(diagnosis, [f for _, f in found])


def _place(pair: tuple[Result, Finding]) -> tuple[str, int, int, str]:
    result, finding = pair
    at = finding.location
    return (at.path, at.line or 0, at.column or 0, result.id) if at else ("", 0, 0, result.id)


def _line(result: Result, finding: Finding, verbosity: int) -> str:
    at = finding.location
    where = ":".join(str(part) for part in (at.path, at.line, at.column) if part is not None) if at else "-"
    text = f"{where} {result.id} {result.name} {finding.message}\n"
    if verbosity < 0:
        return text
    facts = (("seen", finding.seen), ("wanted", finding.wanted), ("fix", finding.fix if verbosity > 0 else ""))
    return text + "".join(f"    {label} {said}\n" for label, said in facts if said)


def _verdict(diagnosis: Diagnosis, findings: list[Finding]) -> str:
    errors = sum(f.severity is Severity.ERROR for f in findings)
    warnings = sum(f.severity is Severity.WARNING for f in findings)
    files = len(diagnosis.evidence.source.files) if diagnosis.evidence.source else 0
    why = f" ({'; '.join(diagnosis.why_incomplete[:3])})" if diagnosis.why_incomplete else ""
    counts = f"{_count(errors, 'error')}, {_count(warnings, 'warning')}, {_count(files, 'file')}"
    return f"{diagnosis.verdict.value.upper()}  {counts}{why}\n"


def _count(number: int, word: str) -> str:
    return f"{number} {word}" if number == 1 else f"{number} {word}s"
