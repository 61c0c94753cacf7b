"""What the checks on the launch have in common."""

import shlex
from collections.abc import Iterator

from accel_doctor.check import Location, NotApplicable
from accel_doctor.evidence import ConfigFile, Evidence, Launch, Value


def launch_of(evidence: Evidence) -> Launch:
    """Return the resolved launch."""
    if evidence.launch is None:
        raise NotApplicable("no launch was resolved")
    return evidence.launch


def script_of(launch: Launch | None) -> str:
    """Return the user's script and its words as one types them, or a stand-in where none was named."""
    return shlex.join(launch.script) if launch and launch.script else "train.py"


def said(value: Value) -> str:
    """Return a value as one would write it."""
    return str(value).lower() if isinstance(value, bool) else str(value)


def same(first: Value, second: Value) -> bool:
    """Return whether two places say the same: ``true`` and True, 2 and ``'2'``."""
    return said(first).lower() == said(second).lower()


def accelerate_file(launch: Launch) -> ConfigFile | None:
    """Return accelerate's own config file, if one is read."""
    return next((f for f in launch.config_files if f.kind == "accelerate"), None)


def deepspeed_file(evidence: Evidence) -> tuple[Launch, ConfigFile]:
    """Return the launch and its DeepSpeed file."""
    launch = launch_of(evidence)
    if launch.strategy != "DEEPSPEED":
        raise NotApplicable("the launch does not ask for DeepSpeed")
    file = next((f for f in launch.config_files if f.kind == "deepspeed"), None)
    if file is None:
        raise NotApplicable("no DeepSpeed file is named")
    if file.error:
        raise NotApplicable(f"{file.path} cannot be read")
    return launch, file


def value_in(file: ConfigFile, key: str) -> Value:
    """Return a file's value of a key, the last of duplicates."""
    return next((k.value for k in reversed(file.keys) if k.key == key), None)


def spot(file: ConfigFile, key: str) -> Location:
    """Return where a key stands in a file."""
    return Location(path=file.path, line=next((k.line for k in reversed(file.keys) if k.key == key), None))


def lost_candidates(launch: Launch) -> Iterator[tuple[str, Value, str, str]]:
    """Return (setting, value, source, why) of each value that has no effect, whatever else is set."""
    for name, setting in launch.settings.items():
        if not setting.reaches_ranks:
            yield name, setting.value, setting.source, setting.note
        for candidate in setting.candidates:
            if candidate.ignored and not same(candidate.value, setting.value):
                yield name, candidate.value, candidate.source, candidate.ignored
