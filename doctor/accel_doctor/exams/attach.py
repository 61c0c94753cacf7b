"""Gathers the evidence of jobs that run already, from outside and without touching them."""

import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from accel_doctor import __version__
from accel_doctor.background import Background
from accel_doctor.errors import UsageError
from accel_doctor.evidence import Asked, Device, Devices, Evidence, Rank
from accel_doctor.evidence.processes import Job, Seen
from accel_doctor.exams.attach_jobs import Describer
from accel_doctor.exams.attach_watch import Watcher, Window
from accel_doctor.interrupts import Interrupts
from accel_doctor.machine import stacks
from accel_doctor.machine.device_processes import NO_HOST_PIDS
from accel_doctor.machine.devices import read_devices
from accel_doctor.machine.host import read_host
from accel_doctor.machine.jobs import Found, Search, Wanted, search
from accel_doctor.machine.live_sampler import LiveSampler
from accel_doctor.standing import GONE, at_rest, loads, waiting_share

DEVICES_S = 8.0
"""How long the driver may take; one without persistence mode wakes a device a second."""
HOST_WAIT_S = 2.0
REPORT_S = 1.0
"""Kept back from the deadline for judging and printing."""
LEAST_S, MOST_S = 2.0, 6.0
"""The window: 2 s show a device without a process; where one seems idle or ranks seem to wait, 6 s."""
SEEM_TO_WAIT = 0.6
"""Share of a rank's stacks from which it may wait for one that never waits itself."""
LOW_PCT, FULL_PCT, LOW_POWER = 10.0, 95.0, 0.35


class Request(NamedTuple):
    """What one attach is asked to do."""

    wanted: Wanted
    asked: Asked
    cwd: Path
    interrupts: Interrupts
    interval_s: float = 0.1
    duration_s: float | None = None
    """``None``: as long as it takes, 2 to 6 s."""
    deadline_s: float = 30.0
    run_dir: Path | None = None
    root: Path = Path("/")
    show: Callable[[Evidence], None] | None = None
    """Called about twice a second with what is seen so far: for a live table."""


def examine(request: Request) -> Evidence:
    """Find the jobs, look at them for the window, and return the evidence.

    Raises:
        UsageError: a process that was named is not there, or is no Python that trains.
    """
    return _Attach(request).examine()


class _Attach:
    def __init__(self, request: Request) -> None:
        self.request = request
        self.started_s = time.time()
        self._began = time.monotonic()
        self.folder = request.root / "proc" if (request.root / "proc/1").exists() else Path("/proc")
        reading = Background(lambda: read_devices({}, root=request.root, limit_s=DEVICES_S))
        self.host = Background(lambda: read_host(os.environ))
        devices, self.no_devices = reading.result(DEVICES_S + 1) or (None, "the driver did not answer in time")
        self.devices = None if devices is None else _from_now_on(devices)
        self.search = self._search()
        describer = Describer(self.folder, self.search.processes, self.devices)
        self.found = {job.root.pid: job for job in self.search.jobs}
        self.jobs = [describer.job(job) for job in self.search.jobs]
        self.watcher = Watcher(self.found, self.jobs, self.folder, describer.reader)
        self.sampler = LiveSampler(self.devices, request.interval_s) if self.devices else None
        self._shown_s = 0.0

    def _search(self) -> Search:
        wanted = self.request.wanted._replace(on_devices=frozenset(_listed(self.devices)))
        for pid in wanted.pids:
            if not (self.folder / str(pid)).exists():
                raise UsageError(f"no process has the pid {pid}")
        found = search(wanted, Path(self.folder.parent))
        for pid in wanted.pids:
            if not any(pid in job.pids or pid in job.above for job in found.jobs):
                raise UsageError(f"pid {pid} is no Python that trains, and none runs below it")
        return found

    def examine(self) -> Evidence:
        cut = ""
        began = time.monotonic()
        if self.sampler:
            self.sampler.mark("training")
            self.sampler.start()
        try:
            if self.jobs:
                self.watcher.watch(self._window(), self._unclear, self._pause)
        except KeyboardInterrupt:
            cut = "" if self.request.show else "interrupt"  # Ctrl-C is how a live table is left
        self.request.interrupts.shield()
        devices = self.sampler.stop(_ranks(self.jobs)) if self.sampler else self.devices
        return self._evidence(devices, time.monotonic() - began, cut)

    def _window(self) -> Window:
        left_s = max(0.5, self.request.deadline_s - REPORT_S - (time.monotonic() - self._began))
        if self.request.duration_s is not None:
            return Window(min(self.request.duration_s, left_s), min(self.request.duration_s, left_s))
        return Window(min(LEAST_S, left_s), min(MOST_S, left_s))

    def _pause(self, seconds: float) -> bool:
        """Wait until the next look; ``True`` when every rank has ended."""
        if self.request.show:
            self.request.show(self._so_far())
        time.sleep(max(0.0, seconds))
        looks = self.watcher.latest().values()
        return bool(looks) and all(each and each[-1].state in GONE for each in looks)

    def _so_far(self) -> Evidence:
        devices = self.sampler.so_far(_ranks(self.jobs)) if self.sampler else self.devices
        return self._evidence(devices, time.monotonic() - self._began, "", host=False)

    def _unclear(self) -> bool:
        """Return whether 2 s do not suffice: ranks that seem to wait, or a device that seems idle or spinning."""
        looks = self.watcher.latest()
        together = [[looks.get(r.pid, ()) for r in job.ranks] for job in self.jobs if len(job.ranks) > 1]
        if any(all(at_rest(each) for each in ranks) for ranks in together):
            return True
        shares = [[waiting_share(each) for each in ranks] for ranks in together]
        if any(0 in ranks and any((share or 0) > SEEM_TO_WAIT for share in ranks) for ranks in shares):
            return True
        told = [[look.stack for look in each if look.stack] for each in looks.values()]
        if any(sum(map(loads, stacks)) * 3 >= 2 * len(stacks) > 0 for stacks in told):
            return True
        devices = self.sampler.so_far(_ranks(self.jobs)).devices if self.sampler else ()
        return any(_strange(device) for device in devices)

    def _evidence(self, devices: Devices | None, window_s: float, cut: str, *, host: bool = True) -> Evidence:
        here = self.host.result(HOST_WAIT_S) if host else None
        if here and (self.request.wanted.pids or self.request.wanted.names):
            here = msgspec.structs.replace(here, left_over=None)  # asked about one job: others' remains are beside it
        jobs = tuple(
            _placed(self.watcher.result(job, so_far=not host), devices, self.found[job.pid]) for job in self.jobs
        )
        devices = None if devices is None else _pids_known(devices)
        run_dir = self.request.run_dir
        return Evidence(
            doctor_version=__version__,
            exam="attach",
            started_s=self.started_s,
            run_dir=None if run_dir is None else os.path.relpath(run_dir, self.request.cwd),
            asked=self.request.asked,
            launch=jobs[0].launch if len(jobs) == 1 else None,
            hosts=None if here is None else (here,),
            devices=devices,
            jobs=jobs or None,
            watched=self.watcher.watched(
                window_s, self.search.unread + len(self.search.refused), len(self.search.processes)
            ),
            absent=self._absent(jobs),
            cut=cut,
            timings={"exam_s": round(time.time() - self.started_s, 3), "window_s": round(window_s, 3)},
        )

    def _absent(self, jobs: tuple[Job, ...]) -> dict[str, str]:
        several = f"{len(jobs)} jobs, each with its own"
        launch = "" if len(jobs) == 1 and jobs[0].launch else several if len(jobs) > 1 else "no launcher was found"
        nobody = "" if jobs else self._nobody()
        return {k: v for k, v in (("devices", self.no_devices), ("launch", launch), ("jobs", nobody)) if v}

    def _nobody(self) -> str:
        """Return that nothing was found, and whether others' processes were passed over."""
        wanted = self.request.wanted
        names = f" of {', '.join(wanted.names)}" if wanted.names else ""
        passed = (self.search.others + self.search.unread) > 0 and not wanted.everyone
        said = f"no training process{names} was found" + (" (others' run here: --all, as root)" if passed else "")
        if count := len(self.search.refused):
            who = f"{count} Python processes" if count > 1 else "a Python process"
            said += f"; {who} with a script may not be read ({_pids(self.search.refused)}): {stacks.REFUSED}"
        return said


def _pids(pids: tuple[int, ...]) -> str:
    word = "pid" if len(pids) == 1 else "pids"
    return f"{word} {', '.join(map(str, pids[:4]))}" + (f" and {len(pids) - 4} more" if len(pids) > 4 else "")


def _from_now_on(devices: Devices) -> Devices:
    """Return devices without the look before the start: here the job runs already."""
    return msgspec.structs.replace(
        devices, devices=tuple(msgspec.structs.replace(d, samples=()) for d in devices.devices)
    )


def _listed(devices: Devices | None) -> set[int]:
    every = devices.devices if devices else ()
    return {p.pid for d in every for p in d.processes or () if not p.graphics}


def _ranks(jobs: list[Job]) -> dict[int, Rank]:
    """Return the ranks of all jobs by pid, as the sampler claims their contexts."""
    host = socket.gethostname()
    return {r.pid: Rank(pid=r.pid, host=host, rank=r.rank) for job in jobs for r in job.ranks}


def _strange(device: Device) -> bool:
    """Return whether a device was seen for too short, or one with a process of ours is not plainly at work."""
    if device.samples and device.samples[-1].at_s - device.samples[0].at_s < LEAST_S:
        return True
    if device.processes_during is not None and not any(p.ours for p in device.processes_during):
        return False
    busy = [s.busy_pct for s in device.samples if s.busy_pct is not None]
    power = [s.power_w for s in device.samples if s.power_w is not None]
    if not busy:
        return False
    share = max(power) / device.power_limit_w if power and device.power_limit_w else 1.0
    return sum(busy) / len(busy) < LOW_PCT or (min(busy) >= FULL_PCT and share < LOW_POWER)


def _pids_known(devices: Devices) -> Devices:
    """Return devices with an empty list where the driver's pids proved to be pids here after all."""
    if not devices.host_pids:
        return devices
    return msgspec.structs.replace(devices, devices=tuple(_emptied(d) for d in devices.devices))


def _emptied(device: Device) -> Device:
    if device.processes_during is None and device.absent.get("processes") == NO_HOST_PIDS:
        return msgspec.structs.replace(device, processes_during=())
    return device


def _placed(job: Job, devices: Devices | None, found: Found) -> Job:
    """Return a job with the devices on which the driver lists each rank or a child of its."""
    family = {m.pid: {m.pid, *found.workers.get(m.pid, ())} for m in found.ranks}
    ranks = tuple(_on_devices(r, family.get(r.pid, {r.pid}), devices) for r in job.ranks)
    return msgspec.structs.replace(job, ranks=ranks)


def _on_devices(seen: Seen, family: set[int], devices: Devices | None) -> Seen:
    held: dict[int, int] = {}
    for device in devices.devices if devices else ():
        mine = [p for p in device.processes_during or () if p.pid in family]
        if mine:
            held[device.index] = sum(p.memory_bytes or 0 for p in mine)
    return msgspec.structs.replace(
        seen, devices=tuple(held), device_bytes={str(i): size for i, size in held.items() if size}
    )
