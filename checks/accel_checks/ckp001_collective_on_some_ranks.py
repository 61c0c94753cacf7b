"""CKP001: a checkpoint operation that needs every rank is reached by some."""

from collections.abc import Iterator

from accel_checks._lint_ranks import CKP001
from accel_doctor.check import Check, Finding, Invariant, Judge, Severity, names, ranks_of
from accel_doctor.evidence import Evidence, Site
from accel_doctor.evidence.run import Called
from accel_doctor.hang import SAVES, explain
from accel_doctor.traces import code_of, place, several, where

SHARDED = ("FSDP", "DEEPSPEED", "MEGATRON_LM")


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find ranks that wait in a save or load for those that never come, and saves that only some ranks made."""
    several(evidence)
    hang = explain(evidence)
    if hang is not None and hang.id == "CKP001":
        yield Finding(
            message=hang.message,
            seen="; ".join(hang.evidence),
            wanted="the call on every rank",
            ranks=hang.ranks,
            location=hang.location,
        )
    elif hang is None:
        yield from _made_by_some(evidence)


def _made_by_some(evidence: Evidence) -> Iterator[Finding]:
    ranks = several(evidence)
    sites = {(c.op, c.site) for t in ranks for c in t.trace.called if c.op in SAVES - {"save"} and c.site}
    sharded = evidence.launch is not None and evidence.launch.strategy in SHARDED
    for op, site in sorted(sites, key=str):
        counts = [_count(t.trace.called, op, site) for t in ranks]
        if min(counts) == 0 and not any(t.trace.failure for t in ranks):
            callers = [t.rank for t, n in zip(ranks, counts, strict=True) if n]
            lost = "the ranks wait for ever" if sharded else "the other ranks' random states are lost"
            code = code_of(evidence, site)
            guard = f" (guard at line {code.guard_line})" if code and code.guard_line else ""
            yield Finding(
                message=f"{op} at {where(site)} is called by {names(callers)} only{guard}: {lost}",
                severity=Severity.ERROR if op in ("save_state", "load_state") or sharded else Severity.WARNING,
                seen=f"{max(counts)} calls on {names(callers)}, none on the others",
                wanted="the same calls on every rank",
                ranks=ranks_of(callers),
                location=place(site),
                values={"calls_max": max(counts), "calls_min": 0},
            )


def _count(called: tuple[Called, ...], op: str, site: Site | None) -> int:
    return sum(c.count for c in called if c.op == op and c.site == site)


CHECK = Check(
    id="CKP001",
    name="collective-on-some-ranks",
    invariant=Invariant.PRESENT,
    title="A checkpoint operation that needs every rank is reached by some",
    why="save_state, load_state and get_state_dict hold collectives, and every rank saves its own random state: the "
    "ranks that call wait for those that do not, or their state is lost.",
    fix="call it on every rank, outside of the guard: accelerate writes shared files on the main process by itself",
    judges=(Judge(needs=("ranks.trace",), judge=judge), CKP001),
    consequence_of=("LCH003", "RNK005"),
)
