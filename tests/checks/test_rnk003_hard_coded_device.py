from accel_checks.rnk003_hard_coded_device import CHECK
from accel_doctor.check import Severity
from accel_doctor.testing import findings
from accel_doctor.testing_source import read

SICK = """\
import os
import torch
import torch.distributed as dist

dist.init_process_group('nccl')
x = torch.zeros(1, device='cuda:0')
"""
HEALTHY = """\
import os
import torch
import torch.distributed as dist

dist.init_process_group('nccl')
torch.cuda.set_device(int(os.environ['LOCAL_RANK']))
x = torch.zeros(1, device='cuda').cuda()
"""


def test_the_fault_is_found_at_its_line() -> None:
    (found,) = findings(CHECK, read(SICK))
    assert found.location is not None
    assert found.location.line == 6
    assert found.severity is Severity.ERROR
    assert found.wanted


def test_a_healthy_script_passes() -> None:
    assert findings(CHECK, read(HEALTHY)) == ()
