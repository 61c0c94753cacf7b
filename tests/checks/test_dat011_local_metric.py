import pytest
from msgspec.structs import replace

from accel_checks.dat011_local_metric import CHECK
from accel_doctor.check import Severity
from accel_doctor.evidence import Evidence
from accel_doctor.evidence.run import Logged
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_source import read
from accel_doctor.testing_trace import at, healthy_loader, healthy_user_run, sick_user_run

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


EVALUATION = healthy_loader(site=at(60), epochs=tuple(replace(e, backwards=0) for e in healthy_loader().epochs))
LOGGED = Logged(site=at(64), count=2, values={"eval/accuracy": 0.75, "eval_s": 1.0}, loader=1, exchanges=0)
OTHER = replace(LOGGED, values={"eval/accuracy": 0.5, "eval_s": 2.0})


def run(first: Logged, second: Logged | None, **loader: object) -> Evidence:
    loaders = (healthy_loader(), replace(EVALUATION, **loader))
    return sick_user_run({"logged": (first,), "loaders": loaders}, logged=(second,) if second else ())


def test_a_metric_that_each_rank_has_for_itself() -> None:
    (found,) = findings(CHECK, run(LOGGED, OTHER))
    assert found.values == {"lowest": 0.5, "highest": 0.75}
    assert (found.location and found.location.line, found.severity) == (64, Severity.WARNING)


SILENT = {
    "equal": run(LOGGED, replace(LOGGED, values={"eval/accuracy": 0.75, "eval_s": 2.0})),
    "gathered on the way": run(replace(LOGGED, exchanges=4), replace(OTHER, exchanges=4)),
    "unknown what was exchanged": run(replace(LOGGED, exchanges=None), replace(OTHER, exchanges=None)),
    "by the main rank alone": run(LOGGED, None),
    "every rank the whole data": run(LOGGED, OTHER, sharded_by=()),
    "not a number": run(LOGGED, replace(OTHER, values={"eval/accuracy": None})),
}


@pytest.mark.parametrize("name", SILENT)
def test_a_metric_of_all_or_that_proves_nothing_is_silent(name: str) -> None:
    assert findings(CHECK, SILENT[name]) == ()


def test_where_no_metric_is_logged_nothing_is_examined() -> None:
    times = replace(LOGGED, values={"eval_s": 1.0, "steps_per_second": 3.0, "time/loss_scale": 2.0})
    assert outcome(CHECK, run(times, replace(times, values={"eval_s": 2.0}))).outcome.value == "skipped"
    assert outcome(CHECK, healthy_user_run()).outcome.value == "skipped"
