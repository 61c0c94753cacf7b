from msgspec.structs import replace

from accel_checks.hng008_swallowed_error import CHECK
from accel_doctor.check import Severity
from accel_doctor.evidence import LoopExit, SiteCode, StallSeen
from accel_doctor.evidence.run import Caught, Epoch, Position
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
for x, y in loader:
    try:
        loss = torch.nn.functional.mse_loss(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    except Exception:
        pass
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
for x, y in loader:
    try:
        loss = torch.nn.functional.mse_loss(model(x), y)
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    except Exception:
        accelerator.print('step failed')
        raise
"""


def test_the_fault_is_found_at_its_line() -> None:
    (found,) = findings(CHECK, read(SICK))
    assert found.location is not None
    assert found.location.line == 17
    assert found.severity is Severity.WARNING
    assert found.wanted


def test_a_healthy_script_passes() -> None:
    assert findings(CHECK, read(HEALTHY)) == ()


CAUGHT = Caught(kind="ValueError", site=at(31), count=1, step=5)
CODE = (SiteCode(site=at(31), try_lines=(31, 34), swallow_line=35),)
BACKWARD = SiteCode(site=at(33), try_lines=(31, 34), swallow_line=35)
STALLED = StallSeen(stalled=True, limit_s=5.0)


def test_an_error_caught_on_one_rank_round_its_backward() -> None:
    run = replace(sick_user_run(caught=(CAUGHT,)), code=CODE)
    (finding,) = findings(CHECK, run)
    assert finding.ranks == (1,)
    assert finding.location is not None
    assert finding.location.line == 35
    assert finding.severity is Severity.WARNING
    assert findings(CHECK, replace(run, stall=STALLED))[0].severity is Severity.ERROR


def test_what_all_ranks_catch_alike_is_none() -> None:
    assert findings(CHECK, replace(sick_user_run({"caught": (CAUGHT,)}), code=CODE)) == ()


def test_an_error_round_something_of_one_rank_is_none() -> None:
    alone = SiteCode(site=at(31), try_lines=(30, 32), swallow_line=35)
    assert findings(CHECK, replace(sick_user_run(caught=(CAUGHT,)), code=(alone,))) == ()


def test_a_handler_that_raises_again_is_none() -> None:
    assert findings(CHECK, replace(sick_user_run(caught=(CAUGHT,)), code=(SiteCode(site=at(31)),))) == ()


def loop(batches: int, backwards: int) -> dict[str, object]:
    epoch = Epoch(batches=batches, rows=8 * batches, backwards=backwards, exhausted=batches == 8)
    return {"loaders": (healthy_loader(epochs=(epoch,), epoch_count=1),)}


def test_a_backward_left_out_in_a_try_that_swallows() -> None:
    run = replace(sick_user_run(loop(8, 8), **loop(8, 7)), code=(BACKWARD,), stall=STALLED)
    (finding,) = findings(CHECK, run)
    assert finding.ranks == (1,)
    assert finding.message.startswith("rank 1 caught an error 1 more times than rank 0 at train.py:33")


def test_a_rank_that_has_not_yet_come_to_its_backward_left_none_out() -> None:
    at_work = Position(phase="loop", steps=5)
    run = sick_user_run(loop(6, 6), **loop(6, 5), position=at_work)
    assert findings(CHECK, replace(run, code=(BACKWARD,), stall=STALLED)) == ()


def test_a_batch_left_out_by_a_condition_is_another_fault() -> None:
    skips = SiteCode(site=at(30), exits=(LoopExit(line=32, condition_line=31, condition="bad(x)", skips=True),))
    run = replace(sick_user_run(loop(8, 8), **loop(8, 7)), code=(BACKWARD, skips), stall=STALLED)
    assert findings(CHECK, run) == ()


def test_a_healthy_run() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
