"""CKP006: a state that was saved does not come back whole."""

from collections.abc import Iterator

from accel_checks._log import from_log
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, names, ranks_of
from accel_doctor.evidence import Evidence, Rank


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Report what save or load raised, and the parts that came back different."""
    ranks = [r for r in evidence.world if r.storage and r.storage.round_trip]
    if not ranks:
        reasons = [r.storage.why_no_round_trip for r in evidence.world if r.storage]
        raise NotApplicable(next(filter(None, reasons), "no state was saved"))
    failed = [r for r in ranks if r.storage and r.storage.round_trip and r.storage.round_trip.error]
    if failed:
        yield _raised(failed)
    parts = dict.fromkeys(part for r in ranks for part in _lost(r))
    for part in parts:
        yield _changed(part, [r for r in ranks if part in _lost(r)], len(ranks))


def _lost(rank: Rank) -> tuple[str, ...]:
    return rank.storage.round_trip.lost if rank.storage and rank.storage.round_trip else ()


def _raised(failed: list[Rank]) -> Finding:
    storage = failed[0].storage
    trip = storage.round_trip if storage else None
    action = "load_state" if trip and trip.load_s is not None else "save_state"
    return Finding(
        message=f"{action} failed on {names(failed)}: {trip.error if trip else ''}",
        seen=trip.error if trip else "",
        wanted="a state that is saved and loaded on every rank",
        ranks=ranks_of(failed),
        host=failed[0].host,
    )


def _changed(part: str, lost: list[Rank], world: int) -> Finding:
    return Finding(
        message=f"the {part} state came back different on {names(lost)} of {world} after save_state and load_state",
        seen=f"{part}: another digest after loading",
        wanted="the same to the bit",
        values={"ranks_changed": len(lost)},
        ranks=ranks_of(lost),
        host=lost[0].host,
    )


CHECK = Check(
    id="CKP006",
    name="checkpoint-does-not-restore",
    invariant=Invariant.EQUAL,
    title="A state that was saved does not come back whole",
    why="A run that resumes without its optimizer's moments, its schedule or its random state goes on from somewhere "
    "else, and nothing says so: accelerate passes over a random state that it cannot load.",
    fix="resume with the same number of processes from a directory that every rank reads, and compare accelerate's and "
    "torch's versions with those that saved",
    judges=(Judge(needs=("ranks.storage",), judge=judge), from_log("CKP006")),
    consequence_of=("CKP009", "CKP008"),
)
