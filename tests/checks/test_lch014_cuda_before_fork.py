from accel_checks.lch014_cuda_before_fork import CHECK
from accel_doctor.check import Severity
from accel_doctor.testing import findings
from accel_doctor.testing_source import read

SICK = """\
import torch
from accelerate import Accelerator, notebook_launcher

print(torch.cuda.get_device_name(0))


def train():
    Accelerator().print('a')


notebook_launcher(train, num_processes=2)
"""
HEALTHY = """\
import torch
from accelerate import Accelerator, notebook_launcher

print(torch.cuda.device_count())


def train():
    Accelerator().print(torch.cuda.get_device_name(0))


notebook_launcher(train, num_processes=2)
"""


def test_the_fault_is_found_at_its_line() -> None:
    (found,) = findings(CHECK, read(SICK))
    assert found.location is not None
    assert found.location.line == 4
    assert found.severity is Severity.ERROR
    assert found.wanted


def test_a_healthy_script_passes() -> None:
    assert findings(CHECK, read(HEALTHY)) == ()
