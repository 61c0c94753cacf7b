"""Faults to be put into one rank, each as it would happen: called in the rank before it starts its work."""

import os
import signal
import time
from collections.abc import Callable
from typing import Any

import torch  # noqa: TID253 - this module is imported in ranks only
import torch.distributed as dist  # noqa: TID253
from accelerate import Accelerator, PartialState  # noqa: TID253

from accel_doctor.probes.record import RankFile
from ranks import die_with_parent


def killed_in(phase: str) -> None:
    """Die of SIGKILL as soon as a phase has begun."""
    _when_begun(phase, lambda: os.kill(os.getpid(), signal.SIGKILL))


def stopped_in(phase: str) -> None:
    """Freeze by SIGSTOP as soon as a phase has begun."""
    _when_begun(phase, lambda: os.kill(os.getpid(), signal.SIGSTOP))


def asleep_in(phase: str) -> None:
    """Sleep for ever once a phase has begun."""
    _when_begun(phase, lambda: time.sleep(3600))


def raising_in(phase: str, message: str) -> None:
    """Fail with an exception once a phase has begun."""

    def fail() -> None:
        raise ValueError(message)

    _when_begun(phase, fail)


def leaving_in(phase: str, code: int) -> None:
    """Leave by ``sys.exit`` once a phase has begun."""

    def leave() -> None:
        raise SystemExit(code)

    _when_begun(phase, leave)


def _when_begun(phase: str, do: Callable[[], object]) -> None:
    begin = RankFile.begin

    def begin_and_do(self: RankFile, name: str) -> None:
        begin(self, name)
        if name == phase:
            do()

    RankFile.begin = begin_and_do  # type: ignore[method-assign,assignment]


Collective = Callable[..., Any]
NAMES = {
    "all_gather": ("all_gather_single", "all_gather_into_tensor"),
    "reduce_scatter": ("reduce_scatter_single", "reduce_scatter_tensor"),
}
"""What torch calls a collective on whole tensors, its newest name first."""


def _replace(op: str, made_of: Callable[[Collective], Collective]) -> None:
    for name in NAMES.get(op, (op,)):
        if hasattr(dist, name):
            setattr(dist, name, made_of(getattr(dist, name)))


def wrong_collective(op: str, error: float = 1.0) -> None:
    """Add an error to every value that a collective of more than one number returns here."""

    def made_of(real: Collective) -> Collective:
        def wrong(first: torch.Tensor, *rest: object, **more: object) -> object:
            result = real(first, *rest, **more)
            if first.is_floating_point() and first.numel() > 1:
                first.add_(error)
            return result

        return wrong

    _replace(op, made_of)


def slow_collective(op: str, seconds: float, from_bytes: int = 0) -> None:
    """Sleep in a collective before taking part in it, when it returns so many bytes or more."""

    def made_of(real: Collective) -> Collective:
        def slow(first: torch.Tensor, *rest: object, **more: object) -> object:
            if first.numel() * first.element_size() >= from_bytes:
                time.sleep(seconds)
            return real(first, *rest, **more)

        return slow

    _replace(op, made_of)


def missing_collective(op: str) -> None:
    """Refuse a collective as a backend does that has none."""

    def refuse(*_: object, **__: object) -> None:
        raise RuntimeError(f"Backend gloo does not support {op}")

    _replace(op, lambda _: refuse)


def unprepared_loader() -> None:
    """Leave loaders as the script made them."""
    Accelerator.prepare_data_loader = lambda _, loader, **__: loader


def unwrapped_model() -> None:
    """Train the model itself, as a forward through ``.module`` does: gradients never meet."""
    Accelerator.prepare_model = lambda _, model, **__: model


def uneven_batches() -> None:
    """Let ranks end an epoch when their own data end."""
    Accelerator.even_batches = property(lambda _: False)


def other_version(version: str) -> None:
    """Run another accelerate, by its own word."""
    import accelerate

    accelerate.__version__ = version


def crowded_core(core: int, hogs: int) -> None:
    """Bind this rank to one core; keep that core busy with others that go first while the rank computes."""
    os.sched_setaffinity(0, {core})

    def crowd() -> None:
        for _ in range(hogs):
            if os.fork() == 0:
                die_with_parent()
                while True:
                    pass
        os.nice(10 if hogs else 0)

    _when_begun("compute", crowd)


def sharded_on_cpu() -> None:
    """Have the Accelerator shard by FSDP as the FSDP_* variables say, which accelerate itself does on devices only."""
    from accelerate.utils import DistributedType, FullyShardedDataParallelPlugin

    begin = Accelerator.__init__

    def begin_sharded(self: Accelerator, **settings: object) -> None:
        begin(self, **settings)
        self.state.fsdp_plugin = FullyShardedDataParallelPlugin()
        for state in (PartialState(), self.state):
            state.device = torch.device("cpu")
            state.distributed_type = DistributedType.FSDP

    Accelerator.__init__ = begin_sharded
