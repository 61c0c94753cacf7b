"""ENV011 judged on literal hosts."""

import msgspec
import pytest

from accel_checks._variables import KNOWN, OLD
from accel_checks.env011_deprecated_variable import CHECK
from accel_doctor.check import Severity
from accel_doctor.evidence import Evidence
from accel_doctor.testing import findings, healthy_host, healthy_run


def with_variables(*names: str) -> Evidence:
    host = msgspec.structs.replace(healthy_host(), environment=dict.fromkeys(names, "1"))
    return healthy_run(hosts=(host,))


@pytest.mark.parametrize(
    ("name", "now"),
    [
        ("NCCL_ASYNC_ERROR_HANDLING", "TORCH_NCCL_ASYNC_ERROR_HANDLING"),
        ("NCCL_IB_CUDA_SUPPORT", "NCCL_NET_GDR_LEVEL"),
        ("TRANSFORMERS_CACHE", "HF_HOME"),
        ("ACCELERATE_USE_IPEX", "unset"),
        ("NCCL_SOCKET_IFNAMES", "NCCL_SOCKET_IFNAME"),
        ("NCCL_HEARTBEAT_TIMEOUT_SEC", "TORCH_NCCL_HEARTBEAT_TIMEOUT_SEC"),
        ("ACCELERATE_MIXED_PRECISON", "ACCELERATE_MIXED_PRECISION"),
        ("FSDP_TRANSFORMER_CLS_TO_WRAPS", "FSDP_TRANSFORMER_CLS_TO_WRAP"),
    ],
)
def test_an_old_or_misspelt_variable_is_noted_with_its_present_name(name: str, now: str) -> None:
    (found,) = findings(CHECK, with_variables(name))
    assert found.severity is Severity.NOTE
    assert (found.seen, found.wanted) == (name, now)
    assert found.host == "ws1"


def test_known_variables_and_plugins_names_are_silent() -> None:
    others = (
        "NCCL_FASTRAK_CTRL_DEV",
        "NCCL_SHARP_DISABLE",
        "OMP_NUM_THREADS",
        "NCCL_NET_PLUGIN",
        "ACCELERATE_FP8_MARGIN",
    )
    assert not findings(CHECK, with_variables(*(KNOWN - set(OLD)), *others))


def test_what_is_old_names_what_is_known() -> None:
    families = ("NCCL_", "TORCH_", "ACCELERATE_")
    assert {old.now for old in OLD.values() if old.now.startswith(families)} <= KNOWN


def test_the_same_variable_on_many_hosts_is_one_finding() -> None:
    host = msgspec.structs.replace(healthy_host(), environment={"NCCL_RINGS": "0 1"})
    hosts = tuple(msgspec.structs.replace(host, name=f"n{i}") for i in range(6))
    (found,) = findings(CHECK, healthy_run(hosts=hosts))
    assert found.host == "n0, n1, n2, n3"


def test_a_healthy_environment_is_silent() -> None:
    assert not findings(CHECK, with_variables("NCCL_DEBUG", "ACCELERATE_USE_CPU", "TORCH_NCCL_BLOCKING_WAIT"))
