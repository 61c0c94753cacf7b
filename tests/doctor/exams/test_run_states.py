"""``accel-doctor run`` on real launches: what is saved, normalised, counted and logged, sick and healthy."""

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

pytestmark = [pytest.mark.ranks, pytest.mark.slow]

LAUNCH = "accelerate launch --multi_gpu --num_processes 2 --num_machines 1 train.py"
PAIR = """import torch
from torch import nn
from torch.nn import functional as F
from torch.utils.data import DataLoader, TensorDataset
from accelerate import Accelerator
from accelerate.utils import DistributedDataParallelKwargs as Options
accelerator = Accelerator(gradient_accumulation_steps=2, kwargs_handlers=[Options(broadcast_buffers=False)])
torch.manual_seed(0)
words = torch.randint(0, 50, (64, 16))
tokens = 2 + 12 * (torch.arange(64) // 8 % 2 == 0)
labels = words.roll(-1, 1).masked_fill(torch.arange(16) >= tokens.view(64, 1), -100)
train = DataLoader(TensorDataset(words, labels), batch_size=4)
test = DataLoader(TensorDataset(words, labels), batch_size=4)
norm = {norm}
model = nn.Sequential(nn.Embedding(50, 16), norm, nn.Linear(16, 50))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
total = 2 * len(train) // 2
model, optimizer, train, test = accelerator.prepare(model, optimizer, train, test)
schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer.optimizer, T_max={length})
for epoch in range(2):
    for x, y in train:
        with accelerator.accumulate(model):
            loss = {loss}
            accelerator.backward(loss)
            optimizer.step()
            if accelerator.sync_gradients: schedule.step()
            optimizer.zero_grad()
    with torch.no_grad():
        losses = [{each} for x, y in test]
    accelerator.log({"eval_loss": torch.cat(losses).mean().item()})
"""
EACH = "F.cross_entropy(model(x).transpose(1, 2), y, reduction='none')"
SICK_PAIR = {
    "{norm}": "nn.BatchNorm1d(16)",
    "{length}": "total",
    "{loss}": "F.cross_entropy(model(x).transpose(1, 2), y)",
    "{each}": EACH + ".flatten()",
}
HEALTHY_PAIR = {
    "{norm}": "nn.LayerNorm(16)",
    "{length}": "2 * len(train) // 2",
    "{loss}": "F.cross_entropy(model(x).transpose(1, 2), y, reduction='sum') / 512",
    "{each}": f"accelerator.gather_for_metrics({EACH}).flatten()",
}
SHARDS = """import torch
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.fsdp import fully_shard
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from accelerate import Accelerator
accelerator = Accelerator()
mesh = init_device_mesh("cpu", (2,), mesh_dim_names=("dp",))
torch.manual_seed(0)
data = TensorDataset(torch.randn(96, 4), torch.randn(96, 1))
loader = accelerator.prepare(DataLoader(data, batch_size=8, shuffle=True))
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 1))
for layer in (model[0], model[2], model[4]): fully_shard(layer, mesh=mesh)
fully_shard(model, mesh=mesh)
optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
for a, b in loader:
    accelerator.backward((model(a) - b).pow(2).mean())
    optimizer.step()
    optimizer.zero_grad()
whole = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))
if accelerator.is_main_process: torch.save({state}, "model.pt")
accelerator.wait_for_everyone()
"""
TENSOR = """import torch
from torch import nn
from torch.distributed.device_mesh import init_device_mesh
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module
from torch.utils.data import DataLoader, DistributedSampler, TensorDataset
from accelerate import Accelerator
accelerator = Accelerator()
mesh = init_device_mesh("cpu", (1, 2), mesh_dim_names=("dp", "tp"))
x = torch.arange(384.0).reshape(96, 4) / 384
torch.manual_seed(0)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
model = parallelize_module(model, mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
data = TensorDataset(x, x.sum(1, keepdim=True))
loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data, {where}))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for a, b in loader:
    accelerator.backward((model(a) - b).pow(2).mean())
    optimizer.step()
    optimizer.zero_grad()
"""
CASES: dict[str, tuple[str, dict[str, str], dict[str, int]]] = {
    "a pair, sick": (PAIR, SICK_PAIR, {"DAT007": 19, "DAT011": 30, "DAT018": 24, "GRD009": 18}),
    "a pair, healthy": (PAIR, HEALTHY_PAIR, {}),
    "shards, sick": (SHARDS, {"{state}": "model.state_dict()"}, {"CKP002": 22}),
    "shards, healthy": (SHARDS, {"{state}": "whole"}, {}),
    "tensor parallel, sick": (TENSOR, {"{where}": "2, accelerator.process_index"}, {"DAT017": 14}),
    "tensor parallel, healthy": (TENSOR, {"{where}": "1, 0"}, {}),
}


def examine(folder: Path, text: str) -> dict[str, Any]:
    """Run the script on two real ranks; return the report."""
    (folder / "train.py").write_text(text)
    options = ("--output", f"json:{folder / 'report.json'}", "--run-dir", str(folder / "run"))
    kept = {k: v for k, v in os.environ.items() if k in ("HOME", "LANG", "PYTHONDONTWRITEBYTECODE")}
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        [sys.executable, "-m", "accel_doctor", "run", *options, "--", *LAUNCH.split()],
        cwd=folder,
        env={**kept, "PATH": path, "HF_HOME": str(folder / "hf"), "ACCELERATE_USE_CPU": "1", "OMP_NUM_THREADS": "1"},
        capture_output=True,
        text=True,
        timeout=280,
        check=False,
    )
    report: dict[str, Any] = json.loads((folder / "report.json").read_text())
    assert report["command"]["exit_code"] == 0, done.stderr
    return report


@pytest.mark.parametrize("name", CASES)
def test_a_real_launch(name: str, tmp_path: Path) -> None:
    text, changes, wanted = CASES[name]
    for mark, code in changes.items():
        text = text.replace(mark, code)
    report = examine(tmp_path, text)
    fired = {c["id"]: c["findings"] for c in report["checks"] if c["outcome"] in ("failed", "warned", "broken")}
    topics = {i: f for i, f in fired.items() if i.startswith(("CKP", "DAT", "GRD", "LOG", "SHD"))}
    assert {i: findings[0]["location"]["line"] for i, findings in topics.items()} == wanted, topics
