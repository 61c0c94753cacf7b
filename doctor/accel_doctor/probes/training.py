"""A few optimizer steps through the prepared model; digests of parameters and gradients after each."""

import hashlib
from collections.abc import Iterable
from itertools import cycle, islice

import torch
from accelerate.utils import DistributedType

from accel_doctor.evidence import Checksum, TrainingProbe
from accel_doctor.probes.busy import keep_busy
from accel_doctor.probes.prepare import ProbeModel, features_of
from accel_doctor.probes.seat import Seat

STEPS = 3
MOST_ROWS = 256
"""Of a micro-batch: whether replicas stay equal shows on a few rows, and a large batch would take minutes on CPU."""


def probe(seat: Seat) -> TrainingProbe:
    """Return digests after each of ``STEPS`` steps; where parameters are shards there are none to compare."""
    with seat.record.collective("loader"):
        batches = list(seat.prepared.loader)
    checksums = _train(seat, batches)
    keep_busy(seat)
    return TrainingProbe(
        wrapper=type(seat.prepared.model).__name__,
        sharded=is_sharded(seat),
        optimizer_steps=STEPS,
        checksums=() if is_sharded(seat) else checksums,
        local_gradient=_local_gradient(seat, batches[0]),
    )


def _train(seat: Seat, batches: list[torch.Tensor]) -> tuple[Checksum, ...]:
    """Train on the batches over and over: every rank takes as many, however many its loader gave."""
    micro_batches = STEPS * seat.accelerator.gradient_accumulation_steps
    checksums: list[Checksum] = []
    for indices in islice(cycle(batches), micro_batches):
        with seat.record.collective("training"):
            with seat.accelerator.accumulate(seat.prepared.model):
                seat.accelerator.backward(seat.prepared.model(features_of(indices[:MOST_ROWS])).square().mean())
                gradients = _digest_of_step(seat, [p.grad for p in seat.prepared.model.parameters()])
                seat.prepared.optimizer.step()
                seat.prepared.optimizer.zero_grad()
            if seat.accelerator.sync_gradients:
                parameters = _digest_of_step(seat, list(seat.prepared.model.parameters()))
                checksums.append(Checksum(step=len(checksums), parameters=parameters, gradients=gradients))
    return tuple(checksums)


def _digest_of_step(seat: Seat, tensors: list[torch.Tensor | None]) -> str:
    """Return a digest after a step that all ranks took together; nothing in between, and nothing of shards."""
    return digest(tensors) if seat.accelerator.sync_gradients and not is_sharded(seat) else ""


def is_sharded(seat: Seat) -> bool:
    """Return whether this rank holds shards of the parameters instead of a replica."""
    kind = seat.accelerator.distributed_type
    if kind == DistributedType.DEEPSPEED:
        return int(seat.accelerator.state.deepspeed_plugin.zero_stage) == 3
    return kind in (DistributedType.FSDP, DistributedType.MEGATRON_LM) or any(
        hasattr(p, "placements") for p in seat.prepared.model.parameters()
    )


def _local_gradient(seat: Seat, indices: torch.Tensor) -> str:
    """Return the digest of this rank's own gradient, on a model of its own that is equal on every rank."""
    torch.manual_seed(0)
    model = ProbeModel().to(seat.device)
    model(features_of(indices[:MOST_ROWS])).square().mean().backward()
    return digest(p.grad for p in model.parameters())


def digest(tensors: Iterable[torch.Tensor | None]) -> str:
    """Return a digest of the exact bytes of tensors; empty when there are none, as for gradients that are sharded."""
    held = [t for t in tensors if t is not None]
    if not held:
        return ""
    whole = hashlib.sha256()
    for tensor in held:
        whole.update(tensor.detach().cpu().contiguous().view(torch.uint8).numpy().tobytes())
    return whole.hexdigest()[:16]
