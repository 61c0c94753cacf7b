import msgspec
import pytest

from accel_checks.env010_debug_left_on import CHECK, COSTLY
from accel_doctor.check import Location, Severity
from accel_doctor.evidence import Device, Devices, Evidence, FileSetting
from accel_doctor.machine.environment import is_allowed
from accel_doctor.testing import changed, findings, healthy_host, healthy_rank, healthy_run, outcome


def with_variables(
    variables: dict[str, str], backend: str = "nccl", launching: dict[str, str] | None = None
) -> Evidence:
    """Return a run whose ranks have variables; the launching environment has them too, unless told."""
    ranks = tuple(
        msgspec.structs.replace(changed(healthy_rank(r), "group", backend=backend), environment=variables)
        for r in (0, 1)
    )
    environment = variables if launching is None else launching
    host = msgspec.structs.replace(healthy_host(), environment=environment, rdma_devices=("mlx5_0",))
    return healthy_run(hosts=(host,), ranks=ranks)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CUDA_LAUNCH_BLOCKING", "1"),
        ("TORCH_DISTRIBUTED_DEBUG", "DETAIL"),
        ("NCCL_DEBUG", "TRACE"),
        ("NCCL_P2P_DISABLE", "1"),
        ("NCCL_IB_DISABLE", "1"),
        ("NCCL_SHM_DISABLE", "1"),
        ("NCCL_ALGO", "Tree"),
        ("NCCL_PROTO", "Simple"),
        ("ACCELERATE_DEBUG_MODE", "true"),
        ("PYTORCH_NO_CUDA_MEMORY_CACHING", "1"),
        ("NSYS_PROFILING_SESSION_ID", "7"),
        ("PYTHONTRACEMALLOC", "25"),
    ],
)
def test_what_costs_is_a_warning(name: str, value: str) -> None:
    (finding,) = findings(CHECK, with_variables({name: value}))
    assert finding.severity is Severity.WARNING
    assert finding.message.startswith(f"{name}={value} in the launching environment: ")
    assert finding.command == f"unset {name}"
    assert finding.ranks == (0, 1)


@pytest.mark.parametrize(
    ("name", "value"),
    [
        ("CUDA_LAUNCH_BLOCKING", "0"),
        ("TORCH_DISTRIBUTED_DEBUG", "OFF"),
        ("NCCL_DEBUG", "WARN"),
        ("NCCL_P2P_DISABLE", "0"),
        ("ACCELERATE_DEBUG_MODE", "false"),
        ("PYTHONTRACEMALLOC", "0"),
        ("TORCH_CPP_LOG_LEVEL", "ERROR"),
    ],
)
def test_what_is_off_costs_nothing(name: str, value: str) -> None:
    assert outcome(CHECK, with_variables({name: value})).outcome.value == "passed"


@pytest.mark.parametrize(("name", "value"), [("NCCL_DEBUG", "INFO"), ("TORCH_LOGS", "+dynamo")])
def test_what_costs_little_is_a_note(name: str, value: str) -> None:
    (finding,) = findings(CHECK, with_variables({name: value}))
    assert finding.severity is Severity.NOTE


def test_what_accelerate_sets_itself_for_rtx_40_is_a_note() -> None:
    evidence = with_variables({"NCCL_P2P_DISABLE": "1", "NCCL_IB_DISABLE": "1"}, launching={})
    cards = Devices(devices=(Device(index=0, host="ws1", uuid="GPU-0", name="NVIDIA GeForce RTX 4090"),))
    found = findings(CHECK, msgspec.structs.replace(evidence, devices=cards))
    assert [f.severity for f in found] == [Severity.NOTE, Severity.NOTE]
    assert "accelerate launch sets it for RTX 40 cards" in found[0].message


def test_what_the_user_sets_is_a_warning_on_rtx_40_too() -> None:
    cards = Devices(devices=(Device(index=0, host="ws1", uuid="GPU-0", name="NVIDIA GeForce RTX 4090"),))
    evidence = msgspec.structs.replace(with_variables({"NCCL_P2P_DISABLE": "1"}), devices=cards)
    (finding,) = findings(CHECK, evidence)
    assert finding.severity is Severity.WARNING


def test_nccls_own_file_is_read_and_named_by_line() -> None:
    setting = FileSetting(name="NCCL_P2P_DISABLE", value="1", path="/etc/nccl.conf", line=3)
    host = msgspec.structs.replace(healthy_host(), nccl_settings=(setting,))
    evidence = msgspec.structs.replace(with_variables({}), hosts=(host,))
    (finding,) = findings(CHECK, evidence)
    assert finding.location == Location("/etc/nccl.conf", 3)
    assert finding.message.startswith("NCCL_P2P_DISABLE=1 in /etc/nccl.conf: ")


def test_the_environment_wins_over_the_file_and_the_earlier_file_over_the_later() -> None:
    mine = FileSetting(name="NCCL_DEBUG", value="WARN", path="/home/me/.nccl.conf", line=1)
    site = FileSetting(name="NCCL_DEBUG", value="TRACE", path="/etc/nccl.conf", line=1)
    evidence = with_variables({})
    host = msgspec.structs.replace(evidence.hosts[0] if evidence.hosts else healthy_host(), nccl_settings=(mine, site))
    assert findings(CHECK, msgspec.structs.replace(evidence, hosts=(host,))) == ()
    alone = msgspec.structs.replace(host, nccl_settings=(site,))
    assert findings(CHECK, msgspec.structs.replace(evidence, hosts=(alone,)))
    quiet = with_variables({"NCCL_DEBUG": "WARN"})
    assert findings(CHECK, msgspec.structs.replace(quiet, hosts=(alone,))) == ()


def test_nccls_variables_without_nccl_are_a_note() -> None:
    (finding,) = findings(CHECK, with_variables({"NCCL_P2P_DISABLE": "1"}, "gloo"))
    assert finding.severity is Severity.NOTE
    assert "no rank uses NCCL" in finding.message


def test_infiniband_switched_off_where_there_is_none_is_a_note() -> None:
    evidence = with_variables({"NCCL_IB_DISABLE": "1"})
    host = msgspec.structs.replace(healthy_host(), environment={"NCCL_IB_DISABLE": "1"})
    (finding,) = findings(CHECK, msgspec.structs.replace(evidence, hosts=(host,)))
    assert finding.severity is Severity.NOTE


def test_one_ranks_variable_names_the_rank() -> None:
    evidence = with_variables({})
    odd = msgspec.structs.replace(evidence.world[1], environment={"CUDA_LAUNCH_BLOCKING": "1"})
    first = msgspec.structs.replace(evidence.world[0], environment={"OMP_NUM_THREADS": "1"})
    (finding,) = findings(CHECK, msgspec.structs.replace(evidence, ranks=(first, odd)))
    assert finding.message.startswith("CUDA_LAUNCH_BLOCKING=1 on rank 1: ")
    assert finding.ranks == (1,)


def test_a_launch_without_ranks_is_judged_by_the_launching_environment() -> None:
    host = msgspec.structs.replace(healthy_host(), environment={"CUDA_LAUNCH_BLOCKING": "1"})
    (finding,) = findings(CHECK, healthy_run(hosts=(host,), ranks=()))
    assert finding.ranks == ()


def test_every_variable_looked_for_is_recorded() -> None:
    assert [name for name in COSTLY if not is_allowed(name)] == []


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"
