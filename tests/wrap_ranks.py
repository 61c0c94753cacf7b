"""Three processes a case: two real gloo ranks that prepare the model, and one that plans it. Run by ``run_ranks``."""

import json
import os
from pathlib import Path
from typing import Any

import msgspec
import torch  # noqa: TID253 - this file runs as a rank
from accelerate import Accelerator, PartialState  # noqa: TID253
from accelerate.utils import DistributedType  # noqa: TID253
from torch import nn  # noqa: TID253
from torch.distributed.fsdp import FSDPModule, FullyShardedDataParallel  # noqa: TID253

import wrap_models
from accel_doctor.launch.wrap_plan import OF_A_RANK, PlanRequest
from accel_doctor.probes.wrap_fsdp import Refused, make_plugin
from accel_doctor.probes.wrap_model import build
from accel_doctor.probes.wrap_plan import answer_to
from accel_doctor.probes.wrap_units import plan_of

RANKS = 2
PRECISION = os.environ.get("ACCELERATE_MIXED_PRECISION", "no")


def main(run_dir: Path) -> None:
    """Be one of the three, and write what came of it."""
    rank, model = int(os.environ["RANK"]), os.environ["MODEL"]
    seen = planned(model) if rank == RANKS else prepared(model)
    (run_dir / f"{rank}.json").write_text(json.dumps(seen))


def answered(run_dir: Path) -> None:
    """Write what the process behind ``--model`` would answer."""
    for name in OF_A_RANK:
        os.environ.pop(name, None)
    request = PlanRequest(model=os.environ["MODEL"], ranks=RANKS, mixed_precision=PRECISION, answer=0, timeout_s=60)
    (run_dir / "answer.json").write_bytes(msgspec.json.encode(answer_to(request)))


def planned(model: str) -> dict[str, Any]:
    """Return the plan as built-in types."""
    for name in OF_A_RANK:
        os.environ.pop(name, None)
    request = PlanRequest(model=model, ranks=RANKS, mixed_precision=PRECISION, answer=0, timeout_s=60)
    return dict(msgspec.to_builtins(plan_of(request, build(f"{wrap_models.__file__}:{model}"))))


def prepared(model: str) -> dict[str, Any]:
    """Return the units after ``Accelerator.prepare`` and the first words of what stops it or its first steps."""
    os.environ["WORLD_SIZE"] = str(RANKS)
    seen: dict[str, Any] = {}
    try:
        module = prepare(getattr(wrap_models, model)())
        seen["units"] = units_1(module) if isinstance(module, FullyShardedDataParallel) else units_2(module)
        if os.environ.get("STEP"):
            seen["apart"] = step(module)
    except Exception as error:  # noqa: BLE001 - some cases must not wrap
        raised = error.error if isinstance(error, Refused) else error
        seen["error"] = f"{type(raised).__name__}: {str(raised).splitlines()[0]}"
    return seen


def prepare(model: nn.Module) -> nn.Module:
    """Let accelerate prepare a model for FSDP on CPU, where it would make DDP of it."""
    accelerator = Accelerator(cpu=True)
    accelerator.wait_for_everyone()
    for state in (PartialState(), accelerator.state):
        state.device = torch.device("cpu")
        state.distributed_type = DistributedType.FSDP
    accelerator.state.fsdp_plugin = make_plugin(PRECISION)
    if accelerator.state.fsdp_plugin.fsdp_version == 1:
        return accelerator.prepare_model(model)
    module, _ = accelerator.prepare(model, torch.optim.SGD(model.parameters(), lr=0.1))
    return module


def units_1(root: nn.Module) -> dict[str, int]:
    """Return the parameters of each unit of version 1, by its path."""
    units = {}
    for name, module in root.named_modules():
        if isinstance(module, FullyShardedDataParallel):
            path = name.replace("_fsdp_wrapped_module.", "").replace("_fsdp_wrapped_module", "").rstrip(".")
            units[path] = module._flat_param._unpadded_unsharded_size.numel() if module._has_params else 0
    return units


def units_2(root: nn.Module) -> dict[str, int]:
    """Return the parameters of each unit of version 2: modules that share a state share a unit."""
    paths: dict[int, list[str]] = {}
    sizes: dict[int, int] = {}
    for name, module in root.named_modules():
        if isinstance(module, FSDPModule):
            state = module._get_fsdp_state()
            paths.setdefault(id(state), []).append(name)
            sizes[id(state)] = sum(p._orig_size.numel() for g in state._fsdp_param_groups for p in g.fsdp_params)
    return {" + ".join(paths[key]): sizes[key] for key in paths}


def step(module: nn.Module) -> bool:
    """Train two steps and return whether the table and the head have come apart."""
    optimizer = torch.optim.SGD(module.parameters(), lr=0.1)
    for _ in range(2):
        module(torch.arange(10)[None]).float().sum().backward()
        optimizer.step()
        optimizer.zero_grad()
    state = {n: t.full_tensor() if hasattr(t, "full_tensor") else t for n, t in module.state_dict().items()}
    return not torch.equal(state["embed.weight"], state["head.weight"])
