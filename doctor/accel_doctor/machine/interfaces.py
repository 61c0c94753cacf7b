"""The machine's network interfaces, and which of them gloo and NCCL take by their own rules."""

import ipaddress
import socket
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from accel_doctor.background import Background
from accel_doctor.evidence import Bound, Host, Interface

RESOLVE_S = 2.0
GLOO, NCCL = "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME"
_LAST = ("docker", "lo")
"""NCCL takes these only where there is nothing else (its ``ncclFindInterfaces``)."""


def with_interfaces(host: Host) -> Host:
    """Return a host with its interfaces and what the backends take of them, by the environment it was read with."""
    interfaces = read_interfaces()
    return msgspec.structs.replace(host, interfaces=interfaces, bound=bound_interfaces(interfaces, host.environment))


def read_interfaces() -> tuple[Interface, ...]:
    """Return the interfaces in order of name."""
    import psutil  # noqa: PLC0415 - what a host is, is read without it

    states = psutil.net_if_stats()
    return tuple(
        Interface(
            name=name,
            addresses=tuple(a for a in (_plain(one.family, one.address) for one in found) if a),
            up=name in states and states[name].isup,
            loopback=name in states and "loopback" in states[name].flags,
            physical=Path("/sys/class/net", name, "device").exists(),
            speed_mbit_s=states[name].speed or None if name in states else None,
        )
        for name, found in sorted(psutil.net_if_addrs().items())
    )


def _plain(family: int, address: str) -> str:
    """Return an address of IP that peers may use, else an empty string."""
    if family not in (socket.AF_INET, socket.AF_INET6):
        return ""
    text = address.partition("%")[0]
    return "" if text.startswith("fe80:") else text


def bound_interfaces(interfaces: Sequence[Interface], environment: Mapping[str, str]) -> tuple[Bound, ...]:
    """Return what gloo and NCCL would bind to here."""
    return (_gloo(interfaces, environment.get(GLOO, "")), _nccl(interfaces, environment.get(NCCL, "")))


def _gloo(interfaces: Sequence[Interface], asked: str) -> Bound:
    """Follow torch: the names of its variable, else what this host's name resolves to, else loopback."""
    if asked:
        first = asked.partition(",")[0].strip()
        here = next((i for i in interfaces if i.name == first), None)
        return Bound(
            backend="gloo",
            interface=here.name if here else "",
            address=_address(here),
            named_by=GLOO,
            asked=asked,
        )
    name = socket.gethostname()
    owned = {address: i for i in interfaces for address in i.addresses}
    address = next((a for a in resolve(name) if a in owned or is_loopback(a)), "127.0.0.1")
    here = owned.get(address) or next((i for i in interfaces if i.loopback), None)
    return Bound(backend="gloo", interface=here.name if here else "", address=address, host_name=name)


def _nccl(interfaces: Sequence[Interface], asked: str) -> Bound:
    """Follow NCCL: prefixes, ``=`` whole names, ``^`` all but these; its own choice leaves docker and lo last."""
    usable = [i for i in interfaces if i.up and i.addresses]
    if asked:
        chosen = [i for i in usable if _nccl_takes(i.name, asked)]
        here = chosen[0] if chosen else None
        return Bound(
            backend="nccl", interface=here.name if here else "", address=_address(here), named_by=NCCL, asked=asked
        )
    order = sorted(usable, key=lambda i: next((1 + n for n, p in enumerate(_LAST) if i.name.startswith(p)), 0))
    return Bound(
        backend="nccl", interface=order[0].name if order else "", address=_address(order[0] if order else None)
    )


def _nccl_takes(name: str, asked: str) -> bool:
    exclude, rest = asked.startswith("^"), asked.lstrip("^")
    exact, words = rest.startswith("="), [w for w in rest.lstrip("=").split(",") if w]
    hit = any(name == w.partition(":")[0] if exact else name.startswith(w.partition(":")[0]) for w in words)
    return hit != exclude


def _address(interface: Interface | None) -> str:
    """Return the address of an interface, IPv4 before IPv6; empty where it has none."""
    addresses = interface.addresses if interface else ()
    return next((a for a in addresses if ":" not in a), addresses[0] if addresses else "")


def resolve(name: str) -> list[str]:
    """Return the addresses of a name in the resolver's order; empty where it has none, or the resolver is silent."""
    return Background(lambda: _resolve(name)).result(RESOLVE_S) or []


def _resolve(name: str) -> list[str]:
    try:
        found = socket.getaddrinfo(name, None, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return []
    return list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found))


def is_loopback(address: str) -> bool:
    """Return whether an address is of a machine's own loopback."""
    try:
        return ipaddress.ip_address(address).is_loopback
    except ValueError:
        return False
