from accel_checks.rnk007_global_rank_as_device import CHECK
from accel_doctor.check import Severity
from accel_doctor.testing import findings
from accel_doctor.testing_source import read

SICK = """\
import os
import torch
import torch.distributed as dist

dist.init_process_group('nccl')
rank = dist.get_rank()
model = torch.nn.Linear(4, 1).to(f'cuda:{rank}')
"""
HEALTHY = """\
import os
import torch
import torch.distributed as dist

dist.init_process_group('nccl')
rank = dist.get_rank() % torch.cuda.device_count()
model = torch.nn.Linear(4, 1).to(f'cuda:{rank}')
"""


def test_the_fault_is_found_at_its_line() -> None:
    (found,) = findings(CHECK, read(SICK))
    assert found.location is not None
    assert found.location.line == 7
    assert found.severity is Severity.ERROR
    assert found.wanted


def test_a_healthy_script_passes() -> None:
    assert findings(CHECK, read(HEALTHY)) == ()
