"""What is shown of jobs that ran already: the devices with who computes there, and where each rank stands."""

from collections.abc import Iterator

from accel_doctor.evidence import Device, DeviceProcess, Evidence, Job, Sample, Seen
from accel_doctor.reports.headline import model_of
from accel_doctor.reports.layout import DIM, Page, counted
from accel_doctor.standing import standing

GIB = 2**30
MAX_RANKS = 16
MAX_JOBS = 8


def head(page: Page, evidence: Evidence) -> None:
    """Add ``ws1 · your job 4312 · 2 s window``, the devices and the ranks."""
    page.line("", " · ".join(part for part in (_host(evidence), _jobs(evidence), _window(evidence)) if part))
    for row in table(device_rows(evidence)):
        page.verbatim(" ", row, DIM)
    for job in (evidence.jobs or ())[:MAX_JOBS]:
        _job(page, evidence, job)
    if evidence.watched and evidence.jobs and evidence.watched.no_stacks:
        page.line("stacks  ", f"none: {evidence.watched.no_stacks}", DIM)


def _host(evidence: Evidence) -> str:
    devices = evidence.devices.devices if evidence.devices else ()
    hosts = [h.name for h in evidence.hosts or ()] or [d.host for d in devices[:1]]
    return hosts[0] if hosts else ""


def _jobs(evidence: Evidence) -> str:
    jobs = evidence.jobs or ()
    if len(jobs) == 1:
        return f"your job {jobs[0].pid}" if jobs[0].own else f"job {jobs[0].pid} of {jobs[0].user}"
    return f"{len(jobs)} jobs" if jobs else "no job found"


def _window(evidence: Evidence) -> str:
    watched = evidence.watched
    if watched is None or not watched.looks:
        return ""
    return f"{watched.window_s:.0f} s window" + (f", stacks by {watched.stacks}" if watched.stacks else ", no stacks")


def device_rows(evidence: Evidence) -> list[tuple[str, ...]]:
    """Return a row a device, with a head."""
    devices = evidence.devices.devices if evidence.devices else ()
    if not devices:
        return []
    names = {r.pid: _process(job, r) for job in evidence.jobs or () for r in job.ranks}
    head_ = ("GPU/CUDA/PCI", "busy", "power", "memory", "process")
    return [head_, *(_device_row(evidence, d, names) for d in devices)]


def _device_row(evidence: Evidence, device: Device, names: dict[int, str]) -> tuple[str, ...]:
    cuda = _cuda_index(evidence, device)
    model = model_of(device.name, evidence.devices.vendor) if device.name and evidence.devices else "no answer"
    bus = device.pci_bus_id[5:].removesuffix(".0").removesuffix(":00")
    where = f"{device.index}/{'-' if cuda is None else cuda}/{bus}"
    return (
        f"{where} {model}",
        _number(_mean(device, "busy_pct"), "%"),
        _of(_mean(device, "power_w"), device.power_limit_w, "W", 0),
        _of(_gib(_mean(device, "memory_used_bytes")), _gib(device.memory_total_bytes), "GiB", 1),
        _processes(device, names),
    )


def _cuda_index(evidence: Evidence, device: Device) -> int | None:
    """Return the number that the only job's processes give a device; ``None`` where it is hidden or jobs differ."""
    visible = {job.visible for job in evidence.jobs or ()}
    if len(visible) != 1:
        return device.cuda_index if not visible else None
    (seen,) = visible
    return seen.index(device.index) if seen is not None and device.index in seen else None


def _mean(device: Device, field: str) -> float | None:
    values = [value for s in device.samples if (value := _value(s, field)) is not None]
    return sum(values) / len(values) if values else None


def _value(sample: Sample, field: str) -> float | None:
    value: float | None = getattr(sample, field)
    return value


def _gib(size: float | None) -> float | None:
    return None if size is None else size / GIB


def _number(value: float | None, unit: str) -> str:
    return "?" if value is None else f"{value:.0f} {unit}"


def _of(value: float | None, most: float | None, unit: str, digits: int) -> str:
    if value is None:
        return "?"
    return f"{value:.{digits}f}{f'/{most:.0f}' if most else ''} {unit}"


def _processes(device: Device, names: dict[int, str]) -> str:
    if device.lost or not device.uuid:
        return "lost" if device.lost else "does not answer"
    if device.processes_during is None:
        return "not told (pids are the host's)"
    shown = [names.get(p.pid) or _other(p) for p in device.processes_during]
    more = f" and {len(shown) - 3} more" if len(shown) > 3 else ""
    return ("; ".join(shown[:3]) + more) or "none"


def _process(job: Job, seen: Seen) -> str:
    word = f"{job.script[0].rpartition('/')[2]}" if job.script else seen.name
    return f"{seen.pid} {'' if seen.rank is None else f'rank {seen.rank} '}{word}"


def _other(process: DeviceProcess) -> str:
    kind = " (display)" if process.graphics else ""
    return " ".join(part for part in (str(process.pid), process.name, process.user) if part) + kind


def _job(page: Page, evidence: Evidence, job: Job) -> None:
    line = " ".join(job.typed)
    page.line("job     ", f"{line[:160]}   {described(job)}", DIM)
    if len(job.ranks) > 1 or not (evidence.devices and evidence.devices.devices):
        for text in table(list(rank_rows(job))):
            page.verbatim("        ", text)


def described(job: Job) -> str:
    """Return ``torchrun, 2 ranks, through bash train.sh``."""
    kinds = {"environment": "no launcher alive", "spawned": "started its ranks itself"}
    parts = [kinds.get(job.how, job.how), counted(len(job.ranks), "rank" if len(job.ranks) > 1 else "process")]
    parts[1] = "1 process" if len(job.ranks) == 1 else parts[1]
    return ", ".join([*parts, *([f"through {job.through[0]}"] if job.through else [])])


def rank_rows(job: Job) -> Iterator[tuple[str, ...]]:
    """Yield a row a rank: who, pid, device, CPU, and where it stands."""
    for seen in job.ranks[:MAX_RANKS]:
        where = standing(seen)
        devices = ", ".join(f"GPU {i}" for i in seen.devices) or "no GPU"
        cpu = "?" if where.cpu_share is None else f"{100 * where.cpu_share:.0f} % CPU"
        yield seen.title, str(seen.pid), devices, cpu, where.what
    if len(job.ranks) > MAX_RANKS:
        yield f"and {len(job.ranks) - MAX_RANKS} more", "", "", "", ""


def table(rows: list[tuple[str, ...]]) -> list[str]:
    """Return rows with their columns aligned; numbers stand right, names left."""
    if not rows:
        return []
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    return ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip() for row in rows]
