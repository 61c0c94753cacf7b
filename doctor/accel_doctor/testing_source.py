"""Evidence of scripts for tests: a text, read as the lint reads it."""

from accel_doctor.catalogue import load_checks
from accel_doctor.check import Finding
from accel_doctor.diagnose import Diagnosis, diagnose
from accel_doctor.evidence import Asked, Evidence
from accel_doctor.exams.lint import examine


def read(text: str) -> Evidence:
    """Return what a script's text shows."""
    return examine(["-"], text.encode(), Asked())


def lint(text: str) -> Diagnosis:
    """Return the whole diagnosis of a script's text."""
    return diagnose(read(text), load_checks())


def said(text: str) -> dict[tuple[str, int], Finding]:
    """Return the findings on a script's text that are no notes, by id and line."""
    return {
        (result.id, finding.location.line or 0): finding
        for result in lint(text).results
        for finding in result.findings
        if finding.location is not None and finding.severity.value != "note"
    }
