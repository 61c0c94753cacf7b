"""LCH011: the numbers of a launch over several machines do not fit together."""

from collections.abc import Iterator

from accel_checks._launches import launch_of
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity
from accel_doctor.evidence import Evidence, Launch, Machine
from accel_doctor.places import place_of

RANK_OF = {"machine": "machine_rank", "process": "rank"}
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


def judge_machines(evidence: Evidence) -> Iterator[Finding]:
    """Hold the machines that came against those that the launch wants, and their numbers against each other."""
    machines = evidence.machines or ()
    if not machines or any(m.unit == "task" for m in machines):
        raise NotApplicable("the launch is of one machine")
    yield from _unlike(machines)
    yield from _duplicates(machines)
    yield from _missing(evidence, machines)


def _unlike(machines: tuple[Machine, ...]) -> Iterator[Finding]:
    """Find machines whose launches want different numbers of machines, or meet at different places."""
    for name, fact in (("num_machines", _count_of), ("main_process_ip:port", _meets_at)):
        groups: dict[str, list[Machine]] = {}
        for machine in machines:
            groups.setdefault(fact(machine), []).append(machine)
        if len(groups) > 1:
            parts = [f"{value} on {_hosts(each)}" for value, each in groups.items()]
            yield Finding(
                message=f"{name} differs between the machines of one job: {', '.join(parts[:4])}",
                seen=f"{len(groups)} values",
                wanted="one value on every machine",
                values={"values": len(groups)},
            )


def _count_of(machine: Machine) -> str:
    return str(machine.count)


def _meets_at(machine: Machine) -> str:
    return f"{machine.main_host}:{machine.main_port}"


def _duplicates(machines: tuple[Machine, ...]) -> Iterator[Finding]:
    claims: dict[int, list[Machine]] = {}
    for machine in machines:
        if machine.rank is not None:
            claims.setdefault(machine.rank, []).append(machine)
    for rank, each in sorted(claims.items()):
        if len(each) > 1:
            unit = RANK_OF[each[0].unit]
            yield Finding(
                message=f"{_hosts(each)} all have {unit} {rank}"
                if len(each) > 2
                else f"{_hosts(each)} both have {unit} {rank}",
                seen=", ".join(f"{m.host}: {unit} {rank} ({m.rank_source})" for m in each[:4]),
                wanted=f"{each[0].count} machines with {unit} 0 to {(each[0].count or 1) - 1}",
                values={unit: rank, "machines_seen": len(machines), "machines_asked": machines[0].count or 0},
                evidence=_no_rank(each),
            )


def _no_rank(machines: list[Machine]) -> tuple[str, ...]:
    without = [m for m in machines if m.ended and not m.ranks_seen]
    return (f"no rank was started on {_hosts(without)}",) if without else ()


def _missing(evidence: Evidence, machines: tuple[Machine, ...]) -> Iterator[Finding]:
    """Find machines that never came, where those that did have different numbers."""
    wanted = machines[0].count or 0
    came = {m.rank for m in machines}
    absent = [n for n in range(wanted) if n not in came]
    if len(machines) >= wanted or None in came:
        absent = absent[: max(0, wanted - len(machines))]
    if not absent or evidence.cut == "interrupt":
        return
    unit, joined = machines[0].unit, _joined_elsewhere(evidence)
    names = (
        f"{unit} {absent[0]}"
        if len(absent) == 1
        else f"{unit}s {', '.join(map(str, absent[:6]))}" + " …" * (len(absent) > 6)
    )
    why = (
        f"its ranks joined, so that its doctor writes to another directory than {evidence.run_dir}"
        if joined
        else f"no doctor there wrote to {evidence.run_dir}"
    )
    yield Finding(
        message=f"{names} of {wanted} never came to the job: {why}",
        severity=Severity.WARNING if joined else Severity.ERROR,
        seen=f"{', '.join(m.name for m in machines[:4])}{' …' if len(machines) > 4 else ''}",
        wanted=f"{wanted} {unit}s ({machines[0].count_source})",
        values={"machines_seen": len(machines), "machines_asked": wanted, "first_missing": absent[0]},
        fix="give every machine the same --run-dir on storage that all of them mount"
        if joined
        else "look at that machine: is it up, did its job start, does it have the same command and the same --run-dir?",
        evidence=tuple(f"{m.name} gave no sign of life any more" for m in machines if m.silent)[:4],
    )


def _joined_elsewhere(evidence: Evidence) -> bool:
    """Return whether the ranks that were seen are in a world with more ranks than those."""
    sizes = [r.group.world_size for r in evidence.world if r.group]
    return bool(sizes) and max(sizes) > len(evidence.world)


def _hosts(machines: list[Machine]) -> str:
    hosts = sorted(m.host for m in machines)
    if len(hosts) > 4:
        return f"{', '.join(hosts[:3])} and {len(hosts) - 3} more"
    return hosts[0] if len(hosts) == 1 else f"{', '.join(hosts[:-1])} and {hosts[-1]}"


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
    judges=(Judge(needs=("launch",), judge=judge), Judge(needs=("machines",), judge=judge_machines)),
)
