"""Reads the files around a script: launch commands in shell scripts, accelerate's configs, DeepSpeed's files."""

from pathlib import Path
from typing import NamedTuple

import msgspec

from accel_doctor.errors import DoctorError
from accel_doctor.evidence import Flow, Launch, SourceFile, Suppression
from accel_doctor.source.facts import IGNORE
from accel_doctor.source.launch_files import CONFIGS, JSON, SHELLS, Command, commands_of, kind_of

SUFFIXES = (*SHELLS, *CONFIGS, *JSON)
DEVICES = 8
"""Devices that a launch is read for: the machine it is for is not this one."""
LIMIT_BYTES = 256 * 1024
"""What configures a launch is small; data is not."""
NAMES_A_FILE = ("--config_file", "--deepspeed_config_file", "--config-file", "--deepspeed-config-file")


class Around(NamedTuple):
    """What one such file shows."""

    file: SourceFile
    launches: tuple[Launch, ...] = ()
    flows: tuple[Flow, ...] = ()


def read_around(name: str, path: Path, *, given: bool) -> Around | None:
    """Return what a file shows; ``None`` for one that nobody named and that configures no launch."""
    try:
        data = _bytes(path)
        kind = kind_of(name, data, given=given)
        return _READERS[kind](name, path, data, given=given)
    except (OSError, DoctorError) as error:
        why = (error.strerror if isinstance(error, OSError) else "") or str(error)
        return Around(SourceFile(path=name, error=why)) if given else None


def _bytes(path: Path) -> bytes:
    if not path.is_file():
        raise OSError(0, "it is no regular file")
    if path.stat().st_size > LIMIT_BYTES:
        raise OSError(0, f"it is larger than {LIMIT_BYTES >> 10} KiB: it configures no launch")
    return path.read_bytes()


def _shell(name: str, path: Path, data: bytes, *, given: bool) -> Around | None:
    commands = commands_of(data.decode(errors="replace"))
    lost = tuple(
        Flow(what="launch.cut_short", path=name, line=c.lost, values={"command_line": c.line})
        for c in commands
        if c.lost
    )
    launches = (_of_command(c, name, path, given=given) for c in commands)
    return Around(_file(name, data), tuple(found for found in launches if found), lost)


def _of_command(command: Command, name: str, path: Path, *, given: bool) -> Launch | None:
    """Return the launch of a command; ``None`` where variables or a program that is not here decide it.

    Raises:
        DoctorError: its launcher would refuse it, and the user named the file.
    """
    from accel_doctor.launch.arguments import split  # noqa: PLC0415 - scripts alone do not need it

    if command.words[0] == "deepspeed":
        return None
    try:
        taken = split(command.words, {})
        if any(_varies(word) for word in taken.flags) or any(_varies(w) for w in taken.script[:1] if w[-3:] != ".py"):
            return None
        return _resolved(_found(command.words, path), f"{name}:{command.line}", given=given)
    except DoctorError:
        if given and not any(_varies(word) for word in command.words):
            raise
        return None


def _varies(word: str) -> bool:
    return any(mark in word for mark in ("$", "`", "{{", "<"))


def _found(words: tuple[str, ...], path: Path) -> tuple[str, ...]:
    """Return the words with the files they name, which may be written from a folder above the script."""
    pairs = zip(("", *words), words, strict=False)
    return tuple(_near(word, path) if before in NAMES_A_FILE else word for before, word in pairs)


def _near(word: str, path: Path) -> str:
    if Path(word).exists():
        return word
    near = next((folder / word for folder in path.absolute().parents if (folder / word).is_file()), None)
    return str(near) if near else word


def _config(name: str, path: Path, data: bytes, *, given: bool) -> Around | None:
    del path
    launch = _resolved(("--config_file", name), name, given=given)
    if launch is not None:  # the command that names this file may say what it leaves out
        told = tuple(r for r in launch.refusals if r.settings != ("num_processes",))
        launch = msgspec.structs.replace(launch, refusals=told)
    return Around(_file(name, data), (launch,) if launch else ())


def _resolved(words: tuple[str, ...], read_from: str, *, given: bool) -> Launch | None:
    """Return the launch; one whose files lie elsewhere is left out unless the user named it."""
    from accel_doctor.launch.resolve import resolve  # noqa: PLC0415 - scripts alone do not need it

    told = words[2:] if words[:2] == ("accelerate", "launch") else words
    launch = resolve(told, environment={}, device_count=DEVICES, torch_build=None, cwd=Path.cwd()).launch
    absent = [f for f in launch.config_files if f.error.startswith("no such file")]
    if absent and not given:
        if any(f.kind == "accelerate" for f in absent):
            return None
        launch = msgspec.structs.replace(
            launch, config_files=tuple(f for f in launch.config_files if f not in absent), refusals=()
        )
    # The ports of this machine and the programs on it are not the launch's; a scheduler may say which machine is which.
    elsewhere = tuple(r for r in launch.refusals if r.about not in ("program", "machines"))
    return msgspec.structs.replace(launch, rendezvous=None, read_from=read_from, refusals=elsewhere)


def _deepspeed(name: str, path: Path, data: bytes, *, given: bool) -> Around | None:
    """Read a DeepSpeed file by itself: which launcher takes it, and for how many ranks, is not known."""
    from accel_doctor.launch.config import read_deepspeed  # noqa: PLC0415 - scripts alone do not need it

    file = read_deepspeed(path, picked="flag", shown=name).file
    if file.error and not given:
        return None
    launch = Launch(launcher="", argv=(), settings={}, config_files=(file,), strategy="DEEPSPEED", read_from=name)
    return Around(_file(name, data), (launch,))


def _file(name: str, data: bytes) -> SourceFile:
    lines = data.decode(errors="replace").splitlines() if b"accel-doctor:" in data else []
    found = [(number, IGNORE.search(line)) for number, line in enumerate(lines, 1)]
    comments = tuple(
        Suppression(line=number, ids=tuple(i.strip() for i in (m[1] or "").split(",") if i.strip()), reason=m[2])
        for number, m in found
        if m
    )
    return SourceFile(path=name, suppressions=comments)


def _neither(name: str, path: Path, data: bytes, *, given: bool) -> Around | None:
    del path, data
    error = "it is neither a config of accelerate nor one of DeepSpeed"
    return Around(SourceFile(path=name, error=error)) if given else None


_READERS = {"": _neither, "shell": _shell, "accelerate": _config, "deepspeed": _deepspeed}
