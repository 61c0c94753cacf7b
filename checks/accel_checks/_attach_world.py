"""Whether the ranks of a job that runs already are one world: apart, died, left early. Pure."""

from collections.abc import Iterator

import msgspec

from accel_checks._attach import (
    STARTING,
    alive,
    demand_begun,
    host_of,
    line_of,
    lost,
    numbers,
    people,
    script_of,
    spread,
    standings,
    the_job,
)
from accel_doctor.check import Finding, Location, NotApplicable
from accel_doctor.evidence import Evidence, Job, Seen
from accel_doctor.standing import WITH_PEERS

HANDSHAKE_BYTES = 16384
"""What a process group exchanges to be opened is a few hundred bytes a peer."""
APART_S = 120.0
"""Age from which ranks without any connection, and without a stack, count as apart."""
ELASTIC = ("accelerate", "torchrun")
"""Launchers that end all ranks when one fails: a rank that is gone beside them left with exit code 0."""
WORKING = 0.2
"""Share of a core that a main thread takes when it trains on the CPU, also on a crowded machine."""
AT_WORK = ("backward", "data", "fetch", "device", "save")


def apart(evidence: Evidence) -> Iterator[Finding]:
    """LCH003: ranks of one launch that have no connection to each other nor to the place where they meet."""
    job = the_job(evidence)
    living = alive(job)
    if len(living) < 2:
        raise NotApplicable("one process: there is nobody to be connected with")
    demand_begun(evidence, job)
    if any(r.peers is None for r in living):
        raise NotApplicable("the sockets of the ranks may not be read")
    lonely = [r for r in living if not r.peers and not r.rendezvous]
    silent = [r for r in living if _silent(evidence, r)]
    if max(len(lonely), len(silent)) < len(living) or len(living) < (job.asked or 2):
        return
    _demand_at_work(evidence, job)
    if silent and not any(_trains(r) for r in living):
        raise NotApplicable("nothing went between the ranks, and they were not seen to train")
    count = len(living)
    on_cpu = evidence.devices is None or not spread(evidence.devices.devices, job)
    yield Finding(
        message=f"{count} processes of `{line_of(job)}` train, and {_nothing(silent)}: {count} separate runs",
        seen=f"no socket between {people(living)}, none to MASTER_PORT"
        if not silent
        else f"{max(r.peer_bytes or 0 for r in silent)} bytes between {people(living)} so far, 0 while they were "
        "looked at",
        wanted=f"one world of size {count}",
        ranks=numbers(living),
        values={"processes": count},
        host=host_of(evidence),
        fix="make the devices visible to torch, or, to run on CPU, set ACCELERATE_USE_CPU=1; the script must build its "
        "Accelerator (or init_process_group) in every process",
        command=_joined(job, count, on_cpu=on_cpu),
        evidence=("each trains on all of the data, writes every file and logs every line",),
    )


def _silent(evidence: Evidence, seen: Seen) -> bool:
    """Return whether a rank has connections to its peers that carried no more than what opens them.

    Wrapping a model sends all of its parameters once. On devices the data goes past these sockets.
    """
    on_device = evidence.devices is not None and bool(seen.devices)
    few = seen.peer_bytes is not None and seen.peer_bytes < HANDSHAKE_BYTES
    return not on_device and few and seen.peer_bytes_during == 0


def _nothing(silent: list[Seen]) -> str:
    return "nothing goes between them" if silent else "none has a connection to another"


def _joined(job: Job, count: int, *, on_cpu: bool) -> str:
    before = "ACCELERATE_USE_CPU=1 " if on_cpu else ""
    return f"{before}accelerate launch --multi_gpu --num_processes {count} --num_machines 1 {script_of(job)}"


def _demand_at_work(evidence: Evidence, job: Job) -> None:
    """Refuse to judge ranks that may not have come to their meeting yet.

    Raises:
        NotApplicable: neither a stack nor their age shows that they train.
    """
    each = [s for _, s in standings(job)]
    if any(s.kind in STARTING for s in each):
        raise NotApplicable("the ranks have not met yet")
    if all(s.kind in AT_WORK or _trains(r) or (s.cpu_share or 0) > WORKING for r, s in standings(job)):
        return
    now = evidence.started_s + evidence.timings.get("exam_s", 0.0)
    if any(r.started_s is None or now - r.started_s < APART_S for r in alive(job)):
        raise NotApplicable("no connection was seen between the ranks, nor that they train already")


def _trains(seen: Seen) -> bool:
    """Return whether a stack of a rank was inside a module's forward, an optimizer's step or a backward."""
    paths = [f.path for look in seen.looks for f in look.stack or ()]
    return any(part in path for path in paths for part in ("/torch/optim/", "/torch/nn/", "/torch/autograd/"))


def missing(evidence: Evidence) -> Iterator[Finding]:
    """RNK001: fewer ranks than the launch or the environment of the others promises."""
    job = the_job(evidence)
    living = alive(job)
    asked = job.asked or 0
    if not living:
        raise NotApplicable("no rank is alive")
    demand_begun(evidence, msgspec.structs.replace(job, ranks=tuple(living)))
    died = [r for r in job.ranks if r.pid in job.ended]
    gone = lost(job)
    if len(living) >= asked and not died:
        return
    if not gone and not died:
        raise NotApplicable(f"{len(living)} of {asked} processes were found, and they are not numbered")
    who = people(died) if died else "local rank " + ", ".join(map(str, gone[:6]))
    how = "ended while it was looked at" if died else "is not there: it died, or never came"
    each = standings(job)
    if any(s.kind not in ("", *WITH_PEERS) or not s.waiting for _, s in each):
        raise NotApplicable("some ranks have ended, and the others work on")
    if job.how in ELASTIC and job.launcher and not died:
        raise NotApplicable("its launcher lives: a rank that is not there has ended well")
    left = [f"{people([r])} {s.what}" for r, s in each[:4]]
    yield Finding(
        message=f"{who} of job {job.pid} {how}; {len(living)} of {asked or len(job.ranks)} ranks live",
        seen="; ".join(left),
        wanted=f"{asked or len(job.ranks)} ranks",
        values={"ranks_seen": len(living), "ranks_asked": asked or len(job.ranks)},
        ranks=numbers(died),
        host=host_of(evidence),
        evidence=() if job.launcher else ("its launcher is gone too: nobody will end the others",),
    )


def left_early(evidence: Evidence) -> Iterator[Finding]:
    """HNG005: a rank that is gone while its launcher lives and its peers wait in a collective."""
    job = the_job(evidence)
    living = alive(job)
    if not (job.how in ELASTIC and job.launcher and living):
        raise NotApplicable("the launcher does not tell how a rank ended")
    demand_begun(evidence, job)
    gone = lost(job)
    each = standings(job)
    if gone and all(s.waiting and s.kind in WITH_PEERS for _, s in each):
        first = each[0][1]
        yield Finding(
            message=f"local rank {', '.join(map(str, gone[:6]))} of job {job.pid} has left the script, and "
            f"{people(living)} {first.what}",
            seen="; ".join(f"{people([r])} {s.what}" for r, s in each[:4]),
            wanted="every rank makes the same calls to the end",
            values={"ranks_seen": len(living), "ranks_asked": job.asked or 0},
            host=host_of(evidence),
            location=Location(path=first.site.path, line=first.site.line) if first.site else None,
            evidence=("its launcher lives on: it would have ended all ranks after a failure",),
        )
