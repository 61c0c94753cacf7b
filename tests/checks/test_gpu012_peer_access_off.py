import pytest
from msgspec.structs import replace

from accel_checks.gpu012_peer_access_off import CHECK
from accel_doctor.check import Severity
from accel_doctor.evidence import DevicePair, Evidence
from accel_doctor.testing import findings, healthy_run, outcome
from accel_doctor.testing_gpu import gpu_rank, gpu_run, healthy_gpu, healthy_gpus


def pair(read: str | None = "ok", write: str | None = "ok", first: int = 0, second: int = 1) -> DevicePair:
    return DevicePair(host="ws1", first=first, second=second, path="host bridge", read=read, write=write)


def with_pairs(*pairs: DevicePair, name: str = "NVIDIA A100 80GB PCIe", count: int = 2) -> Evidence:
    return gpu_run(devices=healthy_gpus(*(healthy_gpu(i, name=name) for i in range(count)), pairs=pairs))


@pytest.mark.parametrize(
    ("read", "write", "who"),
    [
        ("chipset", "chipset", "the chipset, a hypervisor, or ACS or the IOMMU in the BIOS"),
        ("registry", "registry", "a driver setting (a registry key of the kernel module)"),
        ("ok", "registry", "a driver setting (a registry key of the kernel module)"),
        ("unknown", "unknown", "the driver, without a reason given"),
    ],
)
def test_who_turned_it_off(read: str, write: str, who: str) -> None:
    (finding,) = findings(CHECK, with_pairs(pair(read, write)))
    assert finding.severity is Severity.WARNING
    assert finding.message == f"peer access is off between GPU 0 and GPU 1, turned off by {who}"
    assert finding.seen == f"read {read}, write {write}; nearest common ancestor: host bridge"


def test_many_pairs_with_one_cause_are_one_finding() -> None:
    pairs = [pair("chipset", "chipset", a, b) for a in range(4) for b in range(a + 1, 4)]
    (finding,) = findings(CHECK, with_pairs(*pairs, count=4))
    assert finding.values == {"pairs_off": 6.0, "pairs": 6.0}
    assert " and 5 more pairs, turned off by " in finding.message


def test_peer_access_that_works() -> None:
    assert outcome(CHECK, gpu_run()).outcome.value == "passed"


@pytest.mark.parametrize("variable", ["NCCL_P2P_DISABLE=1", "NCCL_P2P_LEVEL=LOC", "NCCL_P2P_LEVEL=0"])
def test_a_variable_that_forbids_it(variable: str) -> None:
    name, value = variable.split("=")
    ranks = tuple(replace(gpu_rank(i), environment={name: value}) for i in range(2))
    (finding,) = findings(CHECK, gpu_run(ranks=ranks))
    assert finding.message == f"{variable} keeps NCCL from the peer access that 1 pair of GPUs have"
    assert finding.fix.startswith(f"unset {name}")


@pytest.mark.parametrize("variable", ["NCCL_P2P_DISABLE=0", "NCCL_P2P_LEVEL=NVL", "NCCL_P2P_LEVEL=SYS"])
def test_variables_that_leave_it(variable: str) -> None:
    name, value = variable.split("=")
    ranks = tuple(replace(gpu_rank(i), environment={name: value}) for i in range(2))
    assert outcome(CHECK, gpu_run(ranks=ranks)).outcome.value == "passed"


def test_consumer_cards_have_none_and_the_variable_does_nothing() -> None:
    evidence = with_pairs(pair("chipset", "chipset"), name="NVIDIA GeForce RTX 4090")
    ranks = tuple(replace(gpu_rank(i), environment={"NCCL_P2P_DISABLE": "1"}) for i in range(2))
    result = outcome(CHECK, replace(evidence, ranks=ranks))
    assert (result.outcome.value, result.reason) == ("skipped", "these GPUs have no peer access")


@pytest.mark.parametrize("state", ["device", "topology"])
def test_devices_and_sockets_that_cannot_are_not_at_fault(state: str) -> None:
    assert outcome(CHECK, with_pairs(pair(state, state))).outcome.value == "passed"


def test_where_the_driver_does_not_tell_nothing_is_passed() -> None:
    result = outcome(CHECK, with_pairs(pair(None, None)))
    assert (result.outcome.value, result.reason) == ("skipped", "no pair of GPUs tells about peer access")


def test_mig_instances_have_no_peers() -> None:
    devices = healthy_gpus(*(healthy_gpu(i, mig=True) for i in range(2)), pairs=(pair("chipset"),))
    assert outcome(CHECK, gpu_run(devices=devices)).outcome.value == "skipped"


def test_without_a_device() -> None:
    assert outcome(CHECK, healthy_run()).reason == "no GPU on this machine"
