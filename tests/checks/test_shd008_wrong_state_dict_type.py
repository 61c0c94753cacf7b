"""SHD008 judged on literal plans and hosts: 1.4 B parameters are 5.6 GB, and Adam's moments 11.2 GB."""

import pytest
from msgspec.structs import replace

from accel_checks.shd008_wrong_state_dict_type import CHECK
from accel_doctor.check import Location, Severity
from accel_doctor.diagnose import Outcome
from accel_doctor.evidence import Asked, Evidence, Host
from accel_doctor.testing import findings, healthy_host, outcome
from accel_doctor.testing_plan import healthy_plan, planned

GB = 10**9


def full(*hosts: Host, **settings: str) -> Evidence:
    plan = healthy_plan(state_dict_type="FULL_STATE_DICT", fsdp_version=1)
    return replace(planned(plan, auto_wrap_policy="TRANSFORMER_BASED_WRAP", **settings), hosts=hosts)


def host(free_bytes: int | None, **changes: object) -> Host:
    return replace(healthy_host(), memory_available_bytes=free_bytes, **changes)


def test_too_little_memory_on_the_host_of_rank_0() -> None:
    (found,) = findings(CHECK, full(host(10 * GB), state_dict_type="FULL_STATE_DICT"))
    assert found.severity is Severity.WARNING
    assert found.host == "ws1"
    assert found.location == Location(path="train.yaml", line=12)
    assert found.values == {"need_gb": pytest.approx(11.2), "free_gb": pytest.approx(10.0)}


def test_the_default_of_version_1_is_full() -> None:
    (found,) = findings(CHECK, full(host(10 * GB)))
    assert "the default of FSDP version 1" in found.message


def test_the_cgroup_counts() -> None:
    (found,) = findings(CHECK, full(host(90 * GB, memory_limit_bytes=12 * GB, memory_used_bytes=4 * GB)))
    assert found.values["free_gb"] == pytest.approx(8.0)


def test_another_hosts_memory_does_not_help() -> None:
    evidence = full(host(90 * GB, name="ws2"), host(1 * GB))
    (found,) = findings(CHECK, evidence)
    assert found.host == "ws1"


def test_enough_memory_is_well() -> None:
    assert outcome(CHECK, full(host(12 * GB))).outcome is Outcome.PASSED


def test_a_sharded_state_dict_is_well() -> None:
    assert outcome(CHECK, replace(planned(), hosts=(host(1 * GB),))).outcome is Outcome.PASSED


def test_unknown_memory_is_no_pass() -> None:
    assert outcome(CHECK, full(host(None))).outcome is Outcome.SKIPPED
    assert outcome(CHECK, full()).outcome is Outcome.SKIPPED


def test_an_optimizer_with_less_state_is_the_users_to_say() -> None:
    evidence = replace(full(host(10 * GB)), asked=Asked(thresholds={"SHD008.copies": 1.0}))
    assert not findings(CHECK, evidence)
