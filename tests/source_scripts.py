"""Parts of training scripts, to put together sick and healthy ones."""

HEAD = """\
import os, time, math, random, json, shutil
import torch
import torch.distributed as dist
from torch import nn
import torch.nn.functional as F
from torch.utils.data import DataLoader, TensorDataset, IterableDataset, random_split
from torch.utils.data.distributed import DistributedSampler
from torch.nn.parallel import DistributedDataParallel as DDP
from accelerate import Accelerator, PartialState
from accelerate.logging import get_logger
from accelerate.utils import set_seed, broadcast_object_list, gather_object
from tqdm.auto import tqdm
import wandb

"""
SETUP = """\
    accelerator = Accelerator()
    data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    loader = DataLoader(data, batch_size=8, shuffle=True)
    val_loader = DataLoader(data, batch_size=8)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
    model, optimizer, loader, val_loader = accelerator.prepare(model, optimizer, loader, val_loader)
"""
STEP = """\
            loss = F.mse_loss(model(x), y)
            accelerator.backward(loss)
            optimizer.step()
            optimizer.zero_grad()
"""
RAW = """\
    dist.init_process_group("gloo")
    rank = dist.get_rank()
    data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
    sampler = DistributedSampler(data)
    loader = DataLoader(data, batch_size=8, sampler=sampler)
    model = DDP(nn.Linear(4, 1))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
RAW_STEP = """\
            loss = F.mse_loss(model(x), y)
            loss.backward()
            optimizer.step()
            optimizer.zero_grad()
"""


def script(body: str, before: str = "") -> str:
    """Return a whole script round the body of its main function."""
    filled = (
        body.replace("@SETUP\n", SETUP).replace("@STEP\n", STEP).replace("@RAW\n", RAW).replace("@RAW_STEP\n", RAW_STEP)
    )
    return f"{HEAD}{before}\ndef main():\n{filled}\n\nif __name__ == '__main__':\n    main()\n"


LOOP = "    for epoch in range(3):\n        for x, y in loader:\n"
UNPREPARED = """\
    accelerator = Accelerator()
    loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=8)
    model = nn.Linear(4, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
"""
