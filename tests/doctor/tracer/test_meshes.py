"""Tensor parallel peers on two real ranks: samples of their own, and the same ones."""

from pathlib import Path

import pytest

from ranks import RunRanks
from traced_faults import faults
from traced_runs import watched

pytestmark = pytest.mark.ranks

SCRIPT = """import torch
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
sampler = DistributedSampler(data, {where})
loader = DataLoader(data, batch_size=8, sampler=sampler)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
for a, b in loader:
    accelerator.backward((model(a) - b).pow(2).mean())
    optimizer.step()
    optimizer.zero_grad()
"""
SPLIT, RIGHT = "2, accelerator.process_index", "mesh['dp'].size(), mesh['dp'].get_local_rank()"


@pytest.mark.parametrize(("where", "found"), [(SPLIT, {"DAT017": [14]}), (RIGHT, {})], ids=["split", "by data ranks"])
def test_samples_of_tensor_parallel_peers(
    where: str, found: dict[str, list[int]], run_ranks: RunRanks, tmp_path: Path
) -> None:
    assert faults(watched(run_ranks, tmp_path, SCRIPT.replace("{where}", where))) == found
