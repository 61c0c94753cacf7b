"""CKP005: a saved state has the wrapper's prefix in its keys."""

from collections.abc import Iterator

from accel_checks._lint_ranks import CKP005
from accel_checks._log import from_log
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.traces import place, traced, where


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find states that were saved with keys of DistributedDataParallel or torch.compile."""
    ranks = traced(evidence)
    saved = {w.site: w for t in ranks for w in t.trace.written if w.keys_prefix}
    if not any(w.how in ("torch.save", "safetensors") for t in ranks for w in t.trace.written):
        raise NotApplicable("no state was saved")
    for site, written in sorted(saved.items(), key=lambda pair: str(pair[0])):
        yield Finding(
            message=f"{written.path}, saved at {where(site)}, has keys that begin with {written.keys_prefix!r}: it "
            "is the "
            "wrapper's state, and does not load into the model",
            severity=Severity.WARNING,
            seen=f"keys {written.keys_prefix}…",
            wanted="the model's own keys",
            ranks=ranks_of([t.rank for t in ranks if any(w.path == written.path for w in t.trace.written)]),
            location=place(site),
        )


CHECK = Check(
    id="CKP005",
    name="wrapped-keys-saved",
    invariant=Invariant.EQUAL,
    title="A saved state has the wrapper's prefix in its keys",
    why="It loads only into a model that is wrapped in the same way; with strict=False it loads nothing, silently.",
    fix="save accelerator.unwrap_model(model).state_dict(), or model.module.state_dict()",
    judges=(Judge(needs=("ranks.trace",), judge=judge), CKP005, from_log("CKP005")),
    severity=Severity.WARNING,
)
