import msgspec

from accel_checks.env007_clock_skew import CHECK
from accel_doctor.evidence import Evidence
from accel_doctor.testing import changed, findings, healthy_rank, healthy_run, outcome


def hosts(**joined: float) -> Evidence:
    ranks = tuple(
        msgspec.structs.replace(changed(healthy_rank(i, len(joined)), "group", joined_s=at), host=host)
        for i, (host, at) in enumerate(joined.items())
    )
    return healthy_run(ranks=ranks)


def test_the_host_whose_clock_is_apart_is_named() -> None:
    (finding,) = findings(CHECK, hosts(a=102.0, b=102.3, c=161.9))
    assert finding.message == "the clock of c is 59.6 s ahead of the others"
    assert finding.host == "c"
    assert outcome(CHECK, hosts(a=102.0, b=102.3, c=161.9)).outcome.value == "warned"


def test_two_hosts_are_apart_from_each_other() -> None:
    found = findings(CHECK, hosts(a=100.0, b=160.0))
    assert [f.host for f in found] == ["a", "b"]


def test_one_host_has_one_clock() -> None:
    assert outcome(CHECK, healthy_run()).reason == "the ranks are on one host"


def test_healthy() -> None:
    assert outcome(CHECK, hosts(a=102.0, b=102.4, c=101.8)).outcome.value == "passed"
