"""What a sharded model's script saves, on two real ranks: a shard as the whole, and what only looks like it."""

from pathlib import Path

import pytest

from ranks import RunRanks
from traced_faults import faults
from traced_runs import watched

pytestmark = pytest.mark.ranks

BASE = """import torch
import torch.distributed.checkpoint as dcp
from torch import nn
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.fsdp import FullyShardedDataParallel as FSDP, fully_shard
from torch.utils.data import DataLoader, TensorDataset
from accelerate import Accelerator
accelerator = Accelerator()
main, rank = accelerator.is_main_process, accelerator.process_index
torch.manual_seed(0)
x = torch.randn(96, 4)
loader = accelerator.prepare(DataLoader(TensorDataset(x, x.sum(1, keepdim=True)), batch_size=8, shuffle=True))
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 4), nn.ReLU(), nn.Linear(4, 1))
{wrap}
optimizer = torch.optim.AdamW(model.parameters(), lr=0.05)
for a, b in loader:
    accelerator.backward((model(a) - b).pow(2).mean())
    optimizer.step()
    optimizer.zero_grad()
{save}
torch.distributed.barrier()
"""
FSDP2 = "for layer in (model[0], model[2], model[4]): fully_shard(layer)\nfully_shard(model)"
CPU = "device_id=torch.device('cpu')"
LAYERS = "auto_wrap_policy=lambda module, recurse, nonwrapped_numel: recurse or isinstance(module, nn.Linear)"
FSDP1 = f"model = FSDP(model, {CPU}, {LAYERS})"
ORIGINALS = f"model = FSDP(model, {CPU}, {LAYERS}, use_orig_params=True)"

SICK = {
    FSDP2: (
        "if main: torch.save(model.state_dict(), 'model.pt')",
        "if main: torch.save({'epoch': 1, 'model': model.state_dict()}, 'last.pt')",
        "torch.save(model.state_dict(), 'all.pt')",
        "accelerator.save(model.state_dict(), 'accelerate.pt')",
        "if main: torch.save({k: v.to_local().clone() for k, v in model.state_dict().items()}, 'plain.pt')",
        "if main: torch.save(optimizer.state_dict(), 'optimizer.pt')",
    ),
    FSDP1: (
        "if main: torch.save(optimizer.state_dict(), 'optimizer.pt')",
        "if main: torch.save({n: p.detach() for n, p in model.named_parameters()}, 'flat.pt')",
    ),
    ORIGINALS: ("if main: torch.save({n: p.detach().clone() for n, p in model.named_parameters()}, 'model.pt')",),
}
HEALTHY = {
    FSDP2: (
        "torch.save(model.state_dict(), f'model-{rank}.pt')",
        "dcp.save({'model': model.state_dict()}, checkpoint_id='out')",
        "state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True, cpu_offload=True))",
        "if main: torch.save(state, 'model.pt')",
        "head = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 1))",
        "if main: torch.save(head.state_dict(), 'head.pt')",
    ),
    FSDP1: (
        "state, moments = model.state_dict(), FSDP.full_optim_state_dict(model, optimizer)",
        "if main: torch.save(state, 'model.pt')",
        "if main: torch.save(moments, 'optimizer.pt')",
    ),
    "model = accelerator.prepare(model)": (
        "if main: torch.save(accelerator.unwrap_model(model).state_dict(), 'model.pt')",
        "if main: torch.save(optimizer.state_dict(), 'optimizer.pt')",
    ),
}
NAMES = ("FSDP 2", "FSDP 1", "FSDP 1 with the original parameters")
HEALTHY_NAMES = (*NAMES[:2], "DDP")


@pytest.mark.parametrize("wrap", SICK, ids=NAMES)
def test_a_shard_saved_as_the_whole_is_found_where_it_is_saved(wrap: str, run_ranks: RunRanks, tmp_path: Path) -> None:
    text = BASE.replace("{wrap}", wrap).replace("{save}", "\n".join(SICK[wrap]))
    wanted = [n for n, line in enumerate(text.splitlines(), 1) if "save(" in line]
    found = faults(watched(run_ranks, tmp_path, text))
    assert found == {"CKP002": wanted}


@pytest.mark.parametrize("wrap", HEALTHY, ids=HEALTHY_NAMES)
def test_a_whole_state_and_the_parts_of_all_ranks_are_silent(wrap: str, run_ranks: RunRanks, tmp_path: Path) -> None:
    text = BASE.replace("{wrap}", wrap).replace("{save}", "\n".join(HEALTHY[wrap]))
    assert faults(watched(run_ranks, tmp_path, text)) == {}
