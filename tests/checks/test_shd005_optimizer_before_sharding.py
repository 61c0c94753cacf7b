from accel_checks.shd005_optimizer_before_sharding import CHECK
from accel_doctor.check import Severity
from accel_doctor.testing import findings
from accel_doctor.testing_source import read

SICK = """\
import os
import torch
import torch.distributed as dist

dist.init_process_group('nccl')
from torch.distributed.fsdp import fully_shard
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.AdamW(model.parameters())
fully_shard(model)
"""
HEALTHY = """\
import os
import torch
import torch.distributed as dist

dist.init_process_group('nccl')
from torch.distributed.fsdp import fully_shard
model = torch.nn.Linear(4, 1)
fully_shard(model)
optimizer = torch.optim.AdamW(model.parameters())
"""


def test_the_fault_is_found_at_its_line() -> None:
    (found,) = findings(CHECK, read(SICK))
    assert found.location is not None
    assert found.location.line == 8
    assert found.severity is Severity.ERROR
    assert found.wanted


def test_a_healthy_script_passes() -> None:
    assert findings(CHECK, read(HEALTHY)) == ()
