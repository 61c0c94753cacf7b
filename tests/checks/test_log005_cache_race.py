from accel_checks.log005_cache_race import CHECK
from accel_doctor.check import Severity
from accel_doctor.testing import findings
from accel_doctor.testing_source import read

SICK = """\
from accelerate import Accelerator
import torchvision

accelerator = Accelerator()
torchvision.datasets.CIFAR10('data', download=True)
"""
HEALTHY = """\
from accelerate import Accelerator
import torchvision

accelerator = Accelerator()
with accelerator.local_main_process_first():
    torchvision.datasets.CIFAR10('data', download=True)
"""


def test_the_fault_is_found_at_its_line() -> None:
    (found,) = findings(CHECK, read(SICK))
    assert found.location is not None
    assert found.location.line == 5
    assert found.severity is Severity.WARNING
    assert found.wanted


def test_a_healthy_script_passes() -> None:
    assert findings(CHECK, read(HEALTHY)) == ()
