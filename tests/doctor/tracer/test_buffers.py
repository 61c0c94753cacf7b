"""Buffers of models on two real ranks: statistics of one rank's batches, and what only looks like it."""

from pathlib import Path

import pytest

from accel_doctor.catalogue import load_checks
from accel_doctor.diagnose import diagnose
from ranks import RunRanks
from traced_runs import watched

pytestmark = pytest.mark.ranks

SCRIPT = """import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from accelerate import Accelerator
from accelerate.utils import DistributedDataParallelKwargs as Options
accelerator = Accelerator(kwargs_handlers=[Options(broadcast_buffers={broadcast})])
torch.manual_seed(0)
x = torch.randn(96, 4)
loader = DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(4, 8), {norm}, nn.ReLU(), nn.Linear(8, 1))
model.register_buffer("scratch", torch.full((4,), 1.0 * accelerator.process_index), persistent=False)
model.register_buffer("mask", torch.ones(4, dtype=torch.bool))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for a, b in loader:
    accelerator.backward((model(a) - b).pow(2).mean())
    optimizer.step()
    optimizer.zero_grad()
"""
PLAIN, WITHOUT = "nn.BatchNorm1d(8)", "nn.LayerNorm(8)"


@pytest.mark.parametrize(
    ("norm", "broadcast", "severities"),
    [(PLAIN, "False", ["warning"]), (PLAIN, "True", ["note"]), (WITHOUT, "False", [])],
)
def test_statistics_of_one_rank(
    norm: str, broadcast: str, severities: list[str], run_ranks: RunRanks, tmp_path: Path
) -> None:
    text = SCRIPT.replace("{norm}", norm).replace("{broadcast}", broadcast)
    results = diagnose(watched(run_ranks, tmp_path, text), load_checks()).results
    (result,) = [r for r in results if r.id == "GRD009"]
    assert [f.severity.value for f in result.findings] == severities, result
    assert [f.location.line for f in result.findings if f.location] == [14] * len(severities)
    assert result.outcome.value == ("warned" if severities == ["warning"] else "passed")
    assert not [
        r.id
        for r in results
        if r.id != "GRD009" and r.id[:3] in ("DAT", "GRD", "CKP") and r.outcome.value in ("failed", "warned")
    ]
