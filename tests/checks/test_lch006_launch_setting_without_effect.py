"""LCH006 judged on literal launches."""

import pytest

from accel_checks.lch006_launch_setting_without_effect import CHECK
from accel_doctor.check import Location, Severity
from accel_doctor.evidence import Candidate, Refusal
from accel_doctor.testing import findings, healthy_run
from launch_records import launch, run, setting

WHY = "the flag's default stands"


def test_a_value_that_does_not_reach_the_ranks_is_a_warning_at_its_line() -> None:
    lost = setting("SHARD_GRAD_OP", "c.yaml:12", note="FSDP1 takes fsdp_sharding_strategy")
    (found,) = findings(CHECK, run(settings={"fsdp_reshard_after_forward": lost}))
    assert found.severity is Severity.WARNING
    assert found.message == (
        "fsdp_reshard_after_forward SHARD_GRAD_OP (c.yaml:12) has no effect: FSDP1 takes fsdp_sharding_strategy"
    )
    assert found.location == Location(path="c.yaml", line=12)


def test_a_key_whose_flag_default_wins_is_a_warning() -> None:
    ignored = Candidate(value="c10d", source="c.yaml:3", ignored=WHY)
    (found,) = findings(CHECK, run(settings={"rdzv_backend": setting("static", "default", ignored)}))
    assert "rdzv_backend c10d (c.yaml:3)" in found.message


def test_the_same_value_as_in_force_is_silent() -> None:
    ignored = Candidate(value="static", source="c.yaml:3", ignored=WHY)
    assert not findings(CHECK, run(settings={"rdzv_backend": setting("static", "default", ignored)}))


@pytest.mark.parametrize("machines", [1, 2])
def test_same_network_is_lost_without_loss(machines: int) -> None:
    ignored = Candidate(value=True, source="c.yaml:6", ignored=WHY)
    network = setting(False, "default", ignored)  # noqa: FBT003 - a setting's value
    settings = {"same_network": network, "num_machines": setting(machines, "c.yaml:4")}
    assert not findings(CHECK, run(settings=settings))


def test_a_section_that_nothing_reads_is_one_finding() -> None:
    settings = {
        "fsdp_auto_wrap_policy": setting("SIZE_BASED_WRAP", "c.yaml:8", note="only an FSDP launch passes it on"),
        "fsdp_min_num_params": setting(1000, "c.yaml:9", note="only an FSDP launch passes it on"),
    }
    (found,) = findings(CHECK, run(settings=settings))
    assert found.message == (
        "fsdp_auto_wrap_policy SIZE_BASED_WRAP (c.yaml:8) and fsdp_min_num_params 1000 (c.yaml:9) have no effect: "
        "only an FSDP launch passes it on"
    )
    assert found.values == {"settings": 2}


def test_fsdp_that_dies_on_cpu_is_an_error() -> None:
    dies = Refusal(about="ranks", why="FSDP1 needs a device", settings=("use_fsdp",))
    sick = launch(refusals=(dies,), settings={"use_fsdp": setting("FSDP", "c.yaml:7")})
    (found,) = findings(CHECK, healthy_run(launch=sick))
    assert found.severity is Severity.ERROR
    assert found.location == Location(path="c.yaml", line=7)


def test_the_sanctioned_cpu_pair_is_no_finding() -> None:
    pair = {"use_cpu": setting(True, "environment ACCELERATE_USE_CPU"), "multi_gpu": setting(True, "flag --multi_gpu")}  # noqa: FBT003
    assert not findings(CHECK, run(settings=pair, devices_seen=0))


def test_an_outranked_value_is_not_a_lost_one() -> None:
    outranked = setting(4, "flag --num_processes", Candidate(value=2, source="c.yaml:1"))
    assert not findings(CHECK, run(settings={"num_processes": outranked}))
