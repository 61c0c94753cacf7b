"""LCH006: a value that never reaches the ranks."""

from collections.abc import Iterator
from typing import NamedTuple

from accel_checks._launches import launch_of, lost_candidates, said
from accel_doctor.check import Check, Finding, Invariant, Judge, Location, Severity
from accel_doctor.evidence import Evidence, Launch, Value
from accel_doctor.places import place, place_of

MOOT = frozenset({"same_network"})
"""Lost without loss: `accelerate config` writes it into every file, and the ranks of several machines meet without."""


class Lost(NamedTuple):
    """A value that somebody set and the launch drops."""

    name: str
    value: Value
    source: str


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find values that somebody set and the launch drops, and settings that every rank dies of."""
    launch = launch_of(evidence)
    for refusal in launch.refusals:
        if refusal.about == "ranks":
            yield Finding(
                message=refusal.why, wanted="a device, or DDP on CPU", location=_first_place(launch, refusal.settings)
            )
    groups: dict[str, list[Lost]] = {}
    for name, value, source, why in lost_candidates(launch):
        if name not in MOOT:
            groups.setdefault(why, []).append(Lost(name, value, source))
    for why, lost in groups.items():
        yield _finding(lost, why)


def _first_place(launch: Launch, names: tuple[str, ...]) -> Location | None:
    return next((found for name in names if (found := place_of(launch, name))), None)


def _finding(lost: list[Lost], why: str) -> Finding:
    first, told = lost[0], [f"{one.name} {said(one.value)} ({one.source})" for one in lost]
    which = told[0] if len(lost) == 1 else f"{', '.join(told[:-1])} and {told[-1]}"
    return Finding(
        message=f"{which} {'has' if len(lost) == 1 else 'have'} no effect: {why}",
        severity=Severity.WARNING,
        seen=", ".join(f"{one.name}: {said(one.value)}" for one in lost),
        wanted="values that reach the ranks, or none",
        values={"settings": len(lost)},
        location=place(first.source),
    )


CHECK = Check(
    id="LCH006",
    name="launch-setting-without-effect",
    invariant=Invariant.EQUAL,
    title="A launch setting never reaches the ranks",
    why="accelerate drops it without a word, and the run differs from what its config says.",
    fix="put the value where it takes effect, or take it out",
    judges=(Judge(needs=("launch",), judge=judge),),
    consequence_of=("LCH002", "LCH003"),
)
