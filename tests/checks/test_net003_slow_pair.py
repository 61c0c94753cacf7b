"""NET003 judged on exchanges between hosts."""

from itertools import combinations

import msgspec

from accel_checks.net003_slow_pair import CHECK
from accel_doctor.evidence import Evidence, Exchange, Interface, PairProbe
from accel_doctor.testing import findings, healthy_run, outcome
from machines import machine, together

FAST = 1.1


def world(count: int, **slow: float) -> Evidence:
    """Return hosts that exchange ``FAST`` GB/s, except the pairs named ``n<one>n<other>``."""
    rates = {pair: slow.get(f"n{pair[0]}n{pair[1]}", FAST) for pair in combinations(range(count), 2)}
    evidence = together(*(machine(n, count) for n in range(count)))

    def probe(own: int) -> PairProbe:
        return PairProbe(
            size_bytes=2**21,
            exchanges=tuple(
                Exchange(rank=pair[1 - pair.index(own)], time_ms=2.0, gb_s=rate)
                for pair, rate in rates.items()
                if own in pair
            ),
        )

    ranks = tuple(msgspec.structs.replace(r, pairs=probe(r.rank or 0)) for r in evidence.world)
    return msgspec.structs.replace(evidence, ranks=ranks)


def test_a_host_whose_wires_are_all_slow_is_the_culprit() -> None:
    (found,) = findings(CHECK, world(3, n0n2=0.01, n1n2=0.012))
    assert found.host == "node2"
    assert found.message.startswith("node2 exchanges 0.012 GB/s at best with 2 other hosts, which reach 1.1 between")
    (of_many,) = findings(CHECK, world(6, **{f"n{n}n5": 0.1 for n in range(5)}))
    assert of_many.host == "node5"


def test_one_slow_pair_among_many_accuses_neither_side() -> None:
    (found,) = findings(CHECK, world(5, n1n3=0.1))
    assert found.message.startswith("node1 and node3 exchange 0.1 GB/s, 9 % of the other pairs' median (1.1 GB/s)")
    assert found.host == ""


def test_two_hosts_are_held_against_what_their_interfaces_state() -> None:
    (found,) = findings(CHECK, world(2, n0n1=0.0098))
    assert "0.0098 GB/s, 1 % of what the interfaces of node0 and node1 state (1.25 GB/s)" in found.message


def stating(speed_mbit_s: int | None, evidence: Evidence) -> Evidence:
    wires = (Interface(name="eth0", addresses=("10.0.0.1",), speed_mbit_s=speed_mbit_s),)
    hosts = tuple(msgspec.structs.replace(h, interfaces=wires) for h in evidence.hosts or ())
    return msgspec.structs.replace(evidence, hosts=hosts)


def test_healthy_wires_and_slower_cards_pass() -> None:
    assert outcome(CHECK, world(2)).outcome.value == "passed"
    assert outcome(CHECK, world(5, n1n3=0.6)).outcome.value == "passed"
    assert outcome(CHECK, stating(1000, world(2, n0n1=0.11))).outcome.value == "passed"
    assert outcome(CHECK, stating(None, world(3))).outcome.value == "passed"


def test_one_pair_whose_cards_state_nothing_is_not_examined() -> None:
    got = outcome(CHECK, stating(None, world(2, n0n1=0.11)))
    assert got.outcome.value == "skipped"
    assert "node0 and node1 exchange 0.11 GB/s, with no other pair beside them" in got.reason


def test_one_host_has_no_question() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "skipped"
