"""LCH005 judged on literal config files."""

import pytest

from accel_checks.lch005_bad_launch_config import CHECK
from accel_doctor.check import Location, Severity
from accel_doctor.diagnose import Outcome
from accel_doctor.evidence import ConfigFile, ConfigKey, Refusal
from accel_doctor.testing import findings, healthy_run, outcome
from launch_records import file, run


def with_keys(*keys: ConfigKey) -> ConfigFile:
    return ConfigFile(path="train.yaml", kind="accelerate", picked="flag", keys=keys)


def test_a_file_that_cannot_be_read_is_found_at_its_line() -> None:
    broken = ConfigFile(path="c.yaml", kind="accelerate", picked="flag", error="is not valid YAML: tab", error_line=3)
    (found,) = findings(CHECK, run(config_files=(broken,)))
    assert found.severity is Severity.ERROR
    assert found.message == "c.yaml is not valid YAML: tab"
    assert found.location == Location(path="c.yaml", line=3)


@pytest.mark.parametrize(
    ("key", "note", "severity", "says"),
    [
        ("foo", "", Severity.ERROR, "accelerate refuses the file"),
        ("fsdp_config.fsdp_foo", "did you mean fsdp_version?", Severity.ERROR, "drops it without a word"),
        ("fsdp_config.zero_stage", "it belongs in deepspeed_config", Severity.ERROR, "it belongs in deepspeed_config"),
        ("mpirun_config.mpirun_ccl", "a key of accelerate 0.28 to 1.12", Severity.WARNING, "0.28 to 1.12"),
        ("ipex_config.ipex", "a key of accelerate 0.19 to 1.12", Severity.ERROR, "unknown key ipex_config"),
    ],
)
def test_an_unknown_key_says_what_becomes_of_it(key: str, note: str, severity: Severity, says: str) -> None:
    (found,) = findings(
        CHECK, run(config_files=(with_keys(ConfigKey(key=key, value=1, line=9, known=False, note=note)),))
    )
    assert found.severity is severity
    assert says in found.message
    assert found.location == Location(path="train.yaml", line=9)


def test_an_unknown_section_is_one_finding() -> None:
    keys = [ConfigKey(key=f"ipex_config.{n}", value=1, line=i, known=False) for i, n in enumerate("ab", 5)]
    (found,) = findings(CHECK, run(config_files=(with_keys(*keys),)))
    assert found.location == Location(path="train.yaml", line=5)


def test_a_value_that_does_not_fit_says_what_does() -> None:
    bad = ConfigKey(key="mixed_precision", value=False, line=4, expected="'no' in quotes")
    (found,) = findings(CHECK, run(config_files=(with_keys(bad),)))
    assert (found.seen, found.wanted) == ("mixed_precision: false", "'no' in quotes")


def test_a_key_given_twice_is_a_warning_that_names_the_winner() -> None:
    keys = [ConfigKey(key="num_processes", value=v, line=v) for v in (2, 4)]
    (found,) = findings(CHECK, run(config_files=(with_keys(*keys),)))
    assert found.severity is Severity.WARNING
    assert "the last wins: 4" in found.message
    assert found.seen == "2 in line 2, 4 in line 4"


def test_what_the_launcher_refuses_for_want_of_a_key_is_an_error() -> None:
    refusal = Refusal(about="config", why="c.yaml names no distributed_type", settings=("distributed_type",))
    (found,) = findings(CHECK, run(config_files=(file(),), refusals=(refusal,)))
    assert "c.yaml names no distributed_type" in found.message


def test_a_good_file_passes() -> None:
    good = file(distributed_type="MULTI_GPU", num_processes=2, fsdp_config__fsdp_version=2)
    assert outcome(CHECK, run(config_files=(good,))).outcome is Outcome.PASSED


def test_without_a_file_there_is_no_question() -> None:
    assert outcome(CHECK, healthy_run()).reason == "no config file is read"


def test_a_program_that_is_not_there_is_to_be_installed() -> None:
    missing = Refusal(about="program", why="it asks for DeepSpeed, which is not installed for /opt/env/bin/python")
    (found,) = findings(CHECK, run(refusals=(missing,)))
    assert found.fix == "install it there, or examine the launch from the environment that trains"
