"""Losses over tokens on two real ranks: a mean per micro-batch, and what weighs every token alike."""

from pathlib import Path

import pytest

from accel_doctor.catalogue import load_checks
from accel_doctor.diagnose import diagnose
from ranks import RunRanks
from traced_faults import faults
from traced_runs import watched

pytestmark = pytest.mark.ranks

SCRIPT = """import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
from accelerate import Accelerator
accelerator = Accelerator(gradient_accumulation_steps=2)
torch.manual_seed(0)
words = torch.randint(0, 50, (64, 16))
labels = words.roll(-1, 1).masked_fill(torch.arange(16) >= {length}, -100)
loader = DataLoader(TensorDataset(words, labels), batch_size=4, shuffle={shuffle})
model = nn.Sequential(nn.Embedding(50, 8), nn.Linear(8, 50))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for x, y in loader:
    with accelerator.accumulate(model):
        logits = model(x)
        accelerator.backward({loss})
        optimizer.step()
        optimizer.zero_grad()
"""
MEAN = "F.cross_entropy(logits.view(-1, 50), y.view(-1)) / 1.0"
SUM = "F.cross_entropy(logits.transpose(1, 2), y, reduction='sum') / 512"
LONG_AND_SHORT = "(2 + 12 * (torch.arange(64) // 8 % 2 == 0)).view(64, 1)"


@pytest.mark.parametrize(
    ("length", "loss", "outcome"),
    [(LONG_AND_SHORT, MEAN, "warned"), ("16", MEAN, "passed"), (LONG_AND_SHORT, SUM, "skipped")],
    ids=["long and short", "packed", "summed"],
)
def test_a_mean_of_means(length: str, loss: str, outcome: str, run_ranks: RunRanks, tmp_path: Path) -> None:
    text = SCRIPT.replace("{length}", length).replace("{loss}", loss).replace("{shuffle}", "False")
    evidence = watched(run_ranks, tmp_path, text)
    assert faults(evidence) == ({"DAT018": [17]} if outcome == "warned" else {})
    (result,) = [r for r in diagnose(evidence, load_checks()).results if r.id == "DAT018"]
    assert result.outcome.value == outcome
    first = evidence.world[0].trace
    assert first is not None
    if outcome == "warned":
        assert first.backwards[0].token_losses[0].tokens == (4 * 14, 4 * 2)
