import pytest
from msgspec.structs import replace

from accel_checks.env002_environment_skew import CHECK
from accel_doctor.evidence import Evidence
from accel_doctor.testing import findings, healthy_rank, healthy_run, outcome


def run(variable: str, first: str, second: str, *, hosts: int = 1) -> Evidence:
    ranks = []
    for number, value in enumerate((first, second)):
        rank = healthy_rank(number)
        environment = rank.environment | ({variable: value} if value else {})
        ranks.append(replace(rank, environment=environment, host=f"ws{number % hosts}"))
    return healthy_run(ranks=tuple(ranks))


def test_a_variable_set_on_one_rank_only() -> None:
    (finding,) = findings(CHECK, run("NCCL_ALGO", "Ring", ""))
    assert finding.message == "NCCL_ALGO differs between ranks: Ring on rank 0, unset on rank 1"
    assert finding.severity.value == "warning"
    assert finding.ranks == (0, 1)


@pytest.mark.parametrize(
    "name", ["NCCL_SOCKET_IFNAME", "NCCL_IB_HCA", "OMP_NUM_THREADS", "GLOO_SOCKET_IFNAME", "HF_HOME"]
)
def test_interfaces_adapters_and_threads_may_follow_the_host(name: str) -> None:
    assert findings(CHECK, run(name, "1", "2", hosts=2)) == ()
    (finding,) = findings(CHECK, run(name, "1", "2", hosts=1))
    assert finding.host == "ws0"


@pytest.mark.parametrize(
    "name", ["RANK", "LOCAL_RANK", "TORCHELASTIC_ERROR_FILE", "NCCL_DEBUG_FILE", "CUDA_VISIBLE_DEVICES", "SLURM_PROCID"]
)
def test_what_belongs_to_one_rank_is_not_compared(name: str) -> None:
    assert findings(CHECK, run(name, "0", "1")) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"
