"""SHD007: the DeepSpeed file against accelerate's config, precision, and values left at auto."""

from collections.abc import Iterator
from pathlib import PurePath

from accel_checks._launches import accelerate_file, deepspeed_file, said, same, spot, value_in
from accel_checks._log import from_log
from accel_doctor.check import Check, Finding, Invariant, Judge, Location, Severity
from accel_doctor.evidence import ConfigFile, Evidence, Launch
from accel_doctor.places import place, place_of

IN_FILE = {
    "zero_stage": "zero_optimization.stage",
    "gradient_accumulation_steps": "gradient_accumulation_steps",
    "gradient_clipping": "gradient_clipping",
    "offload_optimizer_device": "zero_optimization.offload_optimizer.device",
    "offload_param_device": "zero_optimization.offload_param.device",
    "offload_optimizer_nvme_path": "zero_optimization.offload_optimizer.nvme_path",
    "offload_param_nvme_path": "zero_optimization.offload_param.nvme_path",
    "zero3_save_16bit_model": "zero_optimization.stage3_gather_16bit_weights_on_model_save",
}
"""Launch settings and the keys of a DeepSpeed file that say the same; beside a file accelerate refuses the first."""
MICRO = "train_micro_batch_size_per_gpu"
FILLED = frozenset(
    {
        *IN_FILE.values(),
        *("train_batch_size", MICRO, "fp16.enabled", "bf16.enabled"),
        *("zero_optimization.reduce_bucket_size", "zero_optimization.stage3_prefetch_bucket_size"),
        "zero_optimization.stage3_param_persistence_threshold",
        *("optimizer.params.lr", "optimizer.params.weight_decay", "scheduler.params.total_num_steps"),
        *("scheduler.params.warmup_min_lr", "scheduler.params.warmup_max_lr", "scheduler.params.warmup_num_steps"),
    }
)
"""Keys whose ``auto`` accelerate fills in; others reach DeepSpeed as the word."""


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Compare the DeepSpeed file with the launch it is used in."""
    launch, file = deepspeed_file(evidence)
    if launch.launcher == "accelerate":
        yield from _named_twice(launch, file)
        yield from _overruled(launch, file)
        yield from _precision(launch, file)
        yield from _zero_section(file)
    yield from _both_precisions(file)
    yield from _auto(launch, file, _loop(evidence, launch))


def _named_twice(launch: Launch, file: ConfigFile) -> Iterator[Finding]:
    """Find keys of accelerate's config that it forbids beside a DeepSpeed file."""
    config = accelerate_file(launch)
    if config is None:
        return
    found = [k for k in config.keys if k.key.removeprefix("deepspeed_config.") in IN_FILE and "." in k.key]
    precision = place_of(launch, "mixed_precision")
    named = [k.key.partition(".")[2] for k in found] + (["mixed_precision"] if precision else [])
    if named:
        where = Location(path=config.path, line=found[0].line) if found else precision
        yield Finding(
            message=f"{config.path} sets {', '.join(named)} beside the DeepSpeed file {file.path}: accelerate stops",
            seen=f"{', '.join(named)} in {config.path}",
            wanted=f"these only in {file.path}",
            location=where,
        )


def _overruled(launch: Launch, file: ConfigFile) -> Iterator[Finding]:
    """Find flags and variables that the file silently overrules."""
    for name, key in IN_FILE.items():
        setting, value = launch.settings.get(name), value_in(file, key)
        if setting is None or value in (None, "auto") or setting.source == "default" or place(setting.source):
            continue
        if not same(setting.value, value):
            yield Finding(
                message=f"{name} {said(setting.value)} ({setting.source}) loses to {key} {said(value)} of {file.path}",
                severity=Severity.WARNING,
                seen=f"{said(value)} in the file, {said(setting.value)} from {setting.source}",
                wanted="one value",
                location=spot(file, key),
            )


def _precision(launch: Launch, file: ConfigFile) -> Iterator[Finding]:
    asked = launch.value("mixed_precision")
    if asked not in ("fp16", "bf16", "fp8"):
        return
    mine, other = ("fp16", "bf16") if asked == "fp16" else ("bf16", "fp16")
    source = launch.source("mixed_precision")
    if value_in(file, f"{other}.enabled") is True:
        yield Finding(
            message=f"mixed_precision is {asked} ({source}) and {file.path} enables {other}: accelerate refuses both",
            seen=f"{asked} and {other}",
            wanted="one precision",
            location=spot(file, f"{other}.enabled"),
        )
    elif value_in(file, f"{mine}.enabled") is False:
        yield Finding(
            message=f"mixed_precision {asked} ({source}) has no effect: {file.path} says {mine}.enabled false",
            severity=Severity.WARNING,
            seen=f"{mine}.enabled false",
            wanted=f"{mine}.enabled true or auto",
            location=spot(file, f"{mine}.enabled"),
        )


def _both_precisions(file: ConfigFile) -> Iterator[Finding]:
    if value_in(file, "fp16.enabled") is True and value_in(file, "bf16.enabled") is True:
        yield Finding(
            message=f"{file.path} enables fp16 and bf16, and DeepSpeed takes one",
            seen="fp16.enabled true, bf16.enabled true",
            wanted="one of them",
            location=spot(file, "bf16.enabled"),
        )


def _zero_section(file: ConfigFile) -> Iterator[Finding]:
    if not any(k.key.partition(".")[0] == "zero_optimization" for k in file.keys):
        yield Finding(
            message=f"{file.path} has no zero_optimization, without which accelerate stops",
            wanted="zero_optimization with a stage",
            location=Location(path=file.path),
        )


def _loop(evidence: Evidence, launch: Launch) -> str:
    """Return whose training loop the launched script has: ``trainer``, ``own``, or ``unread`` by a lint."""
    if evidence.source is None:
        return "own"
    script = PurePath(next((w for w in launch.script if w.endswith(".py")), "")).name
    read = [f for f in evidence.source.files if script and PurePath(f.path).name == script]
    if any("trainer" in f.frameworks for f in read):
        return "trainer"
    return "own" if any("accelerate" in f.frameworks for f in read) else "unread"


def _auto(launch: Launch, file: ConfigFile, loop: str) -> Iterator[Finding]:
    """Find ``auto`` that nothing fills in, and the one that only a DataLoader can; a Trainer fills in all."""
    if loop == "trainer":
        return
    for key in file.keys:
        if key.value == "auto" and key.key not in FILLED:
            yield Finding(
                message=f"{file.path}:{key.line} leaves {key.key} at auto, which only transformers' Trainer fills in",
                severity=Severity.WARNING if launch.launcher and loop == "own" else Severity.NOTE,
                seen="auto",
                wanted="a value",
                location=Location(path=file.path, line=key.line),
            )
        elif key.key == MICRO and key.value == "auto":
            yield Finding(
                message=f"{file.path}:{key.line} leaves {MICRO} at auto: prepare() fills it in only from a DataLoader "
                "given in the same call as the model, and stops without one",
                severity=Severity.WARNING if launch.launcher == "accelerate" and loop == "own" else Severity.NOTE,
                seen="auto",
                wanted="the number of rows a rank and micro-batch",
                location=Location(path=file.path, line=key.line),
            )


CHECK = Check(
    id="SHD007",
    name="deepspeed-config-conflict",
    invariant=Invariant.EQUAL,
    title="The DeepSpeed file disagrees with the launch, or leaves open what nothing fills in",
    why="Beside a DeepSpeed file accelerate refuses some settings, overrules others in silence, and passes auto on.",
    fix="say each thing once, in the DeepSpeed file, with a number where nothing fills auto in",
    judges=(Judge(needs=("launch",), judge=judge), from_log("SHD007")),
)
