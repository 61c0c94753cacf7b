"""LCH010: the address where the ranks meet cannot be reached from a machine."""

from collections.abc import Callable, Iterator

from accel_checks._log import from_log
from accel_checks._machines import hosts_text, joined, last_word, machines_of
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable
from accel_doctor.evidence import Evidence, Machine, Reach

Case = tuple[Machine, Reach]


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Hold what each machine found where the ranks meet against where the first machine is."""
    machines = machines_of(evidence)
    tried = [(m, r) for m in machines if (r := last_word(m, "main")) is not None]
    if not tried:
        raise NotApplicable("no main address is named")
    first = machines[0]
    cases = [(m, r) for m, r in tried if m.host != first.host and (r.late or not joined(evidence, m))]
    seen: list[str] = []
    for fault in FAULTS:
        sick = [(m, r) for m, r in cases if m.id not in seen and fault[0](r)]
        seen += [m.id for m, _ in sick]
        if sick:
            yield _finding(first, sick, fault[1], fault[2])


def _is_filtered(reach: Reach) -> bool:
    return reach.how in ("timeout", "unreachable")


FAULTS: tuple[tuple[Callable[[Reach], bool], str, str], ...] = (
    (
        lambda r: r.how == "unresolved",
        "{host} does not resolve",
        "give --main_process_ip as an address, or make the name known there (DNS, /etc/hosts)",
    ),
    (
        lambda r: r.loopback,
        "{host} is {address}, their own loopback",
        (
            "give --main_process_ip as machine 0's address on the network, and take the name off the line of 127.0.x.x "
            "in /etc/hosts"
        ),
    ),
    (
        lambda r: r.own,
        "{host} is {address}, their own address",
        "give every machine the same --main_process_ip: the address of machine 0",
    ),
    (
        lambda r: r.how == "unreachable",
        "there is no route to {host} ({address}): {error}",
        "give an address of machine 0 on a network that these machines are in",
    ),
    (
        _is_filtered,
        "{host}:{port} gives no answer at all ({error}): packets are dropped",
        (
            "open the port between the machines: a firewall, a security group or a network policy drops it (a host "
            "without a listener would refuse)"
        ),
    ),
)


def _finding(first: Machine, sick: list[Case], what: str, fix: str) -> Finding:
    machine, reach = sick[0]
    hosts = hosts_text([m.host for m, _ in sick])
    said = what.format(host=reach.host, address=reach.address, port=reach.port, error=reach.error)
    before = next((r for r in machine.reaches if r.to == "main" and not r.late and r.answered), None)
    lost = _is_filtered(reach) and before is not None
    return Finding(
        message=f"{hosts} cannot reach where the ranks meet: {said}{', and it answered at the start' if lost else ''}",
        seen=f"{reach.host}:{reach.port} from {machine.host}: {reach.how}",
        wanted=f"a connection to {first.name}",
        fix=fix,
        host=machine.host if len(sick) == 1 else "",
        values={"machines": len(sick), "port": reach.port},
        command=f"nc -vz -w 3 {reach.host} {reach.port}" if _is_filtered(reach) else f"getent hosts {reach.host}",
    )


CHECK = Check(
    id="LCH010",
    name="rendezvous-unreachable",
    invariant=Invariant.PRESENT,
    title="The address where the ranks meet cannot be reached from a machine",
    why="That machine's ranks wait for the store until its timeout, and the others wait for them; nothing is printed.",
    fix="look at the address and the port of --main_process_ip and --main_process_port from that machine",
    judges=(Judge(needs=("machines",), judge=judge), from_log("LCH010")),
    consequence_of=("LCH011", "LCH012"),
)
