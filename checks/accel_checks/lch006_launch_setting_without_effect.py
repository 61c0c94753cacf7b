"""LCH006: a value that never reaches the ranks."""

from collections.abc import Iterator

from accel_checks._launches import launch_of, lost_candidates, said
from accel_doctor.check import Check, Finding, Invariant, Judge, Location, Severity
from accel_doctor.evidence import Evidence, Launch, Value
from accel_doctor.places import place, place_of


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find values that somebody set and the launch drops, and settings that every rank dies of."""
    launch = launch_of(evidence)
    for refusal in launch.refusals:
        if refusal.about == "ranks":
            yield Finding(
                message=refusal.why, wanted="a device, or DDP on CPU", location=_first_place(launch, refusal.settings)
            )
    for name, value, source, why in lost_candidates(launch):
        if not _moot(launch, name):
            yield _finding(name, value, source, why)


def _moot(launch: Launch, name: str) -> bool:
    """Return whether nothing is lost: ``accelerate config`` writes same_network into every file."""
    return name == "same_network" and launch.value("num_machines") in (None, 1)


def _first_place(launch: Launch, names: tuple[str, ...]) -> Location | None:
    return next((found for name in names if (found := place_of(launch, name))), None)


def _finding(name: str, value: Value, source: str, why: str) -> Finding:
    return Finding(
        message=f"{name} {said(value)} ({source}) has no effect: {why}",
        severity=Severity.WARNING,
        seen=f"{name}: {said(value)}",
        wanted="a value that reaches the ranks, or none",
        location=place(source),
    )


CHECK = Check(
    id="LCH006",
    name="launch-setting-without-effect",
    invariant=Invariant.EQUAL,
    title="A launch setting never reaches the ranks",
    why="accelerate drops it without a word, and the run differs from what its config says.",
    fix="set it where it is read, or take it out",
    judges=(Judge(needs=("launch",), judge=judge),),
    consequence_of=("LCH002", "LCH003"),
)
