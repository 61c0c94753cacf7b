"""Literal launches for tests of the checks that judge them."""

import msgspec

from accel_doctor.evidence import Candidate, ConfigFile, ConfigKey, Evidence, Launch, Setting, Value
from accel_doctor.testing import healthy_launch, healthy_run


def run(**changes: object) -> Evidence:
    """Return the healthy run with its launch changed."""
    return healthy_run(launch=launch(**changes))


def launch(**changes: object) -> Launch:
    """Return the healthy launch with some fields replaced; ``settings`` are added to its own."""
    plain = healthy_launch()
    added = changes.pop("settings", {})
    assert isinstance(added, dict)
    return msgspec.structs.replace(plain, settings={**plain.settings, **added}, **changes)


def setting(value: Value, source: str, *losers: Candidate, note: str = "") -> Setting:
    """Return a setting with those it won against; a note makes it lost."""
    winner = Candidate(value=value, source=source)
    return Setting(value=value, source=source, candidates=(winner, *losers), reaches_ranks=not note, note=note)


def file(picked: str = "flag", **keys: Value) -> ConfigFile:
    """Return an accelerate config with one key a line; ``__`` stands for the dot."""
    return _file("accelerate", "train.yaml", keys, picked)


def _file(kind: str, path: str, keys: dict[str, Value], picked: str = "flag") -> ConfigFile:
    entries = [
        ConfigKey(key=name.replace("__", "."), value=value, line=line)
        for line, (name, value) in enumerate(keys.items(), 1)
    ]
    return ConfigFile(path=path, kind=kind, picked=picked, keys=tuple(entries))


def deepspeed(**keys: Value) -> ConfigFile:
    """Return a DeepSpeed file."""
    return _file("deepspeed", "ds.json", keys)
