from accel_checks.ckp010_main_only_on_local_guard import CHECK
from accel_doctor.check import Severity
from accel_doctor.testing import findings
from accel_doctor.testing_source import read

SICK = """\
import torch
from torch.utils.data import DataLoader, TensorDataset
from accelerate import Accelerator

accelerator = Accelerator()
data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
loader = DataLoader(data, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
if accelerator.is_local_main_process:
    torch.save(model.state_dict(), 'last.pt')
"""
HEALTHY = """\
import torch
from torch.utils.data import DataLoader, TensorDataset
from accelerate import Accelerator

accelerator = Accelerator()
data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
loader = DataLoader(data, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
if accelerator.is_main_process:
    torch.save(model.state_dict(), 'last.pt')
"""


def test_the_fault_is_found_at_its_line() -> None:
    (found,) = findings(CHECK, read(SICK))
    assert found.location is not None
    assert found.location.line == 11
    assert found.severity is Severity.WARNING
    assert found.wanted


def test_a_healthy_script_passes() -> None:
    assert findings(CHECK, read(HEALTHY)) == ()
