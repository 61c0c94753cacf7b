"""A small model, its optimizer and a loader of indices, and what ``accelerator.prepare`` makes of them."""

import os
from types import SimpleNamespace

import torch
from accelerate import Accelerator
from accelerate.utils import DistributedType
from torch.utils.data import DataLoader

from accel_doctor.evidence import ProbeOptions
from accel_doctor.probes.seat import Prepared, Seat

WIDTH = 16
COPIES = 16
"""FP8 kernels take rows and columns by sixteens; equal rows leave the mean as it is."""
LEAST_STEPS = 2
LEAST_BATCHES = 8
"""Of one epoch and rank: enough that ranks which draw by chance do not look as if they shared the data."""
LEARNING_RATE = 0.5
"""A power of two: the product with a gradient is exact, so processors that fuse the addition and those that do not
get the same parameters."""


class Block(torch.nn.Module):  # type: ignore[misc] # torch is not read by mypy
    """One layer, to be wrapped by policies that name layer classes."""

    def __init__(self) -> None:
        """Make a square layer."""
        super().__init__()
        self.linear = torch.nn.Linear(WIDTH, WIDTH)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Return the features after the layer."""
        return torch.relu(self.linear(features))


class ProbeModel(torch.nn.Module):  # type: ignore[misc]
    """A stack of blocks whose classes bear the names that the launch wants wrapped."""

    def __init__(self, block_names: tuple[str, ...] = ()) -> None:
        """Make one block for each name, two where there are none."""
        super().__init__()
        classes = [type(name, (Block,), {}) for name in block_names] or [Block, Block]
        self.blocks = torch.nn.Sequential(*(block() for block in classes))
        self.head = torch.nn.Linear(WIDTH, 1)

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        """Return one number a row."""
        return self.head(self.blocks(features))


def features_of(indices: torch.Tensor) -> torch.Tensor:
    """Return the features of samples, which depend on nothing but their indices; shape (rows x COPIES, WIDTH)."""
    steps = torch.arange(1, WIDTH + 1, device=indices.device, dtype=torch.float32)
    return torch.sin(indices.float()[:, None] * steps).repeat(COPIES, 1)


def dataset_length(options: ProbeOptions, world_size: int) -> int:
    """Return a length one batch short of even, so that what happens at the end of an epoch shows."""
    accumulation = options.gradient_accumulation_steps
    steps = max(LEAST_STEPS, -(-LEAST_BATCHES // accumulation))
    return options.batch_size * (steps * world_size * accumulation - (world_size > 1))


def probe(seat: Seat) -> None:
    """Send everything through one call of ``prepare``, as the strategies that shard demand."""
    accelerator, options = seat.accelerator, seat.options
    torch.manual_seed(accelerator.process_index)
    model = ProbeModel(_wrapped_names())
    if accelerator.distributed_type == DistributedType.DEEPSPEED:
        model.config = SimpleNamespace(hidden_size=WIDTH)  # DeepSpeed's "auto" buckets are sized from it
    length = dataset_length(options, accelerator.num_processes)
    loader = DataLoader(range(length), batch_size=options.batch_size, shuffle=True)
    with seat.record.collective("prepare"):
        seat.prepared = Prepared(*accelerator.prepare(model, _optimizer(accelerator, model), loader))


def _wrapped_names() -> tuple[str, ...]:
    names = os.environ.get("FSDP_TRANSFORMER_CLS_TO_WRAP", "")
    return tuple(name.strip() for name in names.split(",") if name.strip())


def _optimizer(accelerator: Accelerator, model: torch.nn.Module) -> torch.optim.Optimizer:
    plugin = accelerator.state.deepspeed_plugin if accelerator.distributed_type == DistributedType.DEEPSPEED else None
    if plugin is not None and "optimizer" in plugin.deepspeed_config:
        from accelerate.utils.deepspeed import DummyOptim  # noqa: PLC0415 - only there under DeepSpeed

        return DummyOptim(model.parameters(), lr=LEARNING_RATE)
    return torch.optim.SGD(model.parameters(), lr=LEARNING_RATE)
