from accel_checks.dat011_local_metric import CHECK
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
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
correct = 0
for x, y in loader:
    correct += (model(x).round() == y).sum().item()
accelerator.print('accuracy', correct / 64)
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
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
correct = 0
for x, y in loader:
    out, y = accelerator.gather_for_metrics((model(x), y))
    correct += (out.round() == y).sum().item()
accelerator.print('accuracy', correct / 64)
"""


def test_the_fault_is_found_at_its_line() -> None:
    (found,) = findings(CHECK, read(SICK))
    assert found.location is not None
    assert found.location.line == 14
    assert found.severity is Severity.WARNING
    assert found.wanted


def test_a_healthy_script_passes() -> None:
    assert findings(CHECK, read(HEALTHY)) == ()
