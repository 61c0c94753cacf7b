"""Gathers the evidence of the user's own run: his command, unchanged, with a tracer in each rank."""

import os
import shutil
import socket
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from accel_doctor import __version__
from accel_doctor.background import Background
from accel_doctor.errors import DoctorError
from accel_doctor.evidence import Asked, Ending, Evidence, Interpreter, Launch, Rank, RankEnd, StallSeen
from accel_doctor.evidence.run import Stall
from accel_doctor.evidence.trace_file import read_traced_ranks
from accel_doctor.exams.meet import Together, examine_together
from accel_doctor.exams.site_code import read_code
from accel_doctor.launch.job import Job, Signals, split_assignments, traced
from accel_doctor.launch.meeting import Meeting
from accel_doctor.launch.place import Place
from accel_doctor.launch.resolve import resolve
from accel_doctor.launch.run_watch import Ended, Limits, RunWatch, make_shm
from accel_doctor.machine.device_watch import DeviceWatch
from accel_doctor.machine.host import read_host
from accel_doctor.machine.interfaces import with_interfaces
from accel_doctor.machine.interpreter import read_interpreter
from accel_doctor.machine.pci import device_nodes
from accel_doctor.machine.visible import with_visible

STOP_GRACE_S = 5.0
STALLED_GRACE_S = 1.0
HOST_WAIT_S = 3.0
PEERS_S = 60.0
"""How long the other machines' runs may last after this one's."""


class Request(NamedTuple):
    """What one run is asked to do."""

    words: tuple[str, ...]
    """The user's command."""
    asked: Asked
    run_dir: Path
    cwd: Path
    limits: Limits
    place: Place | None = None
    """Which machine of a job over several this is; ``None`` for a job of one."""


class _Run(NamedTuple):
    ended: Ended
    left: tuple[int, ...]
    ranks: tuple[Rank, ...]


def examine(request: Request) -> Evidence:
    """Start the user's command, watch it to its end, and return the evidence.

    Raises:
        UsageError: the command cannot be started.
    """
    if request.place is None:
        return _examine(request, None)
    together = Together(
        place=request.place,
        run_dir=request.run_dir,
        environment={**os.environ, **split_assignments(request.words)[0]},
        backend="nccl" if device_nodes(Path("/")) else "gloo",
        until=lambda: time.monotonic() + PEERS_S,
        ends_all=False,
    )
    return examine_together(lambda meeting: _examine(request, meeting), together)


def _examine(request: Request, meeting: Meeting | None) -> Evidence:
    """Return this machine's evidence; ``meeting`` speaks for the job's other machines."""
    started_s = time.time()
    environment = dict(os.environ)
    host = Background(lambda: with_interfaces(read_host(environment)))
    assigned, _ = split_assignments(request.words)
    watch = DeviceWatch({**environment, **assigned})
    shm = make_shm()
    try:
        run = _run(request, environment, shm, watch, meeting)
    finally:
        if shm:
            shutil.rmtree(shm, ignore_errors=True)
    devices, no_devices = watch.stop(run.ranks)
    interpreter = read_interpreter(environment)
    here = host.result(HOST_WAIT_S)
    visible = sum(d.visible for d in devices.devices) if devices else 0
    launch = _launch(request, environment, visible, interpreter)
    if devices and launch.value("gpu_ids") not in (None, "all"):
        chosen = {"CUDA_VISIBLE_DEVICES": str(launch.value("gpu_ids"))}
        devices = with_visible(devices, {**environment, **assigned, **chosen})
    return Evidence(
        doctor_version=__version__,
        exam="run",
        started_s=started_s,
        run_dir=os.path.relpath(request.run_dir, request.cwd),
        asked=request.asked,
        launch=launch,
        hosts=None if here is None else (msgspec.structs.replace(here, interpreter=interpreter, left_over=None),),
        devices=devices,
        ranks=run.ranks,
        code=read_code(run.ranks, request.cwd),
        stall=StallSeen(stalled=run.ended.stalled, limit_s=request.limits.stall_s),
        ending=_ending(run),
        absent=_absent(no_devices, run.ranks),
        cut=run.ended.stopped_by if run.ended.stopped_by in ("deadline", "interrupt") else "",
        timings={"exam_s": round(time.time() - started_s, 3)},
    )


def _run(
    request: Request, environment: dict[str, str], shm: str, devices: DeviceWatch, meeting: Meeting | None
) -> _Run:
    with Signals() as signals:
        assigned, command = split_assignments(request.words)
        job = Job(
            command,
            environment={**traced(environment, request.run_dir, shm, request.limits.steps), **assigned},
            cwd=request.cwd,
        )
        signals.job = job
        watch = RunWatch(job, request.run_dir, shm, request.limits, signals)
        watch.meeting = meeting
        ended = watch.watch(devices.mark)
        grace = STALLED_GRACE_S if ended.stopped_by in ("stalled", "rehearsed") else STOP_GRACE_S
        left = job.stop(grace, signals.hurry) if ended.exit_code is None else _sweep(job)
    ranks = tuple(_ended(rank, ended) for rank in read_traced_ranks(request.run_dir))
    return _Run(ended, left, ranks)


def _sweep(job: Job) -> tuple[int, ...]:
    """Leave what the job itself left running alone, and say what it was."""
    return tuple(job.family())


def _ended(rank: Rank, ended: Ended) -> Rank:
    """Return a rank with how it ended and what was seen of it from outside."""
    watch = ended.ranks.get(rank.pid) if rank.host == socket.gethostname() else None
    seen = ended.ends.get(rank.pid) if watch else None
    ended_badly = seen is not None and (seen.how == "signal" or bool(seen.exit_code))
    end = seen if rank.end is not None and rank.end.how == "finished" and ended_badly else rank.end or seen
    if end is None and watch is not None:
        alive = watch.state not in ("", "Z")
        failed = rank.trace.failure if rank.trace else None
        how = "error" if failed else "stopped" if alive or ended.stopped_by else "vanished"
        end = RankEnd(how=how, error=f"{failed.kind}: {failed.message[:300]}" if failed else "")
    trace = rank.trace
    place = ended.places.get(rank.pid)
    lost = (end is not None and end.how in ("vanished", "signal", "exit")) or bool(watch and watch.judged)
    if trace is not None and place is not None and lost:
        trace = msgspec.structs.replace(trace, position=place, steps=place.steps)
    if trace is not None and rank.pid in ended.stacks and watch is not None:
        stall = Stall(at_s=time.time(), stack=ended.stacks[rank.pid])
        trace = msgspec.structs.replace(trace, stall=stall)
    return msgspec.structs.replace(rank, end=end, watch=watch, trace=trace)


def _ending(run: _Run) -> Ending:
    code = run.ended.exit_code
    return Ending(
        exit_code=code if code is not None and code >= 0 else None,
        signal=-code if code is not None and code < 0 else None,
        stopped_by=run.ended.stopped_by,
        left_over=run.left if run.ended.exit_code is None else (),
    )


def _launch(request: Request, environment: dict[str, str], visible: int, interpreter: Interpreter) -> Launch:
    """Return what the command asks for; a command that we cannot read asks for nothing we know."""
    try:
        launch = resolve(
            request.words, environment=environment, device_count=visible, torch_build=interpreter, cwd=request.cwd
        ).launch
    except DoctorError:
        return Launch(launcher=Path(request.words[0]).name, argv=request.words, settings={})
    return msgspec.structs.replace(launch, argv=request.words, rendezvous=None)


def _absent(no_devices: str, ranks: tuple[Rank, ...]) -> dict[str, str]:
    reasons = {"devices": no_devices}
    if not ranks:
        reasons["ranks.trace"] = "no rank loaded the tracer: python -I, -S or -E, or the command failed before it"
    return {subject: why for subject, why in reasons.items() if why}
