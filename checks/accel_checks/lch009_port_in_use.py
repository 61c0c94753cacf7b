"""LCH009: the rendezvous port is taken."""

from collections.abc import Iterator

from accel_checks._launches import launch_of
from accel_checks._log import from_log
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity
from accel_doctor.evidence import Evidence, Rendezvous
from accel_doctor.places import place


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Report who listens where the ranks were to meet."""
    launch = launch_of(evidence)
    port = launch.rendezvous
    if port is None:
        raise NotApplicable("this machine opens no port that is fixed before the start")
    if port.taken:
        moves = launch.launcher == "accelerate" and launch.value("num_machines") in (None, 1)
        yield _finding(port, moves=moves)


def _finding(port: Rendezvous, *, moves: bool) -> Finding:
    name = f" ({port.holder})" if port.holder else ""
    holder = f"pid {port.holder_pid}{name}" if port.holder_pid else "a process"
    then = "accelerate takes another port by itself" if moves else "the launch stops"
    return Finding(
        message=f"port {port.port}, where the ranks meet, is taken by {holder}; {then}",
        severity=Severity.WARNING if moves else Severity.ERROR,
        seen=f"{holder} listens on port {port.port} ({port.source})",
        wanted="a free port",
        values={"port": port.port, **({"holder_pid": port.holder_pid} if port.holder_pid else {})},
        location=place(port.source),
    )


CHECK = Check(
    id="LCH009",
    name="port-in-use",
    invariant=Invariant.PRESENT,
    title="The port where the ranks meet is taken",
    why="On one machine accelerate moves to another port and says so; over several machines the launch stops.",
    fix="end the process if it is left over, or name another port: --main_process_port, where 0 takes a free one",
    judges=(Judge(needs=("launch",), judge=judge), from_log("LCH009")),
)
