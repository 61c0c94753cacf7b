"""NET005: the backend is bound to an interface that is not there, that the peers cannot reach, or a slow one."""

from collections.abc import Iterator

from accel_checks._log import from_log
from accel_checks._machines import hosts_text, last_word, machines_of, troubled
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, Threshold
from accel_doctor.evidence import Bound, Evidence, Host, Interface, Machine

SLOWER = Threshold("NET005.slower_times", 10, "10 Gbit/s beside 100: a management network, seldom meant")
FIX = "name the interface of the fast network on every machine: {}=eth0 (ip -br addr lists them)"


def judge_names(evidence: Evidence) -> Iterator[Finding]:
    """Find a variable that names an interface which the host does not have."""
    backend, hosts = backend_of(evidence), evidence.hosts or ()
    if not any(h.interfaces is not None for h in hosts):
        raise NotApplicable("the interfaces were not read")
    sick = [(h, b) for h in hosts for b in h.bound if b.backend == backend and b.named_by and not b.interface]
    for asked in dict.fromkeys(b.asked for _, b in sick):
        yield _absent([(h, b) for h, b in sick if b.asked == asked])


def backend_of(evidence: Evidence) -> str:
    """Return what carries the collectives between hosts: what the ranks say, else by the devices."""
    said = [r.group.backend for r in evidence.world if r.group and r.group.backend]
    if said:
        return "nccl" if any("nccl" in backend for backend in said) else "gloo"
    builds = [h.interpreter.torch_cuda for h in evidence.hosts or () if h.interpreter]
    return "nccl" if evidence.devices and any(d.visible for d in evidence.devices.devices) and any(builds) else "gloo"


def _absent(sick: list[tuple[Host, Bound]]) -> Finding:
    host, bound = sick[0]
    names = ", ".join(i.name for i in host.interfaces or () if i.up)
    return Finding(
        message=f"{bound.named_by} is {bound.asked}, and {hosts_text([h.name for h, _ in sick])} "
        f"ha{'s' if len(sick) == 1 else 've'} no such interface: {names} there",
        seen=f"{bound.named_by}={bound.asked}",
        wanted=f"one of {names}",
        fix=FIX.format(bound.named_by),
        host=host.name if len(sick) == 1 else "",
        values={"hosts": len(sick)},
    )


def judge_reach(evidence: Evidence) -> Iterator[Finding]:
    """Find machines whose backend listens where no other machine can reach it, once the job is in trouble."""
    machines = [m for m in machines_of(evidence) if m.bound and m.bound.address]
    if not troubled(evidence):
        return
    loop = [m for m in machines if _on_loopback(evidence, m)]
    if loop:
        yield _loopback(loop)
    apart = [m for m in machines if m not in loop and _unreached(m, machines)]
    if apart and not loop:
        yield _apart(apart, machines)


def _on_loopback(evidence: Evidence, machine: Machine) -> bool:
    address = machine.bound.address if machine.bound else ""
    hosts = {h.name: h for h in evidence.hosts or ()}
    known = hosts[machine.host].interfaces if machine.host in hosts else None
    return address.startswith("127.") or any(address in i.addresses for i in known or () if i.loopback)


def _loopback(sick: list[Machine]) -> Finding:
    bound = sick[0].bound or Bound(backend="gloo")
    whence = (
        f"{bound.named_by} is {bound.asked}"
        if bound.named_by
        else f"the host name {bound.host_name} resolves to it, or to nothing of this host"
    )
    variable = "NCCL_SOCKET_IFNAME" if bound.backend == "nccl" else "GLOO_SOCKET_IFNAME"
    return Finding(
        message=f"{bound.backend} on {hosts_text([m.host for m in sick])} listens on loopback ({bound.address}), where "
        f"no other machine can reach it: {whence}",
        seen=f"{bound.address} ({bound.interface or 'loopback'})",
        wanted="an address on the network between the machines",
        fix=f"{FIX.format(variable)}, or give the host name its network address in /etc/hosts",
        host=sick[0].host if len(sick) == 1 else "",
        values={"machines": len(sick)},
    )


def _unreached(machine: Machine, machines: list[Machine]) -> bool:
    """Return whether others tried this machine's address and none got an answer, though the main address did answer."""
    words = [(m, w) for m in machines if (w := last_word(m, machine.id)) is not None]
    main = [w for m in (machine, *machines) if (w := last_word(m, "main")) is not None and not w.own]
    return bool(words) and not any(w.answered for _, w in words) and any(w.answered for w in main)


def _apart(sick: list[Machine], machines: list[Machine]) -> Finding:
    machine, bound = sick[0], sick[0].bound or Bound(backend="gloo")
    tried = next((m, w) for m in machines if (w := last_word(m, machine.id)) is not None)
    how = f"{bound.named_by}={bound.asked}" if bound.named_by else f"{bound.backend}'s own choice"
    variable = "NCCL_SOCKET_IFNAME" if bound.backend == "nccl" else "GLOO_SOCKET_IFNAME"
    return Finding(
        message=f"{bound.backend} on {hosts_text([m.host for m in sick])} is bound to {bound.interface} "
        f"({bound.address}, {how}), which {tried[0].host} cannot reach: {tried[1].error or tried[1].how}",
        seen=f"{bound.address}:{tried[1].port} from {tried[0].host}: {tried[1].how}",
        wanted="an interface on the network between the machines, with its ports open to them",
        fix=FIX.format(variable),
        host=machine.host if len(sick) == 1 else "",
        values={"machines": len(sick)},
        evidence=("the address where the ranks meet does answer",),
    )


def judge_speed(evidence: Evidence) -> Iterator[Finding]:
    """Find a job over hosts whose backend is bound to a much slower card than another one that is up."""
    machines_of(evidence)
    hosts = {h.name: h for h in evidence.hosts or ()}
    backend, slow = backend_of(evidence), []
    for host in hosts.values():
        bound = next((b for b in host.bound if b.backend == backend), None)
        own = next((i for i in host.interfaces or () if bound and i.name == bound.interface), None)
        fast = max((i for i in host.interfaces or () if _is_card(i)), key=lambda i: i.speed_mbit_s or 0, default=None)
        if own and fast and own.speed_mbit_s and (fast.speed_mbit_s or 0) >= SLOWER.of(evidence) * own.speed_mbit_s:
            slow.append((host, own, fast))
    if slow:
        host, own, fast = slow[0]
        yield Finding(
            message=f"{backend} on {hosts_text([h.name for h, _, _ in slow])} is bound to {own.name} with "
            f"{own.speed_mbit_s} Mbit/s, beside {fast.name} with {fast.speed_mbit_s}",
            severity=Severity.WARNING,
            seen=f"{own.name}, {own.speed_mbit_s} Mbit/s",
            wanted=f"{fast.name}, {fast.speed_mbit_s} Mbit/s",
            host=host.name if len(slow) == 1 else "",
            values={"hosts": len(slow), "mbit_s": own.speed_mbit_s or 0, "fastest_mbit_s": fast.speed_mbit_s or 0},
        )


def _is_card(interface: Interface) -> bool:
    return bool(interface.up and interface.physical and interface.addresses and interface.speed_mbit_s)


CHECK = Check(
    id="NET005",
    name="wrong-interface",
    invariant=Invariant.PRESENT,
    title="The backend is bound to an interface that is missing, out of the peers' reach, or slow",
    why="Ranks join the store over one address and exchange data over another: the job hangs in its first collective, "
    "or crawls.",
    fix="name the interface of the fast network on every machine: NCCL_SOCKET_IFNAME for NCCL, GLOO_SOCKET_IFNAME for "
    "gloo",
    judges=(
        Judge(needs=("hosts",), judge=judge_names),
        Judge(needs=("machines",), judge=judge_reach),
        Judge(needs=("machines", "hosts"), judge=judge_speed),
        from_log("NET005"),
    ),
    consequence_of=("LCH010", "LCH011"),
    thresholds=(SLOWER,),
)
