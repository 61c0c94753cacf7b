"""LCH011: the numbers of a launch over several machines do not fit together."""

from collections.abc import Iterator

from accel_checks._launches import launch_of
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable
from accel_doctor.evidence import Evidence, Launch
from accel_doctor.places import place_of

NUMBERS = ("num_processes", "num_machines", "machine_rank")


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Hold machines, ranks and processes of the launch against each other."""
    launch = launch_of(evidence)
    machines = _number(launch, "num_machines")
    if machines is None or machines == 1:
        raise NotApplicable("the launch is of one machine")
    for refusal in launch.refusals:
        if refusal.about == "machines":
            yield Finding(message=refusal.why, location=place_of(launch, refusal.settings[0]))
    if machines < 1:
        yield _finding(launch, "num_machines", f"num_machines is {machines}", "1 or more")
        return
    yield from _rank(launch, machines)
    yield from _processes(launch, machines)


def _number(launch: Launch, name: str) -> int | None:
    value = launch.value(name)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _rank(launch: Launch, machines: int) -> Iterator[Finding]:
    rank = _number(launch, "machine_rank")
    if rank is not None and not 0 <= rank < machines:
        message = f"machine_rank is {rank}, and {machines} machines have ranks 0 to {machines - 1}"
        yield _finding(launch, "machine_rank", message, f"0 to {machines - 1}")


def _processes(launch: Launch, machines: int) -> Iterator[Finding]:
    processes = _number(launch, "num_processes")
    if processes is None or processes < 1:
        return
    each, rest = divmod(processes, machines)
    if not each:
        message = f"{processes} processes over {machines} machines leave none for each"
        yield _finding(launch, "num_processes", message, f"at least {machines} processes")
    elif rest:
        message = f"{processes} processes over {machines} machines: {each} start on each, {rest} dropped in silence"
        yield _finding(launch, "num_processes", message, f"{each * machines} or {(each + 1) * machines} processes")


def _finding(launch: Launch, name: str, message: str, wanted: str) -> Finding:
    return Finding(
        message=message,
        seen=f"{name} {launch.value(name)} ({launch.source(name)})",
        wanted=wanted,
        values={
            n: v for n in ("num_processes", "num_machines", "machine_rank") if (v := _number(launch, n)) is not None
        },
        location=place_of(launch, name),
    )


CHECK = Check(
    id="LCH011",
    name="wrong-machine-ranks",
    invariant=Invariant.PRESENT,
    title="Machines, machine rank and processes do not fit together",
    why="num_processes is the total over all machines; a machine whose rank is wrong is waited for without end.",
    fix="num_processes = machines x processes on each; every machine its own --machine_rank from 0, all the same "
    "--main_process_ip",
    judges=(Judge(needs=("launch",), judge=judge),),
)
