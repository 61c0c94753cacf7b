import msgspec
import pytest

from accel_checks.env008_old_kernel import CHECK
from accel_doctor.check import Severity
from accel_doctor.evidence import Evidence
from accel_doctor.testing import findings, healthy_host, healthy_run, outcome


def with_kernel(kernel: str) -> Evidence:
    return healthy_run(hosts=(msgspec.structs.replace(healthy_host(), kernel=kernel),))


@pytest.mark.parametrize("kernel", ["5.4.0-150-generic", "4.15.0-213-generic", "5.4.17-arch"])
def test_a_kernel_below_5_5_is_a_warning(kernel: str) -> None:
    (finding,) = findings(CHECK, with_kernel(kernel))
    assert finding.severity is Severity.WARNING
    assert finding.message == f"Linux {kernel} is older than 5.5"


@pytest.mark.parametrize("kernel", ["4.18.0-513.el8_9.x86_64", "3.10.0-1160.el7.x86_64", "5.3.18-150300.59.93-default"])
def test_a_vendors_backports_make_it_a_note(kernel: str) -> None:
    (finding,) = findings(CHECK, with_kernel(kernel))
    assert finding.severity is Severity.NOTE


def test_what_is_no_linux_is_not_judged() -> None:
    assert outcome(CHECK, with_kernel("")).reason == "no host runs Linux"


@pytest.mark.parametrize("kernel", ["5.5.0", "5.15.167.4-microsoft-standard-WSL2", "6.18.44", "10.1-rc1"])
def test_healthy(kernel: str) -> None:
    assert outcome(CHECK, with_kernel(kernel)).outcome.value == "passed"
