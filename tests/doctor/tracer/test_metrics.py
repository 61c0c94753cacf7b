"""Metrics of an evaluation on two real ranks: of one shard, and of all samples."""

from pathlib import Path

import pytest

from accel_doctor.catalogue import load_checks
from accel_doctor.diagnose import diagnose
from ranks import RunRanks
from traced_faults import faults
from traced_runs import watched

pytestmark = pytest.mark.ranks

SCRIPT = """import time
import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from accelerate import Accelerator
accelerator = Accelerator()
x = torch.arange(384.0).reshape(96, 4) / 384
data = TensorDataset(x, x.sum(1, keepdim=True))
model = nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
train, test = DataLoader(data, batch_size=8, shuffle=True), DataLoader(data, batch_size=8)
model, optimizer, train, test = accelerator.prepare(model, optimizer, train, test)
for epoch in range(2):
    for a, b in train:
        accelerator.backward((model(a) - b).pow(2).mean())
        optimizer.step()
        optimizer.zero_grad()
    accelerator.log({"train_loss": 1.0 + accelerator.process_index, "accuracy": accelerator.process_index})
    began, errors = time.time(), []
    with torch.no_grad():
        for a, b in test:
            error = (model(a) - b).pow(2)
            errors.append({kept})
    accelerator.wait_for_everyone()
    accelerator.log({"eval/mse": torch.cat(errors).mean().item(), "eval_s": time.time() - began})
"""


@pytest.mark.parametrize(
    ("kept", "found"), [("error", {"DAT011": [25]}), ("accelerator.gather_for_metrics(error)", {})], ids=["own", "all"]
)
def test_a_metric_of_one_shard(kept: str, found: dict[str, list[int]], run_ranks: RunRanks, tmp_path: Path) -> None:
    evidence = watched(run_ranks, tmp_path, SCRIPT.replace("{kept}", kept))
    assert faults(evidence) == found
    (result,) = [r for r in diagnose(evidence, load_checks()).results if r.id == "DAT011"]
    assert [len(f.values) for f in result.findings] == [2] * len(found)
    assert result.outcome.value != "skipped"
