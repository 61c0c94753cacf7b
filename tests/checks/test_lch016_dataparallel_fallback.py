from accel_checks.lch016_dataparallel_fallback import CHECK
from accel_doctor.check import Severity
from accel_doctor.testing import findings
from accel_doctor.testing_source import read

SICK = """\
import torch

model = torch.nn.DataParallel(torch.nn.Linear(4, 1))
"""
HEALTHY = """\
import torch
from torch.nn.parallel import DistributedDataParallel

many = False
wrap = torch.nn.DataParallel if many else DistributedDataParallel
model = wrap(torch.nn.Linear(4, 1))
"""


def test_the_fault_is_found_at_its_line() -> None:
    (found,) = findings(CHECK, read(SICK))
    assert found.location is not None
    assert found.location.line == 3
    assert found.severity is Severity.WARNING
    assert found.wanted


def test_a_healthy_script_passes() -> None:
    assert findings(CHECK, read(HEALTHY)) == ()
