"""NET005 judged on what gloo and NCCL bind to, and who could reach it."""

import msgspec

from accel_checks.net005_wrong_interface import CHECK
from accel_doctor.check import Severity
from accel_doctor.evidence import Bound, Evidence, Interface
from accel_doctor.testing import findings, healthy_host, healthy_run, outcome
from machines import address, in_trouble, machine, reach, together

WIRES = (
    Interface(name="eth0", addresses=("10.0.0.1",)),
    Interface(name="lo", addresses=("127.0.0.1",), loopback=True),
)


def named(variable: str, asked: str, interface: str, backend: str = "gloo") -> Evidence:
    bound = Bound(backend=backend, interface=interface, named_by=variable, asked=asked)
    return healthy_run(hosts=(msgspec.structs.replace(healthy_host(), interfaces=WIRES, bound=(bound,)),))


def test_a_variable_that_names_no_interface_of_the_host_is_found_on_one_machine_too() -> None:
    (found,) = findings(CHECK, named("GLOO_SOCKET_IFNAME", "enp99s0", ""))
    assert found.message == "GLOO_SOCKET_IFNAME is enp99s0, and ws1 has no such interface: eth0, lo there"
    assert found.host == "ws1"


def test_an_interface_that_is_there_and_the_other_backends_variable_pass() -> None:
    assert outcome(CHECK, named("GLOO_SOCKET_IFNAME", "eth0", "eth0")).outcome.value == "passed"
    assert findings(CHECK, named("NCCL_SOCKET_IFNAME", "ib0", "", backend="nccl")) == ()


def test_a_host_name_that_resolves_to_loopback_is_found_once_the_job_is_in_trouble() -> None:
    bound = Bound(backend="gloo", interface="lo", address="127.0.1.1", host_name="node1")
    sick = machine(1, bound=bound)
    (found,) = findings(CHECK, in_trouble(machine(0), sick))
    assert found.message.startswith(
        "gloo on node1 listens on loopback (127.0.1.1), where no other machine can reach it"
    )
    assert "the host name node1 resolves to it" in found.message
    assert findings(CHECK, together(machine(0), sick)) == ()


def test_an_interface_out_of_the_peers_reach_is_named_with_its_host_and_variable() -> None:
    bound = Bound(backend="gloo", interface="mgmt0", address="172.31.9.2", named_by="GLOO_SOCKET_IFNAME", asked="mgmt0")
    first = machine(0, reaches=(reach("main", own=True), reach("node1-7", "timeout", error="no answer within 2 s")))
    (found,) = findings(CHECK, in_trouble(first, machine(1, bound=bound)))
    assert found.message.startswith(
        "gloo on node1 is bound to mgmt0 (172.31.9.2, GLOO_SOCKET_IFNAME=mgmt0), which node0"
    )
    assert (found.host, found.severity) == ("node1", Severity.ERROR)


def test_where_nothing_answers_the_interface_is_not_blamed() -> None:
    first = machine(0, reaches=(reach("main", own=True), reach("node1-7", "timeout")))
    second = machine(1, reaches=(reach("main", "timeout"), reach("node0-7", "timeout")))
    assert findings(CHECK, in_trouble(first, second)) == ()


def test_a_slow_card_beside_a_fast_one_is_a_warning() -> None:
    evidence = together()
    hosts = [
        msgspec.structs.replace(
            h,
            interfaces=(
                Interface(name="eth0", addresses=(address(n),), physical=True, speed_mbit_s=1000),
                Interface(name="eth1", addresses=(f"10.1.0.{n}",), physical=True, speed_mbit_s=100_000),
            ),
        )
        for n, h in enumerate(evidence.hosts or ())
    ]
    (found,) = findings(CHECK, msgspec.structs.replace(evidence, hosts=tuple(hosts)))
    assert found.message == "gloo on node0 and node1 is bound to eth0 with 1000 Mbit/s, beside eth1 with 100000"
    assert found.severity is Severity.WARNING


def test_two_healthy_machines_pass() -> None:
    assert outcome(CHECK, together()).outcome.value == "passed"
