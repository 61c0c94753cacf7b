from accel_checks.dat015_misreduced_metric import CHECK
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
total = torch.zeros(1)
for x, y in loader:
    total += model(x).sum()
mean = accelerator.reduce(total) / len(loader)
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
total = torch.zeros(1)
for x, y in loader:
    total += model(x).sum()
mean = accelerator.reduce(total, reduction='mean') / len(loader)
"""


def test_the_fault_is_found_at_its_line() -> None:
    (found,) = findings(CHECK, read(SICK))
    assert found.location is not None
    assert found.location.line == 14
    assert found.severity is Severity.WARNING
    assert found.wanted


def test_a_healthy_script_passes() -> None:
    assert findings(CHECK, read(HEALTHY)) == ()


COUNTED = SICK.replace("total = torch.zeros(1)\n", "total = torch.zeros(1)\ncount = 0\n").replace(
    "    total += model(x).sum()\nmean = accelerator.reduce(total) / len(loader)\n",
    "    total += model(x).sum()\n    count += 1\nmean = accelerator.reduce(total, reduction='sum').item() / count\n",
)


def test_batches_that_a_rank_counts_itself_are_its_own() -> None:
    (found,) = findings(CHECK, read(COUNTED))
    assert found.location is not None
    assert found.location.line == 16
    of_all = COUNTED.replace("/ count", "/ (count * accelerator.num_processes)")
    assert findings(CHECK, read(of_all)) == ()
    assert findings(CHECK, read(COUNTED.replace("/ count", "/ accelerator.reduce(torch.tensor(count))"))) == ()
