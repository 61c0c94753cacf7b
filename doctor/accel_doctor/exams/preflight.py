"""Gathers the evidence of a preflight: the launch that would be made here, and probes on its ranks."""

import os
import shutil
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import msgspec

from accel_doctor import __version__
from accel_doctor.background import Background
from accel_doctor.errors import RunDirectoryError
from accel_doctor.evidence import Asked, Ending, Evidence, Host, ProbeOptions, Rank, WrapPlan
from accel_doctor.evidence.probe_options import PROBE_FILE
from accel_doctor.evidence.rank_file import read_ranks
from accel_doctor.exams.meet import Together, examine_together
from accel_doctor.interrupts import Interrupts
from accel_doctor.launch.endings import reconcile
from accel_doctor.launch.meeting import Meeting
from accel_doctor.launch.place import Place
from accel_doctor.launch.process import LaunchedProcess
from accel_doctor.launch.resolve import resolve
from accel_doctor.launch.watch import Patience, Supervisor, Watched
from accel_doctor.launch.wrap_classes import read_wrap_classes
from accel_doctor.launch.wrap_plan import read_wrap_plan
from accel_doctor.machine.devices import DeviceSampler, read_devices
from accel_doctor.machine.host import read_host
from accel_doctor.machine.interfaces import bound_interfaces, with_interfaces
from accel_doctor.machine.interpreter import read_interpreter
from accel_doctor.machine.storage import check_storage, clean_storage, is_usable
from accel_doctor.machine.visible import with_visible
from accel_doctor.progress import Progress
from accel_doctor.run_directory import is_writable
from accel_doctor.unseen import why_unseen

REPORT_S = 8.0
"""Kept back from the deadline for stopping, reading, judging and printing."""
JUDGING_S = 4.0
"""Kept back for judging and printing alone."""
STOP_GRACE_S = 1.0
BUSY_S = 6.0
"""Load on devices: the driver averages over up to a second, and a judgement needs 5 s of it."""
DEVICE_SWEEP_S = 10.0
CPU_SWEEP_S = 0.4
HOST_WAIT_S = 3.0
PLAN_STOP_S = 1.0
OUTPUT_LINES = 400


class Request(NamedTuple):
    """What one preflight is asked to do."""

    words: tuple[str, ...]
    """What the user typed after ``--``."""
    asked: Asked
    checkpoint_dir: str | None
    run_dir: Path
    cwd: Path
    deadline_s: float
    show: Callable[[Progress], None]
    interrupts: Interrupts
    place: Place | None = None
    """Which machine of a job over several this is; ``None`` for a job of one."""


class Run(NamedTuple):
    """What was seen of the launch."""

    ranks: tuple[Rank, ...] | None = None
    ending: Ending | None = None
    absent: str = ""
    """Why there are no ranks."""


def examine(request: Request) -> Evidence:
    """Launch the probe ranks and return the evidence that they and the machine give.

    Raises:
        UsageError: what was asked cannot be launched at all.
    """
    exam = _Preflight(request)
    return exam.examine() if request.place is None else exam.examine_together(request.place)


class _Preflight:
    def __init__(self, request: Request) -> None:
        self.started_s = time.time()
        self.request = request
        self.meeting: Meeting | None = None
        self.environment = dict(os.environ)
        self.devices, self.no_devices = read_devices(self.environment)
        self.interpreter = read_interpreter(self.environment)
        self.host = Background(lambda: with_interfaces(read_host(self.environment)))
        self.storage = check_storage(request.checkpoint_dir) if request.checkpoint_dir else None
        self.resolved = resolve(
            request.words,
            environment=self.environment,
            device_count=self._visible(),
            torch_build=self.interpreter,
            cwd=request.cwd,
        )
        if self.devices:
            self.devices = with_visible(self.devices, self._environment_of_ranks())
        self.options = self._options()
        self.given_up = threading.Event()
        self.plan = Background(self._read_plan)

    def examine(self) -> Evidence:
        try:
            return self._examine()
        finally:
            self.given_up.set()
            self.plan.result(PLAN_STOP_S)

    def examine_together(self, place: Place) -> Evidence:
        """Return the evidence of all machines, or this one's part of it."""
        on_devices = bool(self._visible() and self.interpreter.torch_cuda)
        together = Together(
            place=place,
            run_dir=self.request.run_dir,
            environment=self._environment_of_ranks(),
            backend="nccl" if on_devices else "gloo",
            until=lambda: time.monotonic() + self._left_s() - JUDGING_S,
            ends_all=True,
        )
        return examine_together(self._examine_in, together)

    def _examine_in(self, meeting: Meeting) -> Evidence:
        self.meeting = meeting
        return self.examine()

    def _left_s(self) -> float:
        return self.started_s + self.request.deadline_s - time.time()

    def _examine(self) -> Evidence:
        unreadable = [f.path for f in self.resolved.launch.config_files if f.error]
        if unreadable:
            return self._evidence(Run(absent=f"nothing was launched: {unreadable[0]} cannot be read"))
        return self._evidence(self._run())

    def _visible(self) -> int:
        return sum(d.visible and not d.lost for d in self.devices.devices) if self.devices else 0

    def _environment_of_ranks(self) -> dict[str, str]:
        gpu_ids = self.resolved.launch.value("gpu_ids")
        chosen = {} if gpu_ids in (None, "all") else {"CUDA_VISIBLE_DEVICES": str(gpu_ids)}
        return {**self.environment, **self.resolved.environment, **chosen}

    def _run(self) -> Run:
        (self.request.run_dir / PROBE_FILE).write_bytes(msgspec.json.encode(self.options))
        sampler = DeviceSampler(self.devices) if self.devices and self._visible() else None
        if sampler:
            sampler.start()
        self.request.interrupts.shield()
        launched = self._start()
        watched, left = self._supervise(launched)
        if not self.request.run_dir.is_dir():
            raise RunDirectoryError(f"the run directory {self.request.run_dir} was removed during the exam")
        clean_storage(self.options)
        ranks = self._read_ranks(launched, watched)
        if sampler:
            self.devices = sampler.stop({r.pid: r for r in ranks})
        return Run(ranks, _ending(launched, watched, left))

    def _read_plan(self) -> tuple[WrapPlan | None, str]:
        if self.request.asked.model is None:
            return None, "give --model"
        timeout_s = self.request.deadline_s - REPORT_S
        return read_wrap_plan(
            self.request.asked.model,
            self.resolved.launch,
            cwd=self.request.cwd,
            timeout_s=timeout_s,
            enough=lambda: self.given_up.is_set() or self.request.interrupts.asked(),
        )

    def _options(self) -> ProbeOptions:
        asked, on_devices = self.request.asked, bool(self._visible() and self.interpreter.torch_cuda)
        return ProbeOptions(
            batch_size=asked.batch_size or 2,
            gradient_accumulation_steps=asked.gradient_accumulation_steps or 1,
            busy_s=BUSY_S if on_devices else 0.0,
            sweep_s=DEVICE_SWEEP_S if on_devices else CPU_SWEEP_S,
            deadline_s=self.started_s + self.request.deadline_s,
            doctor_pid=os.getpid(),
            doctor_host=socket.gethostname(),
            several_machines=self.request.place is not None,
            checkpoint_dir=self.request.checkpoint_dir if self.storage and is_usable(self.storage) else None,
        )

    def _start(self) -> LaunchedProcess:
        temporary = self.request.run_dir / "tmp"
        temporary.mkdir(mode=0o700)
        return LaunchedProcess(
            (*self.resolved.command, self.resolved.module_flag, "accel_doctor.probes", str(self.request.run_dir)),
            environment={
                **self.environment,
                **self.resolved.environment,
                "PYTHONSAFEPATH": "1",
                "TMPDIR": str(temporary),
            },
            cwd=self.request.cwd,
            output=self.request.run_dir / "output.log",
        )

    def _supervise(self, launched: LaunchedProcess) -> tuple[Watched, tuple[int, ...]]:
        request = self.request
        patience = Patience(deadline_s=request.deadline_s - REPORT_S - (time.time() - self.started_s))
        supervisor = Supervisor(launched, request.run_dir, patience, request.show, self.resolved.launch.asked_processes)
        supervisor.meeting = self.meeting
        try:
            request.interrupts.expose()
            watched = supervisor.watch()
        except KeyboardInterrupt:
            watched = supervisor.result("interrupt")
        finally:
            request.interrupts.shield()
            left = launched.stop(STOP_GRACE_S, request.interrupts.hurry)
            shutil.rmtree(request.run_dir / "tmp", ignore_errors=True)
        return watched, left

    def _read_ranks(self, launched: LaunchedProcess, watched: Watched) -> tuple[Rank, ...]:
        return reconcile(
            (*read_ranks(self.request.run_dir), *watched.unseen),
            watched.ranks,
            "\n".join(launched.tail(OUTPUT_LINES)),
            host=socket.gethostname(),
        )

    def _evidence(self, run: Run) -> Evidence:
        stopped_by = run.ending.stopped_by if run.ending else ""
        host = self.host.result(HOST_WAIT_S)
        plan, no_plan = self.plan.result(self._plan_s(stopped_by)) or (None, "the model was not built in time")
        return Evidence(
            doctor_version=__version__,
            exam="preflight",
            started_s=self.started_s,
            run_dir=os.path.relpath(self.request.run_dir, self.request.cwd),
            asked=self.request.asked,
            launch=self.resolved.launch,
            hosts=None if host is None else (self._host(host),),
            devices=self.devices,
            ranks=run.ranks,
            storage=self.storage,
            plan=plan,
            wrap_classes=None if self.request.asked.model else read_wrap_classes(self.resolved.launch, timeout_s=1.0),
            ending=run.ending,
            absent=self._absent(run, no_plan),
            cut=self._cut(stopped_by),
            timings={"exam_s": round(time.time() - self.started_s, 3)},
        )

    def _host(self, host: Host) -> Host:
        """Return this machine with its Python, and with what the backends take under the launch's own variables."""
        bound = bound_interfaces(host.interfaces or (), self._environment_of_ranks())
        return msgspec.structs.replace(host, interpreter=self.interpreter, bound=bound)

    def _cut(self, stopped_by: str) -> str:
        if self.request.interrupts.asked():
            return "interrupt"
        if not is_writable(self.request.run_dir):
            return "disk"
        return stopped_by if stopped_by == "deadline" else ""

    def _plan_s(self, stopped_by: str) -> float:
        """Return how long the plan may still take; what ended the launch early is not held back for it."""
        left_s = self.started_s + self.request.deadline_s - REPORT_S / 2 - time.time()
        return max(0.0, min(left_s, PLAN_STOP_S) if stopped_by else left_s)

    def _absent(self, run: Run, no_plan: str) -> dict[str, str]:
        unwritable = "the checkpoint directory cannot be written" if self.storage else "give --checkpoint-dir"
        reasons = {
            "devices": self.no_devices,
            "hosts": "the machine did not answer in time",
            "ranks": run.absent,
            "plan": no_plan,
            "storage": "give --checkpoint-dir",
            "ranks.storage": unwritable,
            "ranks.pairs": "" if self.request.place else "the launch is of one machine",
            **why_unseen(run.ranks or ()),
        }
        return {subject: why for subject, why in reasons.items() if why}


def _ending(launched: LaunchedProcess, watched: Watched, left: tuple[int, ...]) -> Ending:
    code = watched.exit_code
    return Ending(
        exit_code=code if code is not None and code >= 0 else None,
        signal=-code if code is not None and code < 0 else None,
        stopped_by=watched.stopped_by,
        launcher_state=watched.launcher_state,
        output_tail=launched.tail(),
        left_over=left,
    )
