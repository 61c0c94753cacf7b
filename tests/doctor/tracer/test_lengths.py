"""Schedules on two real ranks, as long as a loader was before prepare, and what only looks like it."""

from pathlib import Path

import pytest

from ranks import RunRanks
from traced_faults import faults
from traced_runs import watched

pytestmark = pytest.mark.ranks

SCRIPT = """import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from accelerate import Accelerator
accelerator = Accelerator()
x = torch.arange(384.0).reshape(96, 4) / 384
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
model = nn.Linear(4, 1)
torch.nn.init.ones_(model.weight)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
print_length = accelerator.print(len(loader), "batches")
{before}
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=total)
{prepare}
for epoch in range(3):
    for a, b in loader:
        accelerator.backward((model(a) - b).pow(2).mean())
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
"""
TOTAL, PREPARE = "total = 3 * len(loader)", "model, optimizer, loader = accelerator.prepare(model, optimizer, loader)"
ALL = "model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)"


@pytest.mark.parametrize(
    ("before", "prepare", "found"),
    [(TOTAL, PREPARE, {"DAT007": [13]}), (TOTAL, ALL, {}), (f"{PREPARE}; {TOTAL}", "", {})],
    ids=["not prepared", "prepared", "counted after prepare"],
)
def test_a_schedule_of_all_ranks_batches(
    before: str, prepare: str, found: dict[str, list[int]], run_ranks: RunRanks, tmp_path: Path
) -> None:
    text = SCRIPT.replace("{before}", before).replace("{prepare}", prepare)
    assert faults(watched(run_ranks, tmp_path, text)) == found
