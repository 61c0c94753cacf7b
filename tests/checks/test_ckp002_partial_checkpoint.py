import pytest
from msgspec.structs import replace

from accel_checks.ckp002_partial_checkpoint import CHECK
from accel_doctor.check import Severity
from accel_doctor.evidence import Evidence
from accel_doctor.evidence.run import Position, Written
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_source import read
from accel_doctor.testing_trace import at, healthy_trace, healthy_user_run, sick_user_run

SICK = """\
from accelerate import DeepSpeedPlugin
import torch
from torch.utils.data import DataLoader, TensorDataset
from accelerate import Accelerator

accelerator = Accelerator()
data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
loader = DataLoader(data, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
if accelerator.is_main_process:
    torch.save(optimizer.state_dict(), 'optimizer.bin')
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
if accelerator.is_main_process:
    torch.save(optimizer.state_dict(), 'optimizer.bin')
"""


def test_the_fault_is_found_at_its_line() -> None:
    (found,) = findings(CHECK, read(SICK))
    assert found.location is not None
    assert found.location.line == 13
    assert found.severity is Severity.WARNING
    assert found.wanted


def test_a_healthy_script_passes() -> None:
    assert findings(CHECK, read(HEALTHY)) == ()


SHARDED = replace(healthy_trace().wrapped[0], wrapper="FSDPModule", units=(300, 1000))
PART = Written(path="model.pt", site=at(45), how="torch.save", step=16, held_elements=50, whole_elements=100)
OTHER = replace(PART, path="model-1.pt")


def run(first: tuple[Written, ...], second: tuple[Written, ...] = (), **changes: object) -> Evidence:
    return sick_user_run({"wrapped": (SHARDED,), "written": first}, **{"written": second, **changes})


def test_a_shard_that_the_main_rank_alone_saves_is_an_error() -> None:
    (found,) = findings(CHECK, run((PART, replace(PART, path="model-2.pt", step=32))))
    assert found.severity is Severity.ERROR
    assert found.values == {"held_elements": 50, "whole_elements": 100, "kept_pct": 50.0}
    assert (found.location and found.location.line, found.ranks) == (45, (0,))


def test_shards_of_all_ranks_in_one_file_leave_one() -> None:
    (found,) = findings(CHECK, run((PART,), (PART,)))
    assert found.ranks == (0, 1)


SILENT = {
    "each rank a file": run((PART,), (OTHER,)),
    "a whole state": run((replace(PART, held_elements=None, whole_elements=None),)),
    "a rank that ended before": run((PART,), steps=8, position=Position(phase="step")),
}


@pytest.mark.parametrize("name", SILENT)
def test_what_is_whole_or_not_known_is_silent(name: str) -> None:
    assert findings(CHECK, SILENT[name]) == ()


def test_where_nothing_is_sharded_the_run_has_nothing_to_say() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "skipped"


SHARDED = """\
import torch
import torch.distributed as dist
from torch.distributed.fsdp import fully_shard
from torch.distributed.checkpoint.state_dict import get_model_state_dict

dist.init_process_group("gloo")
model = torch.nn.Sequential(torch.nn.Linear(4, 4), torch.nn.Linear(4, 1))
for layer in model:
    fully_shard(layer)
fully_shard(model)
if dist.get_rank() == 0:
    torch.save({"model": model.state_dict()}, "last.pt")
"""


def test_source_that_saves_a_sharded_model_on_one_rank() -> None:
    (found,) = findings(CHECK, read(SHARDED))
    assert found.location is not None
    assert (found.location.line, found.severity) == (12, Severity.ERROR)


@pytest.mark.parametrize(
    "saved",
    [
        'torch.save({"model": model.state_dict()}, f"last_{dist.get_rank()}.pt")',
        'state = get_model_state_dict(model)\nif dist.get_rank() == 0:\n    torch.save(state, "last.pt")',
    ],
)
def test_source_that_saves_each_part_or_the_gathered_whole_passes(saved: str) -> None:
    assert findings(CHECK, read(SHARDED[: SHARDED.index("if dist")] + saved + "\n")) == ()
