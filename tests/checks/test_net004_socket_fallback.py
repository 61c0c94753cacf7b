from pathlib import Path

import msgspec
import pytest

from accel_checks.net004_socket_fallback import CHECK
from accel_doctor.check import Severity
from accel_doctor.evidence import Evidence
from accel_doctor.machine.host import read_host
from accel_doctor.testing import changed, findings, outcome
from machines import together


def on_two_hosts(backend: str = "nccl", **host: object) -> Evidence:
    job = together()
    hosts = tuple(
        msgspec.structs.replace(h, **{"rdma_devices": ("mlx5_0", "mlx5_1"), "rdma_open": True, **host})
        for h in job.hosts or ()
    )
    ranks = tuple(changed(r, "group", backend=backend) for r in job.world)
    return msgspec.structs.replace(job, hosts=hosts, ranks=ranks)


def test_devices_that_a_container_was_not_given() -> None:
    (found,) = findings(CHECK, on_two_hosts(rdma_open=False))
    assert found.severity is Severity.WARNING
    assert found.message == (
        "NCCL goes over TCP on node0 and node1, which has mlx5_0, mlx5_1: a process here may not open them "
        "(/dev/infiniband/uverbs*)"
    )


def test_a_variable_that_passes_them_over() -> None:
    (found,) = findings(CHECK, on_two_hosts(environment={"NCCL_NET": "Socket"}, rdma_open=False))
    assert found.fix.startswith("unset NCCL_NET")


@pytest.mark.parametrize(
    ("evidence", "reason"),
    [
        (on_two_hosts(backend="gloo", rdma_open=False), "NCCL does not carry the collectives"),
        (on_two_hosts(rdma_devices=(), rdma_open=None), "no host has an InfiniBand, RoCE or EFA device"),
        (
            msgspec.structs.replace(on_two_hosts(), ranks=on_two_hosts().world[:1], launch=None),
            "the ranks are on one host",
        ),
    ],
)
def test_where_the_question_does_not_arise(evidence: Evidence, reason: str) -> None:
    assert outcome(CHECK, evidence).reason == reason


def test_healthy() -> None:
    assert outcome(CHECK, on_two_hosts()).outcome.value == "passed"
    assert findings(CHECK, on_two_hosts(environment={"NCCL_NET": "IB"})) == ()


@pytest.mark.parametrize(("device", "mode", "can"), [("uverbs0", 0o600, True), ("issm0", 0o600, False), ("", 0, False)])
def test_the_host_says_whether_its_devices_may_be_opened(tmp_path: Path, device: str, mode: int, can: bool) -> None:  # noqa: FBT001
    (tmp_path / "sys/class/infiniband/mlx5_0").mkdir(parents=True)
    (tmp_path / "dev/infiniband").mkdir(parents=True)
    if device:
        (tmp_path / "dev/infiniband" / device).touch(mode)
    assert read_host({}, tmp_path).rdma_open is can


def test_a_host_without_such_devices_has_none_to_open(tmp_path: Path) -> None:
    assert read_host({}, tmp_path).rdma_open is None
