"""The report's first lines: what was examined, as which launch, and where each value came from."""

from collections import Counter

from accel_doctor.evidence import Asked, Devices, Evidence, Launch, Setting, Value
from accel_doctor.reports.layout import DIM, Page, at_home, counted
from accel_doctor.reports.summary import Seen

SHAPING = ("num_processes", "num_machines", "distributed_type", "mixed_precision")
"""The settings that the launch line speaks of."""
OPTIONS = {
    "min_bus_bandwidth_gb_s": "min_bus_bandwidth",
    "checkpoint_bytes": "checkpoint_size",
    "checkpoint_interval_s": "checkpoint_interval",
    "time_limit_s": "time_limit",
}
"""Options whose evidence has another name, with its unit."""
MAX_LOST = 4


def headline(page: Page, seen: Seen) -> None:
    """Add ``ws1 · 2 x RTX 4090 · torch 2.13+cu128 · accelerate 1.15.0``."""
    parts = [_hosts(seen), _devices(seen.evidence), _version(seen, "torch"), _version(seen, "accelerate")]
    page.line("", " · ".join(part for part in parts if part))


def _hosts(seen: Seen) -> str:
    names = dict.fromkeys([*(h.name for h in seen.evidence.hosts or ()), *(r.host for r in seen.ranks)])
    return ", ".join(names) if len(names) <= 3 else f"{len(names)} hosts"


def _devices(evidence: Evidence) -> str:
    devices = evidence.devices
    if devices is None:
        return "devices not read"
    if not devices.devices:
        return _uncounted(devices)
    models = Counter(model_of(d.name, devices.vendor) for d in devices.devices if d.visible)
    hidden = sum(not d.visible for d in devices.devices)
    shown = [f"{number} x {model}" for model, number in models.items()]
    return " + ".join([*shown, f"{hidden} hidden"] if hidden else shown)


def _uncounted(devices: Devices) -> str:
    place, number = max(devices.counts.items(), key=lambda item: item[1], default=("", 0))
    return f"{counted(number, 'device')} by {place}, none readable" if number else "no GPU"


def model_of(name: str, vendor: str) -> str:
    """Return a device's name without its vendor's: ``RTX 4090``."""
    return (
        " ".join(word for word in name.split() if word.lower() != vendor and word != "GeForce")
        or "device without a name"
    )


def _version(seen: Seen, package: str) -> str:
    versions = {v for r in seen.ranks if (v := r.versions.get(package))}
    if not versions:
        interpreters = [h.interpreter for h in seen.evidence.hosts or () if h.interpreter]
        versions = {v for i in interpreters if (v := getattr(i, f"{package}_version"))}
    return f"{package} {' / '.join(sorted(versions))}" if versions else ""


def together_line(page: Page, evidence: Evidence) -> None:
    """Add which of the job's machines are here, or that this is a part and who has the verdict on the whole."""
    machines = evidence.machines or ()
    if evidence.part_of:
        page.line(
            "part    ", f"{machines[0].name} of {machines[0].count}; {evidence.part_of} has the verdict on all", DIM
        )
    elif machines:
        names = ", ".join(m.name for m in machines[:4]) + (" …" if len(machines) > 4 else "")
        page.line("machines ", f"{len(machines)} of {machines[0].count} came: {names}", DIM)


def launch_lines(page: Page, evidence: Evidence, *, verbose: bool) -> None:
    """Add the launch in force, and the values that were set and do not reach the ranks."""
    launch = evidence.launch
    if launch is None:
        page.line("launch  ", f"not read: {evidence.absent.get('launch') or 'no evidence of it'}", DIM)
        return
    page.line("launch  ", f"{described(launch)}   {_sources(launch)}", DIM)
    if verbose:
        _every_setting(page, launch)
    else:
        _lost(page, launch)


def described(launch: Launch) -> str:
    """Return ``8 processes on 2 machines, FSDP, bf16``."""
    total, machines = launch.value("num_processes"), launch.value("num_machines")
    processes = total if isinstance(total, int) else launch.asked_processes
    parts = [
        f"{processes} process{'es' if processes > 1 else ''}" if processes else "accelerate's own number of processes"
    ]
    parts[0] += f" on {machines} machines" if isinstance(machines, int) and machines > 1 else ""
    parts += [] if launch.strategy == "NONE" else [launch.strategy]
    precision = launch.value("mixed_precision")
    return ", ".join([*parts, *([precision] if isinstance(precision, str) and precision != "no" else [])])


def asked_line(page: Page, asked: Asked) -> None:
    """Add what the user expects, and where each number was said."""
    fields = [name for name in asked.__struct_fields__ if name not in ("sources", "thresholds")]
    said = [
        f"{name} {getattr(asked, name)} ({asked.sources.get(OPTIONS.get(name, name), 'given')})"
        for name in fields
        if getattr(asked, name) is not None
    ]
    said += [f"{key} {value:g} (settings)" for key, value in asked.thresholds.items()]
    if said:
        page.line("asked   ", " · ".join(said), DIM)


def _sources(launch: Launch) -> str:
    if launch.chosen_by == "doctor":
        return "chosen by accel-doctor: no device, no config, no flag"
    sources = dict.fromkeys(source_of(launch.settings[name]) for name in SHAPING if name in launch.settings)
    stated = [source for source in sources if source != "default"]
    return " + ".join(stated) or "accelerate's defaults"


def source_of(setting: Setting) -> str:
    """Return where a setting came from, a file without its line."""
    path, _, line = setting.source.rpartition(":")
    return at_home(path) if line.isdigit() and path else at_home(setting.source)


def _lost(page: Page, launch: Launch) -> None:
    lost = {name: s for name, s in launch.settings.items() if not s.reaches_ranks}
    for name, setting in list(lost.items())[:MAX_LOST]:
        page.line("        ", f"does not reach the ranks: {_stated(name, setting)}", hang=10)
    if len(lost) > MAX_LOST:
        page.line("        ", f"nor do {len(lost) - MAX_LOST} more (-v)")


def _stated(name: str, setting: Setting) -> str:
    return f"{name} = {shown(setting.value)} ({at_home(setting.source)}){': ' if setting.note else ''}{setting.note}"


def shown(value: Value) -> str:
    """Return a value as a config file writes it."""
    if value is None:
        return "null"
    return str(value).lower() if isinstance(value, bool) else str(value)


def _every_setting(page: Page, launch: Launch) -> None:
    for name, setting in sorted(launch.settings.items()):
        lost = "" if setting.reaches_ranks else "; does not reach the ranks"
        page.line("        ", _stated(name, setting) + lost, hang=10)
