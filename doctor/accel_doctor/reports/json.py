"""The report for programs: one JSON object, the same keys every time, versioned apart from the evidence."""

import msgspec

from accel_doctor.check import Finding, Invariant, Location, Severity
from accel_doctor.diagnose import Diagnosis, Outcome, Result, Verdict
from accel_doctor.evidence import Evidence, Launch, Value
from accel_doctor.evidence.file import encode

SCHEMA_VERSION = 1


class ReportedFinding(msgspec.Struct, frozen=True):
    """One thing that is wrong. ``seen`` and ``wanted`` are for people; the numbers are in ``values``."""

    message: str
    severity: Severity
    seen: str
    wanted: str
    values: dict[str, float]
    """Units are in the names."""
    fix: str
    command: str
    """The line to type; empty where there is none."""
    ranks: tuple[int, ...]
    host: str
    location: Location | None
    evidence: tuple[str, ...]


class ReportedCheck(msgspec.Struct, frozen=True):
    """One check of the exam and what became of it."""

    id: str
    name: str
    invariant: Invariant
    outcome: Outcome
    reason: str
    """Why it was skipped or is broken, else empty."""
    findings: tuple[ReportedFinding, ...]


class ReportedSetting(msgspec.Struct, frozen=True):
    """A launch setting in force, and where its value came from."""

    value: Value
    source: str


class ReportedCommand(msgspec.Struct, frozen=True):
    """What was launched and how it ended: by an exit code or by a signal."""

    argv: tuple[str, ...]
    exit_code: int | None
    signal: int | None


class Report(msgspec.Struct, frozen=True):
    """The report of one exam. Paths are relative to the working directory of the exam."""

    schema_version: int
    doctor_version: str
    exam: str
    verdict: Verdict
    exit_code: int
    run_dir: str | None
    checks: tuple[ReportedCheck, ...]
    launch: dict[str, ReportedSetting] | None
    command: ReportedCommand | None
    timings: dict[str, float]
    """Seconds."""


def render(diagnosis: Diagnosis) -> str:
    """Return the report as indented JSON."""
    return msgspec.json.format(encode(report(diagnosis)), indent=2).decode() + "\n"


def report(diagnosis: Diagnosis) -> Report:
    """Return what the JSON holds."""
    evidence = diagnosis.evidence
    return Report(
        schema_version=SCHEMA_VERSION,
        doctor_version=diagnosis.doctor_version,
        exam=evidence.exam,
        verdict=diagnosis.verdict,
        exit_code=diagnosis.exit_code,
        run_dir=evidence.run_dir,
        checks=tuple(_check(result) for result in diagnosis.results),
        launch=_settings(evidence.launch),
        command=_command(evidence),
        timings=evidence.timings,
    )


def _check(result: Result) -> ReportedCheck:
    return ReportedCheck(
        id=result.id,
        name=result.name,
        invariant=Invariant(result.invariant),
        outcome=result.outcome,
        reason=result.reason,
        findings=tuple(_finding(finding) for finding in result.findings),
    )


def _finding(finding: Finding) -> ReportedFinding:
    return ReportedFinding(**{name: getattr(finding, name) for name in ReportedFinding.__struct_fields__})


def _settings(launch: Launch | None) -> dict[str, ReportedSetting] | None:
    if launch is None:
        return None
    return {name: ReportedSetting(setting.value, setting.source) for name, setting in launch.settings.items()}


def _command(evidence: Evidence) -> ReportedCommand | None:
    if evidence.launch is None or evidence.ending is None:
        return None
    return ReportedCommand(evidence.launch.argv, evidence.ending.exit_code, evidence.ending.signal)
