"""Why ranks wait for each other: one explanation, in the order of the catalogue. Pure."""

import re
import signal

from accel_doctor.check import names
from accel_doctor.evidence import Evidence
from accel_doctor.hang.calls import SAVES, early_exit, one_sided, save_on_some, sequence
from accel_doctor.hang.loops import left_loop, skipped, uneven
from accel_doctor.hang.standing import Hang, Standing, is_frozen, numbers_of, standing_of, told
from accel_doctor.traces import Traced, place, traced

__all__ = ["MISMATCH", "SAVES", "Hang", "explain"]

MISMATCH = re.compile(r"op\.preamble|EnforceNotMet|gloo/|collective|Mismatch|mismatch", re.IGNORECASE)


def explain(evidence: Evidence) -> Hang | None:
    """Return the one explanation of a standstill, or of ranks that lost each other; ``None`` where there was none."""
    ranks = traced(evidence)
    if len(ranks) < 2 or not _apart(evidence, ranks):
        return None
    standing = [standing_of(t) for t in ranks]
    if any(is_frozen(s) for s in standing):
        return _stalled(standing)
    explanations = (save_on_some, uneven, left_loop, skipped, sequence, one_sided, early_exit)
    found = (explanation(evidence, standing, ranks) for explanation in explanations)
    return next((hang for hang in found if hang is not None), None) or _stalled(standing)


def _apart(evidence: Evidence, ranks: list[Traced]) -> bool:
    """Return whether the ranks lost each other, and not one its process: that is told by how it ended."""
    stalled = evidence.stall is not None and evidence.stall.stalled
    dead = [t for t in ranks if t.rank.end is not None and t.rank.end.how in ("signal", "exit")]
    if dead:
        return all(_aborted_by_peers(t) for t in dead)
    failures = [t.trace.failure for t in ranks if t.trace.failure is not None]
    lost = [f for f in failures if f.peer_gone or MISMATCH.search(f.message)]
    own = [f for f in failures if f not in lost]
    return stalled or (bool(lost) and not own)


def _aborted_by_peers(t: Traced) -> bool:
    """Return whether a rank may have been ended by its own backend, which aborts where the peers' calls do not fit."""
    aborted = t.rank.end is not None and t.rank.end.signal == signal.SIGABRT
    return aborted and t.trace.position.phase in ("collective", "backward")


def _stalled(standing: list[Standing]) -> Hang:
    """Name the rank that is by itself while the others wait; where none or all are, nobody is named."""
    by_itself = [s for s in standing if is_frozen(s)] or [s for s in standing if not s.waits and not s.ended]
    if not by_itself or len(by_itself) == len(standing):
        first, *peers = standing
        same = len({s.site for s in standing}) == 1
        return Hang(
            "HNG001",
            f"the ranks stand still: {first.rank.name} {first.what}, {names([s.rank for s in peers])} {peers[0].what}; "
            "which of them holds the others up is not to be seen",
            place(first.site) if same else None,
            (),
            told(standing),
        )
    odd = by_itself[0]
    peers = [s for s in standing if s not in by_itself]
    also = f" ({names([s.rank for s in by_itself[1:]])} too)" if by_itself[1:] else ""
    return Hang(
        "HNG001",
        f"the ranks stand still: {odd.rank.name}{also} {odd.what} and does not come to what "
        f"{names([s.rank for s in peers])} {'waits' if len(peers) == 1 else 'wait'} for: {peers[0].rank.name} "
        f"{peers[0].what}",
        place(odd.site),
        numbers_of(by_itself),
        told(standing),
    )
