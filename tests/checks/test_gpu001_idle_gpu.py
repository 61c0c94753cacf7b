import pytest
from msgspec.structs import replace

from accel_checks.gpu001_idle_gpu import CHECK
from accel_doctor.check import Severity
from accel_doctor.evidence import Asked, Device, Evidence, RankEnd
from accel_doctor.testing import findings, healthy_run, outcome
from accel_doctor.testing_gpu import (
    gpu_launch,
    gpu_rank,
    gpu_run,
    healthy_gpu,
    healthy_gpus,
    idle,
    load,
    on_gpu,
)


def empty(index: int = 1, **changes: object) -> Device:
    """Return a device that nothing of ours ever came to."""
    return healthy_gpu(index, **{"samples": idle(), "processes_during": (), **changes})


def alone(*devices: Device, **changes: object) -> Evidence:
    """Return a run whose ranks are all on device 0."""
    ranks = (gpu_rank(0), gpu_rank(1, device="cuda:0", device_uuid=healthy_gpu(0).uuid))
    return gpu_run(*devices, **{"ranks": ranks, **changes})


def test_a_gpu_without_a_process_while_the_other_works() -> None:
    (finding,) = findings(CHECK, alone(healthy_gpu(0), empty()))
    assert finding.message == ("GPU 1 is without a process of this run while GPU 0 is busy 97 %, over 6.0 s")
    assert finding.severity is Severity.ERROR
    assert finding.values == {"busy_pct": 0.0, "peers_busy_pct": 97.0, "load_s": 6.0, "idle_gpus": 1.0}
    assert finding.evidence == ("ranks 0 and 1 share one GPU",)
    assert finding.host == "ws1"


def test_a_gpu_whose_rank_does_nothing() -> None:
    lazy = healthy_gpu(1, samples=load(busy_pct=3.0, power_w=80.0))
    (finding,) = findings(CHECK, gpu_run(healthy_gpu(0), lazy))
    assert finding.message == "GPU 1 is busy 3 % while GPU 0 is busy 97 %, over 6.0 s"
    assert finding.ranks == (1,)
    assert finding.seen == "GPU 1 (NVIDIA H100 80GB HBM3), busy 3 %, 80 W"


def test_gpus_at_work() -> None:
    assert outcome(CHECK, gpu_run()).outcome.value == "passed"


def test_seven_idle_gpus_are_one_finding() -> None:
    devices = (healthy_gpu(0), *(empty(i) for i in range(1, 8)))
    (finding,) = findings(CHECK, alone(*devices, launch=gpu_launch(1)))
    assert finding.message.startswith(
        "GPUs 1, 2, 3 and 4 more are without a process of this run while GPU 0 is busy 97 %"
    )
    assert finding.command == "accelerate launch --multi_gpu --num_processes 8 train.py"
    assert "default asked for 1 process, and 8 GPUs are visible" in finding.evidence


@pytest.mark.parametrize(("seconds", "found"), [(1.8, 0), (2.0, 1)])
def test_a_missing_process_needs_two_seconds(seconds: float, found: int) -> None:
    devices = (healthy_gpu(0, samples=load(seconds)), empty(samples=idle(seconds)))
    assert len(findings(CHECK, alone(*devices))) == found


@pytest.mark.parametrize(("seconds", "found"), [(4.8, 0), (5.0, 1)])
def test_low_utilization_needs_five_seconds_of_load(seconds: float, found: int) -> None:
    devices = (healthy_gpu(0, samples=load(seconds)), healthy_gpu(1, samples=load(seconds, busy_pct=2.0)))
    evidence = gpu_run(*devices)
    assert len(findings(CHECK, evidence)) == found
    if not found:
        assert outcome(CHECK, evidence).reason == "4.8 s of load were seen, and 5 s are needed to call a GPU idle"


def test_other_phases_are_no_load() -> None:
    devices = (healthy_gpu(0, samples=load(20.0, phase="join")), empty(samples=idle(20.0, phase="join")))
    result = outcome(CHECK, alone(*devices))
    assert (result.outcome.value, result.reason) == (
        "skipped",
        "0.0 s of load were seen, and 5 s are needed to call a GPU idle",
    )


def test_the_thresholds_are_the_users() -> None:
    devices = (healthy_gpu(0, samples=load(1.0)), healthy_gpu(1, samples=load(1.0, busy_pct=12.0)))
    asked = Asked(thresholds={"GPU001.load_s": 0.5, "GPU001.idle_below_pct": 15})
    assert len(findings(CHECK, gpu_run(*devices, asked=asked))) == 1


def test_explicitly_fewer_processes_is_a_note() -> None:
    (finding,) = findings(
        CHECK, gpu_run(healthy_gpu(0), empty(), launch=gpu_launch(1, "user"), ranks=(gpu_rank(0, 1),))
    )
    assert finding.severity is Severity.NOTE
    assert finding.message.endswith(": flag --num_processes asked for 1 process, fewer than there are GPUs")
    assert finding.command == ""


def test_fewer_by_default_is_an_error_with_its_cause() -> None:
    (finding,) = findings(CHECK, gpu_run(healthy_gpu(0), empty(), launch=gpu_launch(1), ranks=(gpu_rank(0, 1),)))
    assert finding.severity is Severity.ERROR
    assert finding.command == "accelerate launch --multi_gpu --num_processes 2 train.py"
    assert finding.evidence == ("default asked for 1 process, and 2 GPUs are visible",)


def test_of_three_gpus_with_two_asked_for_and_one_used_one_is_excused() -> None:
    evidence = alone(healthy_gpu(0), empty(1), empty(2), launch=gpu_launch(2, "user"))
    error, note = findings(CHECK, evidence)
    assert (error.severity, note.severity) == (Severity.ERROR, Severity.NOTE)
    assert error.message.startswith("GPU 1 is without a process")
    assert note.message.startswith("GPU 2 is without a process")


def test_asked_for_by_number_is_an_error() -> None:
    (finding,) = findings(CHECK, alone(healthy_gpu(0), empty(), launch=gpu_launch(2, "user")))
    assert finding.severity is Severity.ERROR


@pytest.mark.parametrize(
    ("changes", "excuse"),
    [
        ({"display": True}, "it drives a display"),
        ({"processes": (on_gpu(77, user="ann"),)}, "somebody else computes on it: pid 77 (python of ann)"),
        (
            {"processes_during": (on_gpu(78, name="vllm"),), "samples": load(busy_pct=88.0)},
            "somebody else computes on it: pid 78 (vllm of me)",
        ),
    ],
)
def test_a_screen_and_somebody_elses_gpu_are_notes(changes: dict[str, object], excuse: str) -> None:
    (finding,) = findings(CHECK, alone(healthy_gpu(0), empty(1, **changes)))
    assert finding.severity is Severity.NOTE
    assert finding.message.endswith(f": {excuse}")


def test_a_desktop_on_a_gpu_is_no_stranger() -> None:
    (finding,) = findings(CHECK, alone(healthy_gpu(0), empty(processes=(on_gpu(9, graphics=True),))))
    assert finding.severity is Severity.ERROR


def test_a_card_that_may_be_the_hidden_one_is_a_note() -> None:
    devices = healthy_gpus(healthy_gpu(0), empty(), visible_known=False)
    (finding,) = findings(CHECK, alone(devices=devices))
    assert finding.severity is Severity.NOTE


def test_hidden_gpus_are_not_compared() -> None:
    result = outcome(CHECK, alone(healthy_gpu(0), empty(visible=False)))
    assert (result.outcome.value, result.reason) == ("skipped", "one visible GPU has no peers to be compared with")


def test_in_a_container_without_pids_the_ranks_say_where_they_are() -> None:
    blind = {"processes": None, "processes_during": None}
    assert outcome(CHECK, gpu_run(healthy_gpu(0, **blind), healthy_gpu(1, **blind))).outcome.value == "passed"
    (finding,) = findings(CHECK, alone(healthy_gpu(0, **blind), empty(1, **blind)))
    assert finding.message.startswith("GPU 1 is without a process")


def test_where_neither_driver_nor_ranks_tell_and_utilization_is_unknown_nothing_is_passed() -> None:
    blind = {"processes_during": None, "samples": load(busy_pct=None)}
    ranks = (gpu_rank(0, device_uuid=None), gpu_rank(1, device_uuid=None))
    result = outcome(CHECK, gpu_run(healthy_gpu(0, **blind), healthy_gpu(1, **blind), ranks=ranks))
    assert result.outcome.value == "skipped"
    assert "the driver does not tell" in result.reason


def test_ranks_on_the_cpu_say_nothing_of_gpus() -> None:
    ranks = tuple(gpu_rank(i, device="cpu", device_uuid=None) for i in range(2))
    result = outcome(CHECK, gpu_run(empty(0), empty(1), ranks=ranks))
    assert (result.outcome.value, result.reason) == ("skipped", "the ranks computed on the CPU")


def test_a_rank_that_died_leaves_an_idle_gpu_that_is_no_finding() -> None:
    ranks = (gpu_rank(0), replace(gpu_rank(1), end=RankEnd(how="signal", signal=9)))
    result = outcome(CHECK, gpu_run(healthy_gpu(0), empty(), ranks=ranks))
    assert (result.outcome.value, result.reason) == ("skipped", "a rank ended before its work was done")


def test_without_a_device() -> None:
    result = outcome(CHECK, healthy_run())
    assert (result.outcome.value, result.reason) == ("skipped", "no GPU on this machine")


def test_separate_runs_and_ranks_on_the_cpu_are_named_as_causes() -> None:
    ranks = (gpu_rank(0, world_size=1), gpu_rank(1, world_size=1, device="cpu", device_uuid=None))
    (finding,) = findings(CHECK, gpu_run(healthy_gpu(0), empty(), ranks=ranks))
    assert finding.evidence == (
        "each of the 2 processes believes that it is alone (world size 1)",
        "rank 1 computes on the CPU",
    )
