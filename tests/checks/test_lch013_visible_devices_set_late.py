from accel_checks.lch013_visible_devices_set_late import CHECK
from accel_doctor.check import Severity
from accel_doctor.testing import findings
from accel_doctor.testing_source import read

SICK = """\
import os
import torch
from accelerate import Accelerator

os.environ['CUDA_VISIBLE_DEVICES'] = '1'
accelerator = Accelerator()
"""
HEALTHY = """\
import os

os.environ['CUDA_VISIBLE_DEVICES'] = '0,1'
import torch
from accelerate import Accelerator

accelerator = Accelerator()
"""


def test_the_fault_is_found_at_its_line() -> None:
    (found,) = findings(CHECK, read(SICK))
    assert found.location is not None
    assert found.location.line == 5
    assert found.severity is Severity.WARNING
    assert found.wanted


def test_a_healthy_script_passes() -> None:
    assert findings(CHECK, read(HEALTHY)) == ()
