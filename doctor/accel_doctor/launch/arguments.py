"""Splits what follows ``--`` into wrapper, launcher, its flags, the script and the script's words. Starts nothing."""

import argparse
import difflib
import re
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import PurePath
from typing import Any, NamedTuple, NoReturn

from accel_doctor.errors import UsageError
from accel_doctor.evidence import Value
from accel_doctor.launch.files import plain
from accel_doctor.launch.flags import ACCELERATE, DEEPSPEED, TORCH_LAUNCH, TORCHRUN, Flag, Program

KNOWN = "accelerate launch, torchrun, deepspeed and python (each also as python -m …)"
WRAPPERS = frozenset(
    (
        *("chrt", "conda", "env", "ionice", "mpiexec", "mpirun", "nice", "nohup", "numactl", "pipenv", "poetry"),
        *("setsid", "srun", "stdbuf", "taskset", "time", "timeout", "uv"),
    )
)
_ASSIGNMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*=")
_PYTHON = re.compile(r"python(\d+(\.\d+)?)?")
_SHELLS = frozenset({"bash", "sh", "zsh", "dash", "fish"})
_HELP = frozenset({"-h", "--help"})
_NO_SCRIPT = "<no script>"
_MODULES = {
    "accelerate.commands.launch": ("accelerate", ACCELERATE),
    "torch.distributed.run": ("torchrun", TORCHRUN),
    "torch.distributed.launch": ("torchrun", TORCH_LAUNCH),
    "deepspeed.launcher.runner": ("deepspeed", DEEPSPEED),
}
_PROGRAMS = {
    "accelerate-launch": ("accelerate", ACCELERATE),
    "torchrun": ("torchrun", TORCHRUN),
    "deepspeed": ("deepspeed", DEEPSPEED),
}
_PYTHON_VALUES = ("-W", "-X", "--check-hash-based-pycs")


class Given(NamedTuple):
    """A flag as the user gave it."""

    name: str
    value: Value


class Command(NamedTuple):
    """A launch command, taken apart."""

    launcher: str
    """``accelerate``, ``torchrun``, ``deepspeed`` or ``python``."""
    wrapper: tuple[str, ...] = ()
    """Words before the launcher, kept as they are: ``srun -n 2``."""
    assigned: Mapping[str, str | None] = {}
    """Variables set by leading ``NAME=value`` words or ``env``; ``None`` is one that ``env -u`` removes."""
    flags: tuple[str, ...] = ()
    """The launcher's own words as typed."""
    given: tuple[Given, ...] = ()
    """The same flags, read."""
    script: tuple[str, ...] = ()
    """The script or module and its words."""
    by_doctor: bool = False
    """The words are the doctor's own choice."""

    def source(self, flag: str) -> str:
        """Return where a flag's value came from."""
        return "doctor" if self.by_doctor else f"flag --{flag}"


def split(words: Sequence[str], environment: Mapping[str, str]) -> Command:
    """Take a command line apart; words that begin with a flag are those of ``accelerate launch``.

    Raises:
        UsageError: there is no launcher in it, the launcher would refuse its flags, or a wrapper is not there.
    """
    if not words or words[0].startswith("-"):
        return _launcher("accelerate", ACCELERATE, words)
    assigned, rest = _assignments(words)
    start = _launcher_at(rest)
    wrapper = rest[:start]
    for name, value in _env_words(wrapper):
        assigned[name] = value
    _demand(wrapper, environment)
    return _program(rest[start:])._replace(wrapper=tuple(wrapper), assigned=assigned)


def _assignments(words: Sequence[str]) -> tuple[dict[str, str | None], list[str]]:
    """Cut leading ``NAME=value`` words, also after a bare ``env``."""
    rest = list(words)
    if rest[0] == "env" and len(rest) > 1 and not rest[1].startswith("-"):
        rest = rest[1:]
    assigned: dict[str, str | None] = {}
    while rest and _ASSIGNMENT.match(rest[0]):
        name, _, value = rest.pop(0).partition("=")
        assigned[name] = value
    return assigned, rest


def _env_words(wrapper: Sequence[str]) -> Iterable[tuple[str, str | None]]:
    """Return what an ``env`` among the wrapper words sets and removes."""
    if "env" not in wrapper:
        return
    words = iter(wrapper[list(wrapper).index("env") + 1 :])
    for word in words:
        if word in ("-u", "--unset"):
            yield next(words, ""), None
        elif word.startswith("--unset="):
            yield word.partition("=")[2], None
        elif _ASSIGNMENT.match(word):
            name, _, value = word.partition("=")
            yield name, value


def _launcher_at(words: Sequence[str]) -> int:
    """Return where the launcher begins, behind wrapper words."""
    if not words:
        raise UsageError(f"no launch command among the words; known are {KNOWN}")
    if _is_launcher(words[0]):
        return 0
    if PurePath(words[0]).name not in WRAPPERS:
        raise UsageError(f"{words[0]!r} is no launcher that preflight knows; known are {KNOWN}{_hint(words)}")
    found = next((i for i, word in enumerate(words) if _is_launcher(word)), None)
    if found is None:
        raise UsageError(f"no launcher after {words[0]}; known are {KNOWN}")
    return found


def _hint(words: Sequence[str]) -> str:
    if words[0].endswith(".py"):
        return f": write accelerate launch {' '.join(words[:3])}"
    shell = PurePath(words[0]).name in _SHELLS or words[0].endswith(".sh")
    return "; a shell script cannot be read: give the launch command in it" if shell else ""


def _is_launcher(word: str) -> bool:
    name = PurePath(word).name
    return name in _PROGRAMS or name == "accelerate" or bool(_PYTHON.fullmatch(name))


def _demand(wrapper: Sequence[str], environment: Mapping[str, str]) -> None:
    if wrapper and shutil.which(wrapper[0], path=environment.get("PATH")) is None:
        raise UsageError(f"{wrapper[0]} is not on PATH: the launch would not start")


def _program(words: Sequence[str]) -> Command:
    """Take the launcher's own part of a command line apart."""
    name, rest = PurePath(words[0]).name, words[1:]
    if name == "accelerate":
        if not rest or rest[0] != "launch":
            raise UsageError(f"preflight examines launches: accelerate launch …, not {' '.join(words[:2])}")
        return _launcher("accelerate", ACCELERATE, rest[1:])
    if name in _PROGRAMS:
        return _launcher(*_PROGRAMS[name], rest)
    return _python(rest)


def _python(words: Sequence[str]) -> Command:
    """Read ``python [flags] script.py`` and launchers started as modules or by their path."""
    at = 0
    while at < len(words) and words[at].startswith("-") and words[at] not in ("-m", "-c", "-"):
        at += 2 if words[at] in _PYTHON_VALUES else 1
    flags, rest = tuple(words[:at]), words[at:]
    if not rest or rest[0] in ("-c", "-"):
        raise UsageError("python needs a script or -m module to stand for the launch")
    if rest[0] == "-m":
        return _python_module(flags, rest[1:])
    if _is_launcher(rest[0]) and not _PYTHON.fullmatch(PurePath(rest[0]).name):
        return _program(rest)
    return Command("python", flags=flags, script=tuple(rest))


def _python_module(flags: tuple[str, ...], words: Sequence[str]) -> Command:
    if not words:
        raise UsageError("python -m needs a module to stand for the launch")
    if words[0] == "accelerate.commands.accelerate_cli":
        return _program(["accelerate", *words[1:]])
    if words[0] in _MODULES:
        return _launcher(*_MODULES[words[0]], words[1:])
    return Command("python", flags=flags, script=("-m", *words))


def _launcher(launcher: str, program: Program, words: Sequence[str]) -> Command:
    given, length = parse(program, words)
    return Command(launcher, flags=tuple(words[:length]), given=given, script=_script(words[length:]))


def _script(words: Sequence[str]) -> tuple[str, ...]:
    return tuple(words[1:] if words[:1] == ["--"] else words)


class _Parser(argparse.ArgumentParser):
    """argparse that raises instead of ending the program."""

    def error(self, message: str) -> NoReturn:
        if _NO_SCRIPT in message or "required: script" in message:
            message = "the last flag takes a value"
        raise UsageError(f"{self.prog} would refuse these words: {message}")


class _Note(argparse.Action):
    """Notes each flag in the order given."""

    def __call__(
        self,
        parser: argparse.ArgumentParser,  # noqa: ARG002 - argparse's interface
        namespace: argparse.Namespace,
        values: object,
        option_string: str | None = None,  # noqa: ARG002 - argparse's interface
    ) -> None:
        value: Value = self.const if self.nargs == 0 else plain(values)
        namespace.given.append(Given(self.dest, value))


def parse(program: Program, words: Sequence[str]) -> tuple[tuple[Given, ...], int]:
    """Return the flags given, and how many words belong to the launcher; the script begins there.

    Raises:
        UsageError: the launcher's own parser would refuse them.
    """
    total = [*words, _NO_SCRIPT]
    spaces, unknown = _parser(program).parse_known_args(total, argparse.Namespace(given=[]))
    for word in unknown:
        _refuse_unknown(program, word)
    at = len(total) - len(spaces.script_words) - 1
    while total[at] != spaces.script:
        at -= 1
    return tuple(spaces.given), at - 1 if at and total[at - 1] == "--" else at


def _parser(program: Program) -> _Parser:
    parser = _Parser(prog=program.name, add_help=False, allow_abbrev=program.abbreviates)
    for flag in program.flags:
        parser.add_argument(*spellings(program, flag), dest=flag.name, action=_Note, **_options(flag))
    parser.add_argument("script")
    parser.add_argument("script_words", nargs=argparse.REMAINDER)
    return parser


def spellings(program: Program, flag: Flag) -> tuple[str, ...]:
    """Return every way to write a flag."""
    names = flag.spelled or (f"--{flag.name}",)
    also = tuple(n.replace("_", "-") for n in names) if program.hyphens else ()
    return tuple(dict.fromkeys((*names, *also)))


def _options(flag: Flag) -> dict[str, Any]:
    if flag.kind in ("switch", "off"):
        return {"nargs": 0, "const": flag.kind == "switch", "default": argparse.SUPPRESS}
    convert = {"int": int, "float": float, "bool": bool}.get(flag.kind, str)
    return {"type": convert, "choices": flag.choices or None, "default": argparse.SUPPRESS}


def _refuse_unknown(program: Program, word: str) -> None:
    """Refuse a flag that nobody knows, unless it carries its value and so cannot be mistaken for the script."""
    name = word.partition("=")[0]
    if name in _HELP:
        raise UsageError(f"{program.name} {name} asks for help: there is no launch to examine")
    every = [s for flag in program.flags for s in spellings(program, flag)]
    near = difflib.get_close_matches(name, every, n=1, cutoff=0.8)
    if near:
        raise UsageError(f"{program.name} has no flag {name}: did you mean {near[0]}?")
    if "=" not in word:
        raise UsageError(f"{program.name} has no flag {name} that this doctor knows; write {name}=value to pass it on")
