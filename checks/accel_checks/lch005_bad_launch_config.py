"""LCH005: a config file that cannot be read, or has unknown keys, misplaced keys or bad values."""

from collections import Counter
from collections.abc import Iterator

from accel_checks._launches import launch_of, said, spot
from accel_checks._log import from_log
from accel_checks._source import Says, flow_judge
from accel_doctor.check import Check, Finding, Invariant, Judge, Location, NotApplicable, Severity
from accel_doctor.evidence import ConfigFile, ConfigKey, Evidence

_FIXES = {"program": "install it there, or examine the launch from the environment that trains"}


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Go through every file that configures the launch, and what the launcher will refuse."""
    launch = launch_of(evidence)
    refused = [r for r in launch.refusals if r.about in ("config", "program")]
    if not launch.config_files and not refused:
        raise NotApplicable("no config file is read")
    for file in launch.config_files:
        yield from _judge_file(file)
    for refusal in refused:
        yield Finding(message=f"the launch will stop at once: {refusal.why}", fix=_FIXES.get(refusal.about, ""))


def _judge_file(file: ConfigFile) -> Iterator[Finding]:
    if file.error:
        yield Finding(
            message=f"{file.path} {file.error}",
            seen=file.error,
            wanted=f"a {'JSON' if file.kind == 'deepspeed' else 'YAML or JSON'} file of keys and values",
            location=Location(path=file.path, line=file.error_line),
            fix="name a file that is there" if file.error.startswith("no such file") else "",
        )
    seen: set[str] = set()
    for key in file.keys:
        if not key.known and (top := key.key.partition(".")[0] if _whole_section(key) else key.key) not in seen:
            seen.add(top)
            yield _unknown(file, key, top)
        elif key.known and key.expected:
            yield _unfit(file, key)
    for name in (n for n, times in Counter(k.key for k in file.keys).items() if times > 1):
        yield _double(file, name)


def _whole_section(key: ConfigKey) -> bool:
    section = key.key.partition(".")[0]
    return section != key.key and section not in _SECTIONS


def _unknown(file: ConfigFile, key: ConfigKey, name: str) -> Finding:
    fatal = "." not in name
    other_version = key.note.startswith("a key of accelerate")
    does = "accelerate refuses the file" if fatal else "accelerate drops it without a word"
    note = f": {key.note}" if key.note else ""
    return Finding(
        message=f"{file.path}:{key.line} has an unknown key {name}{note}; {does}",
        severity=Severity.WARNING if other_version and not fatal else Severity.ERROR,
        seen=f"{name}: {said(key.value)}",
        wanted=key.note or "a key that this accelerate knows",
        location=Location(path=file.path, line=key.line),
    )


def _unfit(file: ConfigFile, key: ConfigKey) -> Finding:
    return Finding(
        message=f"{file.path}:{key.line} has {key.key}: {said(key.value)}, which takes {key.expected}",
        seen=f"{key.key}: {said(key.value)}",
        wanted=key.expected,
        location=Location(path=file.path, line=key.line),
    )


def _double(file: ConfigFile, name: str) -> Finding:
    lines = [k.line for k in file.keys if k.key == name]
    values = [said(k.value) for k in file.keys if k.key == name]
    return Finding(
        message=f"{file.path} has {name} {len(lines)} times, and the last wins: {values[-1]}",
        severity=Severity.WARNING,
        seen=", ".join(f"{value} in line {line}" for value, line in zip(values, lines, strict=True)),
        wanted="each key once",
        location=spot(file, name),
    )


_SECTIONS = frozenset(
    {"fp8_config", "deepspeed_config", "fsdp_config", "parallelism_config", "megatron_lm_config", "mpirun_config"}
    | {"dynamo_config"}
)

CUT_SHORT = flow_judge(
    Says(
        "launch.cut_short",
        "these flags stand on a line of their own: the command of line {command_line} ends before them, for lack of a "
        "backslash",
        wanted="a backslash at the end of the line before",
    )
)

CHECK = Check(
    id="LCH005",
    name="bad-launch-config",
    invariant=Invariant.EQUAL,
    title="A config file is unreadable, or has unknown keys, misplaced keys or values that do not fit",
    why="An unknown key at the top stops the launch; one in a section is dropped in silence, and the default stands.",
    fix="correct the key or the value; `accelerate config` writes a file that this version takes",
    judges=(Judge(needs=("launch",), judge=judge), CUT_SHORT, from_log("LCH005")),
)
