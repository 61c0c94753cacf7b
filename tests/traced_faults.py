"""What the checks of a script's topics say of a run."""

from accel_doctor.catalogue import load_checks
from accel_doctor.diagnose import Diagnosis, Outcome, diagnose
from accel_doctor.evidence import Evidence

TOPICS = ("LCH", "RNK", "DAT", "LOG", "GRD", "SHD", "CKP", "HNG", "SPD")


def faults(evidence: Evidence) -> dict[str, list[int | None]]:
    """Return the lines that each check of a script's topic names."""
    diagnosis: Diagnosis = diagnose(evidence, load_checks())
    bad = [r for r in diagnosis.results if r.outcome is not Outcome.PASSED and r.id.startswith(TOPICS)]
    assert not [r for r in bad if r.outcome is Outcome.BROKEN], bad
    fired = [r for r in bad if r.outcome in (Outcome.FAILED, Outcome.WARNED)]
    return {r.id: [f.location.line if f.location else None for f in r.findings] for r in fired}
