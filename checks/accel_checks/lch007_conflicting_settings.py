"""LCH007: flag, config, environment and DeepSpeed file disagree."""

from collections.abc import Iterator

from accel_checks._launches import launch_of, said, same
from accel_doctor.check import Check, Finding, Invariant, Judge, Severity
from accel_doctor.evidence import Candidate, Evidence, Launch, Setting
from accel_doctor.places import place, place_of

OF_DEVICES = frozenset({"use_cpu", "gpu_ids"})
"""Settings that change nothing where torch sees no device."""

STOPS = {"conflict": "the launch will stop at once", "clash": "each rank will stop in Accelerator()"}


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find settings that two places name differently, with who wins."""
    launch = launch_of(evidence)
    for refusal in launch.refusals:
        if refusal.about in STOPS:
            location = next((found for name in refusal.settings if (found := place_of(launch, name))), None)
            yield Finding(
                message=f"{STOPS[refusal.about]}: {refusal.why}",
                seen=refusal.why,
                fix=f"change or take out one of {', '.join(refusal.settings)}",
                location=location,
            )
    for name, setting in launch.settings.items():
        if name not in OF_DEVICES or launch.devices_seen != 0:
            yield from _with_environment(name, setting)
    yield from _overridden(launch)
    yield from _against_asked(evidence, launch)


def _with_environment(name: str, setting: Setting) -> Iterator[Finding]:
    """Compare the environment with what else names a setting: one of them loses in silence."""
    winner, *losers = setting.candidates or (None,)
    if winner is None or winner.source == "doctor":
        return
    for loser in losers:
        variable = "environment" in (winner.source.split()[0], loser.source.split()[0])
        if variable and not loser.ignored and not same(winner.value, loser.value):
            yield _disagreement(name, winner, loser)


def _disagreement(name: str, winner: Candidate, loser: Candidate) -> Finding:
    return Finding(
        message=f"{name} is {said(winner.value)} ({winner.source}) and not {said(loser.value)} ({loser.source}): "
        f"{_why(loser)}",
        severity=Severity.NOTE if winner.source.startswith("flag") else Severity.WARNING,
        seen=f"{said(winner.value)} ({winner.source}), {said(loser.value)} ({loser.source})",
        wanted="one value",
        location=place(winner.source) or place(loser.source),
    )


def _why(loser: Candidate) -> str:
    if loser.source.startswith("environment"):
        return "the launcher writes over the variable"
    return "the ranks read the variable, and this launch does not write it"


def _overridden(launch: Launch) -> Iterator[Finding]:
    """Note flags that stand over the config file: allowed, and worth knowing."""
    over = [
        f"{name} {said(setting.value)} over {said(loser.value)} ({loser.source})"
        for name, setting in launch.settings.items()
        for loser in setting.candidates[1:]
        if setting.source.startswith("flag") and place(loser.source) and not same(setting.value, loser.value)
    ]
    if over:
        message = f"{len(over)} flag{'s' if len(over) > 1 else ''} over the config file: {'; '.join(over[:6])}"
        yield Finding(message=message, severity=Severity.NOTE, wanted="as asked")


def _against_asked(evidence: Evidence, launch: Launch) -> Iterator[Finding]:
    """Compare what the user expects of the batch with what launch and DeepSpeed file say."""
    asked = evidence.asked
    wanted = {
        "gradient_accumulation_steps": ("gradient_accumulation_steps", asked.gradient_accumulation_steps),
        "batch_size": ("train_micro_batch_size_per_gpu", asked.batch_size),
        "expect_batch_size": ("train_batch_size", asked.expect_batch_size),
    }
    for name, (key, number) in wanted.items():
        source = asked.sources.get(name, f"--{name.replace('_', '-')}")
        for found in _places_of(launch, key):
            if number is not None and isinstance(found.value, int) and found.value != number:
                yield _unlike_asked(key, found, number, source)


def _places_of(launch: Launch, key: str) -> Iterator[Candidate]:
    """Return what decides a batch setting in the ranks: the DeepSpeed file before the launch."""
    for file in launch.config_files:
        for entry in file.keys if file.kind == "deepspeed" else ():
            if entry.key == key and entry.value != "auto":
                yield Candidate(value=entry.value, source=f"{file.path}:{entry.line}")
                return
    setting = launch.settings.get(key)
    if setting is not None and setting.reaches_ranks and setting.source != "default":
        yield Candidate(value=setting.value, source=setting.source)


def _unlike_asked(key: str, found: Candidate, number: int, source: str) -> Finding:
    return Finding(
        message=f"{key} is {said(found.value)} ({found.source}), and {source} says {number}",
        seen=f"{key} {said(found.value)}",
        wanted=str(number),
        values={"found": int(found.value or 0), "asked": number},
        location=place(found.source),
    )


CHECK = Check(
    id="LCH007",
    name="conflicting-settings",
    invariant=Invariant.EQUAL,
    title="Flag, config file, environment and DeepSpeed file disagree",
    why="One of them wins in silence, and the run is not what the other says.",
    fix="keep the value in one place",
    judges=(Judge(needs=("launch",), judge=judge),),
)
