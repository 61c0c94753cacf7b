import pytest

from accel_checks.gpu013_unsupported_architecture import CHECK, runs_on
from accel_doctor.testing import findings, healthy_run, outcome
from accel_doctor.testing_gpu import gpu_rank, gpu_run, healthy_gpu


@pytest.mark.parametrize(
    ("capability", "built", "runs"),
    [
        ("8.0", ("sm_80",), True),
        ("8.6", ("sm_80",), True),
        ("8.0", ("sm_86",), False),
        ("9.0", ("sm_80", "sm_86"), False),
        ("9.0", ("sm_80", "compute_80"), True),
        ("7.5", ("compute_80",), False),
        ("9.0", ("sm_90a",), True),
        ("10.0", ("sm_90a", "compute_90a"), False),
        ("10.3", ("sm_100f",), True),
        ("10.3", ("sm_100a",), False),
        ("12.0", ("sm_90", "sm_100", "sm_120"), True),
        ("12.0", ("sm_50", "sm_60", "sm_70", "sm_80", "sm_90"), False),
        ("6.1", ("sm_75", "sm_80", "sm_90"), False),
        ("9.0", ("gfx942",), False),
    ],
)
def test_what_runs_where(*, capability: str, built: tuple[str, ...], runs: bool) -> None:
    assert runs_on(capability, built) is runs


def test_a_new_card_under_an_old_build() -> None:
    ranks = tuple(gpu_rank(i, compute_capability="12.0", arch_list=("sm_80", "sm_90")) for i in range(2))
    (finding,) = findings(CHECK, gpu_run(ranks=ranks))
    assert finding.message == (
        "torch 2.13.0+cu128 has no code for compute capability 12.0, the device of ranks 0 and 1"
    )
    assert (finding.seen, finding.wanted, finding.ranks) == ("built for sm_80 sm_90", "sm_120", (0, 1))


def test_in_a_run_the_driver_says_what_the_card_of_a_rank_can() -> None:
    built = ("sm_80", "sm_90")
    ranks = tuple(gpu_rank(i, compute_capability=None, device_uuid=None, arch_list=built) for i in range(2))
    devices = [healthy_gpu(i, compute_capability="12.0") for i in range(2)]
    (finding,) = findings(CHECK, gpu_run(*devices, ranks=ranks, exam="run"))
    assert (finding.wanted, finding.ranks) == ("sm_120", (0, 1))
    assert outcome(CHECK, gpu_run(ranks=ranks, exam="run")).outcome.value == "passed"


def test_one_old_card_among_new_ones() -> None:
    ranks = (gpu_rank(0), gpu_rank(1, compute_capability="6.1"))
    (finding,) = findings(CHECK, gpu_run(ranks=ranks))
    assert finding.ranks == (1,)


def test_a_build_that_fits() -> None:
    assert outcome(CHECK, gpu_run()).outcome.value == "passed"


def test_on_the_cpu() -> None:
    assert outcome(CHECK, healthy_run()).reason == "the ranks computed on the CPU"


def test_ranks_that_did_not_tell() -> None:
    ranks = tuple(gpu_rank(i, arch_list=None) for i in range(2))
    assert outcome(CHECK, gpu_run(ranks=ranks)).reason == "no rank told what its torch is built for"
