import pytest
from msgspec.structs import replace

from accel_checks.dat007_steps_from_unsharded_length import CHECK
from accel_doctor.check import Severity
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_source import read
from accel_doctor.testing_trace import STEPS, at, healthy_loader, healthy_trace, sick_user_run

SICK = """\
import torch
from torch.utils.data import DataLoader, TensorDataset
from accelerate import Accelerator

accelerator = Accelerator()
data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
loader = DataLoader(data, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 3 * len(loader)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
step = 0
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    step += 1
    if step >= total:
        break
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
total = 3 * len(loader)
step = 0
for x, y in loader:
    loss = torch.nn.functional.mse_loss(model(x), y)
    accelerator.backward(loss)
    optimizer.step()
    optimizer.zero_grad()
    step += 1
    if step >= total:
        break
"""


def test_the_fault_is_found_at_its_line() -> None:
    (found,) = findings(CHECK, read(SICK))
    assert found.location is not None
    assert found.location.line == 19
    assert found.severity is Severity.WARNING
    assert found.wanted


def test_a_healthy_script_passes() -> None:
    assert findings(CHECK, read(HEALTHY)) == ()


UNPREPARED = replace(healthy_trace().schedulers[0], accelerated=False, advanced=STEPS, length=2 * STEPS)
READ = {"length_before": STEPS, "length_site": at(21)}
LOADERS = (healthy_loader(**READ),)


def test_a_schedule_of_all_ranks_batches_that_one_rank_stepped() -> None:
    (found,) = findings(CHECK, sick_user_run({"schedulers": (UNPREPARED,), "loaders": LOADERS}))
    assert found.severity is Severity.WARNING
    assert found.values == {"schedule_length": 32, "schedule_steps": 16, "batches_before_prepare": 16}
    assert (found.location and found.location.line) == 23


SILENT = {
    "a prepared schedule": {"loaders": LOADERS},
    "one of the right length": {"schedulers": (replace(UNPREPARED, length=STEPS),), "loaders": LOADERS},
    "half a cosine on purpose": {"schedulers": (UNPREPARED,)},
    "an epoch that was broken off": {
        "schedulers": (UNPREPARED,),
        "loaders": (healthy_loader(**READ, epochs=(replace(healthy_loader().epochs[0], exhausted=False),)),),
    },
}


@pytest.mark.parametrize("name", SILENT)
def test_a_schedule_that_fits_or_nothing_tells_of_is_silent(name: str) -> None:
    assert findings(CHECK, sick_user_run(SILENT[name])) == ()


def test_a_rehearsal_does_not_tell_how_long_the_training_is() -> None:
    run = sick_user_run({"schedulers": (UNPREPARED,), "loaders": LOADERS, "stopped_at_step": 3})
    assert "did not come to its end" in outcome(CHECK, run).reason


STEPPED = """\
import torch
from torch.utils.data import DataLoader, TensorDataset
from accelerate import Accelerator

accelerator = Accelerator()
loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
total = 3 * len(loader)
schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda step: 1 - step / total)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for epoch in range(3):
    for x, y in loader:
        accelerator.backward(torch.nn.functional.mse_loss(model(x), y))
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
"""


def test_a_schedule_of_all_ranks_batches_that_is_stepped_for_those_of_one() -> None:
    (found,) = findings(CHECK, read(STEPPED))
    assert found.location is not None
    assert found.location.line == 10


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("model, optimizer, loader = accelerator.prepare(model, optimizer, loader)",
         "model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)"),
        ("total = 3 * len(loader)", "total = 3 * len(loader) // accelerator.num_processes"),
        ("total = 3 * len(loader)", "total = 400"),
        ("accelerator = Accelerator()", "accelerator = Accelerator(split_batches=True)"),
        ("        schedule.step()", "    schedule.step()"),
    ],
)  # fmt: skip
def test_a_schedule_that_fits_passes(old: str, new: str) -> None:
    assert findings(CHECK, read(STEPPED.replace(old, new))) == ()
