"""A state of training saved by the real ``save_state``, loaded into fresh objects and compared on every rank.

The order of a shuffled loader and the position in it are not compared: ``save_state`` keeps them only with torchdata's
stateful loader.
"""

import hashlib
import random
import time
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import torch
from accelerate import Accelerator
from torch.utils.data import DataLoader

from accel_doctor.evidence import RoundTrip
from accel_doctor.probes.prepare import ProbeModel, features_of
from accel_doctor.probes.seat import Seat

STEPS = 2
ROWS = 4
SEED_SAVED, SEED_FRESH = 11, 22


class Trial(NamedTuple):
    """One training state and the Accelerator that prepared it, apart from that of the other probes."""

    accelerator: Accelerator
    model: torch.nn.Module
    optimizer: torch.optim.Optimizer
    scheduler: torch.optim.lr_scheduler.LRScheduler
    loader: DataLoader


class Attempt(NamedTuple):
    """How one call went on this rank."""

    error: str
    took_s: float


def round_trip(seat: Seat, folder: Path, everywhere: Callable[[bool], bool]) -> RoundTrip:
    """Return which parts of a state came back different on this rank.

    Args:
        seat: where this rank sits.
        folder: a folder that every rank reaches by this path; it need not exist.
        everywhere: whether something is so on every rank; called by all of them.
    """
    before = _build(seat, SEED_SAVED)
    _train(seat, before)
    saved = _attempt(lambda: before.accelerator.save_state(str(folder)))
    if not everywhere(not saved.error):
        return RoundTrip(compared=(), error=saved.error, save_s=saved.took_s)
    wanted = _parts(seat, before)
    after = _build(seat, SEED_FRESH)
    loaded = _attempt(lambda: after.accelerator.load_state(str(folder)))
    if not everywhere(not loaded.error):
        return RoundTrip(compared=(), error=loaded.error, save_s=saved.took_s, load_s=loaded.took_s)
    got = _parts(seat, after)
    return RoundTrip(
        compared=tuple(wanted),
        lost=tuple(name for name in wanted if wanted[name] != got[name]),
        save_s=saved.took_s,
        load_s=loaded.took_s,
        checkpoint_bytes=sum(path.stat().st_size for path in folder.rglob("*") if path.is_file()),
    )


def _build(seat: Seat, seed: int) -> Trial:
    torch.manual_seed(seed + seat.accelerator.process_index)
    model = ProbeModel()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)
    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=1, gamma=0.5)
    length = ROWS * STEPS * seat.accelerator.num_processes
    accelerator = Accelerator()
    loader = DataLoader(range(length), batch_size=ROWS, shuffle=True)
    with seat.record.collective("prepare"):
        return Trial(accelerator, *accelerator.prepare(model, optimizer, scheduler, loader))


def _train(seat: Seat, trial: Trial) -> None:
    with seat.record.collective("training"):
        for indices in trial.loader:
            trial.accelerator.backward(trial.model(features_of(indices)).square().mean())
            trial.optimizer.step()
            trial.scheduler.step()
            trial.optimizer.zero_grad()


def _attempt(call: Callable[[], object]) -> Attempt:
    """Return what a call raised, if it did: a rank that fails must still tell its peers."""
    started = time.perf_counter()
    try:
        call()
    except Exception as error:  # noqa: BLE001 - whatever save or load dies of is what is looked for
        return Attempt(f"{type(error).__name__}: {error}", time.perf_counter() - started)
    return Attempt("", time.perf_counter() - started)


def _parts(seat: Seat, trial: Trial) -> dict[str, str]:
    """Return a digest of each part of a state; draws random numbers."""
    random_draws = (random.random(), np.random.rand(), torch.rand(4), torch.rand(4, device=seat.device))  # noqa: NPY002, S311
    return {
        "model": fingerprint(trial.model.state_dict()),
        "optimizer": fingerprint(trial.optimizer.state_dict()),
        "scheduler": fingerprint(trial.scheduler.state_dict()),
        "random": fingerprint(random_draws),
    }


def fingerprint(value: object) -> str:
    """Return a digest of nested tensors and plain values, exact to the bit."""
    whole = hashlib.sha256()
    _feed(whole.update, value)
    return whole.hexdigest()[:16]


def _feed(update: Callable[[bytes], None], value: object) -> None:
    if isinstance(value, torch.Tensor):
        local = value.to_local() if hasattr(value, "to_local") else value
        update(local.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().tobytes())
    elif isinstance(value, dict):
        for key in sorted(value, key=str):
            update(str(key).encode())
            _feed(update, value[key])
    elif isinstance(value, (list, tuple)):
        for item in value:
            _feed(update, item)
    else:
        update(repr(value).encode())
