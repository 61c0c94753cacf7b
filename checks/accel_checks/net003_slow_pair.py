"""NET003: the wire between two hosts is far slower than the others, or than the interface states."""

from collections.abc import Iterator
from statistics import median
from typing import NamedTuple

from accel_checks._machines import hosts_text
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Threshold
from accel_doctor.evidence import Evidence

PEERS_PCT = Threshold("NET003.peers_pct", 35, "equal wires are within a factor of two of each other, one stream each")
STATED_PCT = Threshold("NET003.stated_pct", 5, "one TCP stream reaches 10 to 95 % of a card of up to 10 Gbit/s")
ONE_STREAM_GB_S = 1.25
"""More than 10 Gbit/s is not asked of one stream, whatever the card states."""


class Wire(NamedTuple):
    """What two hosts exchange with each other, in one direction."""

    one: str
    other: str
    gb_s: float


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Hold each pair of hosts against the other pairs; where there is one pair, against its interfaces."""
    wires = wires_of(evidence)
    if not wires:
        raise NotApplicable("the ranks are on one host")
    usual = median(w.gb_s for w in wires)
    slow = [w for w in wires if w.gb_s < PEERS_PCT.of(evidence) / 100 * usual] if len(wires) > 2 else []
    culprit = _common(slow, wires)
    if culprit is None and len(wires) > 2:
        culprit = _always_slow(evidence, wires)
    if culprit is not None:
        yield _of_host(culprit, wires)
    elif slow:
        yield _of_pair(min(slow, key=lambda w: w.gb_s), usual, "the other pairs' median", len(slow))
    else:
        yield from _by_interface(evidence, wires)


def wires_of(evidence: Evidence) -> list[Wire]:
    """Return each pair of hosts once, with the better word of the two: one side may have waited for its CPU."""
    host_of = {r.rank: r.host for r in evidence.world}
    found: dict[tuple[str, str], float] = {}
    for rank in evidence.world:
        for exchange in rank.pairs.exchanges if rank.pairs else ():
            other = host_of.get(exchange.rank)
            if other is not None and other != rank.host:
                key = (min(rank.host, other), max(rank.host, other))
                found[key] = max(found.get(key, 0.0), exchange.gb_s)
    return [Wire(*key, gb_s) for key, gb_s in sorted(found.items())]


def _common(slow: list[Wire], wires: list[Wire]) -> str | None:
    """Return the one host that all slow wires have in common and of which every wire is slow."""
    if len(slow) < 2:
        return None
    shared = set.intersection(*({w.one, w.other} for w in slow))
    whole = [h for h in shared if all(w in slow for w in wires if h in (w.one, w.other))]
    return whole[0] if len(whole) == 1 else None


def _always_slow(evidence: Evidence, wires: list[Wire]) -> str | None:
    """Return the one host whose best wire is far below the worst without it: of three hosts' wires two are slow."""
    hosts = {h for w in wires for h in (w.one, w.other)}
    slow = []
    for host in hosts:
        best = max(w.gb_s for w in wires if host in (w.one, w.other))
        rest = [w.gb_s for w in wires if host not in (w.one, w.other)]
        if rest and best < PEERS_PCT.of(evidence) / 100 * min(rest):
            slow.append(host)
    return slow[0] if len(slow) == 1 else None


def _of_host(host: str, wires: list[Wire]) -> Finding:
    own = [w.gb_s for w in wires if host in (w.one, w.other)]
    rest = median(w.gb_s for w in wires if host not in (w.one, w.other))
    return Finding(
        message=f"{host} exchanges {max(own):.2g} GB/s at best with {len(own)} other hosts, which reach {rest:.2g} "
        "between themselves",
        seen=f"{max(own):.2g} GB/s from and to {host}",
        wanted=f"{rest:.2g} GB/s",
        host=host,
        values={"gb_s": max(own), "peers_gb_s": rest},
        fix="look at that host's side: the interface it uses and its negotiated rate, cable and switch port, traffic "
        "shaping, other traffic",
        command="ethtool eth0 | grep Speed",
    )


def _of_pair(wire: Wire, wanted: float, source: str, count: int) -> Finding:
    more = f", and {count - 1} more pairs are slow" if count > 1 else ""
    return Finding(
        message=f"{wire.one} and {wire.other} exchange {wire.gb_s:.2g} GB/s, {100 * wire.gb_s / wanted:.0f} % of "
        f"{source} ({wanted:.3g} GB/s){more}",
        seen=f"{wire.gb_s:.2g} GB/s",
        wanted=f"{wanted:.2g} GB/s ({source})",
        values={"gb_s": wire.gb_s, "wanted_gb_s": wanted, "pairs": count},
        evidence=("which of the two sides it is, one pair cannot tell",),
    )


def _by_interface(evidence: Evidence, wires: list[Wire]) -> Iterator[Finding]:
    stated = _stated_gb_s(evidence)
    if not stated and len(wires) < 3:
        hosts = hosts_text([wires[0].one, wires[0].other])
        raise NotApplicable(
            f"{hosts} exchange {wires[0].gb_s:.2g} GB/s, with no other pair beside them and no speed stated by their "
            "interfaces; --min-bus-bandwidth tells what to expect"
        )
    slow = []
    for wire in wires:
        rates = [stated[h] for h in (wire.one, wire.other) if h in stated]
        limit = min([*rates, ONE_STREAM_GB_S]) if rates else 0.0
        if wire.gb_s < STATED_PCT.of(evidence) / 100 * limit:
            slow.append((wire, limit))
    if slow:
        wire, limit = min(slow)
        hosts = hosts_text([wire.one, wire.other])
        yield _of_pair(wire, limit, f"what the interfaces of {hosts} state", len(slow))


def _stated_gb_s(evidence: Evidence) -> dict[str, float]:
    """Return the stated rate of the interface that each host's backend takes, where its driver states one."""
    backends = [r.sweep.backend for r in evidence.world if r.sweep]
    backend = "nccl" if any("nccl" in b for b in backends) else "gloo"
    found = {}
    for host in evidence.hosts or ():
        bound = next((b.interface for b in host.bound if b.backend == backend), "")
        speed = next((i.speed_mbit_s for i in host.interfaces or () if i.name == bound), None)
        if speed:
            found[host.name] = speed / 8e3
    return found


CHECK = Check(
    id="NET003",
    name="slow-pair",
    invariant=Invariant.BALANCED,
    title="The wire between two hosts is far slower than the others, or than the interface states",
    why="Every ring and tree goes over every host: the slowest wire sets the pace of all ranks.",
    fix="look at the interface that is used on both sides and its negotiated rate (ethtool), at cable and switch port, "
    "traffic shaping, and at NCCL_SOCKET_IFNAME or GLOO_SOCKET_IFNAME",
    judges=(Judge(needs=("ranks.pairs",), judge=judge),),
    consequence_of=("NET004", "NET005"),
    thresholds=(PEERS_PCT, STATED_PCT),
)
