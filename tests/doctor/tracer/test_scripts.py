# ruff: noqa: E501 - lines of scripts
"""Scripts on two real ranks: the tracer sees the fault that was planted, and nothing in their healthy twin."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest

from accel_doctor.evidence import Ending, Evidence, StallSeen
from accel_doctor.evidence.trace_file import read_traced_ranks
from accel_doctor.exams.site_code import read_code
from accel_doctor.testing_trace import healthy_user_run
from ranks import RunRanks
from traced_faults import faults

pytestmark = pytest.mark.ranks

BASE = """import torch
from torch import nn
from torch.utils.data import DataLoader, TensorDataset
from accelerate import Accelerator
from accelerate.utils import set_seed
accelerator = Accelerator()
torch.manual_seed(0)
x = torch.randn(96, 4)
data = TensorDataset(x, x.sum(1, keepdim=True))
loader = DataLoader(data, batch_size=8, shuffle=True)
model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1))
optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
for epoch in range(2):
    for step, (a, b) in enumerate(loader):
        loss = (model(a) - b).pow(2).mean()
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
    accelerator.print(f"epoch {epoch}")
accelerator.wait_for_everyone()
"""


class Case(NamedTuple):
    """A fault planted into the base script."""

    changes: dict[str, str]
    ids: frozenset[str]
    line: str
    """A text of the line that must be named."""
    base: str = BASE

    @property
    def no_line(self) -> tuple[None, ...]:
        """Return the absent line, where a case names none: the run does not show which line is to blame."""
        return () if self.line else (None,)


def case(ids: str, line: str, **changes: str) -> Case:
    """Return a case; each change is the number of a line and what stands there instead."""
    return Case({number[1:]: text for number, text in changes.items()}, frozenset(ids.split()), line)


GROWS = "        n = 1 + step + 6 * epoch; loss = compiled(model(a).repeat(n, 1), b.repeat(n, 1))"

CASES = {
    "loader not prepared": case(
        "DAT001", "enumerate(loader)", l13="model, optimizer = accelerator.prepare(model, optimizer)"
    ),
    "the second of two loaders not prepared": case(
        "DAT001",
        "zip(other, loader)",
        l10="loader = DataLoader(data, batch_size=8, shuffle=True); other = DataLoader(data, batch_size=8, shuffle=True)",
        l15="    for step, ((c, _), (a, b)) in enumerate(zip(other, loader)):",
        l16="        loss = (model(a) - b).pow(2).mean() + model(c).abs().mean()",
    ),
    "model not prepared": case("GRD002", "prepare(", l13="optimizer, loader = accelerator.prepare(optimizer, loader)"),
    "a head left out of prepare, in the optimizer of a model that was not": case(
        "GRD002",
        "prepare(",
        l12="head = nn.Linear(1, 1); optimizer = torch.optim.SGD([*model.parameters(), *head.parameters()], lr=0.05)",
        l16="        loss = (head(model(a)) - b).pow(2).mean()",
    ),
    "unwrapped forward": case("GRD003", "model.module", l16="        loss = (model.module(a) - b).pow(2).mean()"),
    "plain backward": case("GRD001", "loss.backward", l17="        loss.backward()"),
    "a function compiled for every shape": case(
        "SPD007",
        "def error",
        l4="from accelerate import Accelerator\ndef error(a, b): return (a - b).pow(2).mean()",
        l5="compiled = torch.compile(error, backend='eager', dynamic=False)",
        l16=GROWS,
    ),
    "print on every rank": case("LOG001", "print(epoch)", l20="    print(epoch)"),
    "bar on every rank": case(
        "LOG002",
        "tqdm(loader)",
        l5="from tqdm.auto import tqdm",
        l15="    for step, (a, b) in enumerate(tqdm(loader)):",
    ),
    "one file for all": case("LOG004", "open(", l20="    open('log.txt', 'a').write('x')"),
    "one checkpoint for all": case(
        "CKP003", "torch.save", l20="    torch.save(accelerator.unwrap_model(model).state_dict(), 'm.pt')"
    ),
    "wrapped keys": case(
        "CKP005", "torch.save", l20="    if accelerator.is_main_process: torch.save(model.state_dict(), 'm.pt')"
    ),
    "its own path": case(
        "CKP011",
        "open(",
        l5="import os, time",
        l20="    open(f'run-{time.time_ns()}-{os.getpid()}.txt', 'w').write('x')",
    ),
    "clipping in the middle of an accumulation": case(
        "GRD013",
        "clip_grad_norm_",
        l6="accelerator = Accelerator(gradient_accumulation_steps=2)",
        l16="        with accelerator.accumulate(model):",
        l17="            accelerator.backward((model(a) - b).pow(2).mean())",
        l18="            accelerator.clip_grad_norm_(model.parameters(), 1.0); optimizer.step()",
        l19="            optimizer.zero_grad()",
    ),
    "accumulation never entered": case(
        "DAT008", "Accelerator(", l6="accelerator = Accelerator(gradient_accumulation_steps=2)"
    ),
    "divided twice": case(
        "DAT008",
        "loss / 2",
        l6="accelerator = Accelerator(gradient_accumulation_steps=2)",
        l16="        with accelerator.accumulate(model):",
        l17="            loss = (model(a) - b).pow(2).mean(); loss = loss / 2",
        l18="            accelerator.backward(loss); optimizer.step()",
        l19="            optimizer.zero_grad()",
    ),
    "same noise": case(
        "DAT013", "noise", l16="        noise = torch.randn_like(a); loss = (model(a + noise) - b).pow(2).mean()"
    ),
    "unfrozen after prepare": case(
        "GRD005",
        "requires_grad_(True)",
        l5="",
        l11="model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)); model[0].requires_grad_(False)",
        l20="    model.module[0].requires_grad_(True)",
    ),
    "step inside of backward": case(
        "GRD011",
        "def hook",
        l5="def hook(parameter): optimizer.step()",
        l14="for epoch in range(2 if model.module[0].weight.register_post_accumulate_grad_hook(hook) else 0):",
        l18="        pass",
    ),
    "not a number": case("GRD012", "", l16="        loss = (model(a) - b).pow(2).mean() * float('nan')"),
    "a barrier a step": case(
        "SPD006",
        "wait_for_everyone",
        l9="data = TensorDataset(x.repeat(4, 1), x.sum(1, keepdim=True).repeat(4, 1))",
        l19="        optimizer.zero_grad(); accelerator.wait_for_everyone()",
    ),
    "sharded twice": case(
        "DAT002",
        "prepare(",
        l10="loader = DataLoader(data, batch_size=8, sampler=torch.utils.data.DistributedSampler(data, 2, accelerator.process_index))",
        l15="    loader.set_epoch(epoch)\n    for step, (a, b) in enumerate(loader):",
    ),
    "another split on each rank": case(
        "DAT014",
        "random_split(",
        l9="data = torch.utils.data.random_split(TensorDataset(x, x.sum(1, keepdim=True)), [72, 24], torch.Generator().manual_seed(accelerator.process_index))[0]",
    ),
    "prepared schedule of the wrong length": case(
        "DAT006",
        "schedule.step",
        l12="optimizer = torch.optim.SGD(model.parameters(), lr=0.05); schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=12)",
        l13="model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)",
        l18="        optimizer.step(); schedule.step()",
    ),
    "every micro-batch averaged": case(
        "GRD008",
        "backward",
        l18="        if step % 3 == 2: optimizer.step()",
        l19="        if step % 3 == 2: optimizer.zero_grad()",
    ),
    "a data set smaller than one batch of all ranks": case("DAT005", "DataLoader(", l8="x = torch.randn(10, 4)"),
    "the seed of the sampler differs by rank": case(
        "DAT014",
        "DataLoader(",
        l10="loader = DataLoader(data, batch_size=8, sampler=torch.utils.data.DistributedSampler(data, 2, accelerator.process_index, seed=accelerator.process_index))",
        l13="model, optimizer = accelerator.prepare(model, optimizer)",
        l15="    loader.sampler.set_epoch(epoch)\n    for step, (a, b) in enumerate(loader):",
    ),
    "accumulate() with one of two models": case(
        "GRD008",
        "accelerator.accumulate(model)",
        l6="accelerator = Accelerator(gradient_accumulation_steps=4)",
        l13="other = nn.Linear(4, 1); second = torch.optim.SGD(other.parameters(), lr=0.05); model, optimizer, loader, other, second = accelerator.prepare(model, optimizer, loader, other, second)",
        l16="        with accelerator.accumulate(model):",
        l17="            accelerator.backward((model(a) - b).pow(2).mean() + (other(a) - b).pow(2).mean())",
        l18="            optimizer.step(); second.step()",
        l19="            optimizer.zero_grad(); second.zero_grad()",
    ),
    "the effective batch that the script itself names": case(
        "DAT004",
        "DataLoader(",
        l5="import argparse; p = argparse.ArgumentParser(); p.add_argument('--total_batch_size', type=int, default=8); args = p.parse_args()",
    ),
    "FSDP in one unit with an optimizer made before": case(
        "SHD003 SHD005",
        "optimizer = ",
        l10="loader = DataLoader(data, batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(0))",
        l13="from torch.distributed.fsdp import FullyShardedDataParallel as FSDP; loader = accelerator.prepare(loader); model = FSDP(model, device_id=torch.device('cpu'))",
    ),
    "an optimizer made before fully_shard": case(
        "SHD005",
        "optimizer = ",
        l5="from torch.distributed.fsdp import fully_shard; from torch.distributed.device_mesh import init_device_mesh",
        l10="loader = DataLoader(data, batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(0))",
        l11="model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 4), nn.Linear(4, 1))",
        l13="loader = accelerator.prepare(loader); [fully_shard(m, mesh=init_device_mesh('cpu', (2,))) for m in (*model, model)]",
    ),
    "a layer added after wrapping": case(
        "GRD005",
        "optimizer = accelerator",
        l12="model, loader = accelerator.prepare(model, loader); model.module[1] = nn.Sequential(nn.ReLU(), nn.Linear(8, 8))",
        l13="optimizer = accelerator.prepare(torch.optim.SGD(model.parameters(), lr=0.05))",
    ),
    "past the wrapper, and looked through while frozen": case(
        "GRD003",
        "model.module(a) - b",
        l16="        loss = (model.module(a) - b).pow(2).mean()",
        l19="        optimizer.zero_grad(); model.requires_grad_(False); model.module(a.requires_grad_()); model.requires_grad_(True)",
    ),
    "a learning rate that differs by rank": case(
        "DAT016", "", l12="optimizer = torch.optim.SGD(model.parameters(), lr=0.05 * (1 + accelerator.process_index))"
    ),
    "a slow rank": case(
        "SPD001",
        "",
        l5="import time",
        l16="        time.sleep(0.03 * accelerator.process_index); loss = (model(a) - b).pow(2).mean()",
        l9="data = TensorDataset(x.repeat(2, 1), x.sum(1, keepdim=True).repeat(2, 1))",
    ),
    "a folder that every rank makes": case(
        "LOG005",
        "makedirs",
        l5="import os, time; accelerator = Accelerator(); time.sleep(0.2 * accelerator.process_index)",
        l6="os.makedirs('runs')",
    ),
    "an evaluation loader that nobody prepares": case(
        "DAT010",
        "gather_for_metrics",
        l20="    rows = [accelerator.gather_for_metrics(a) for a, b in DataLoader(data, batch_size=8)]",
    ),
    "saved by one rank": case(
        "CKP001", "save_state", l20="    if accelerator.is_main_process: accelerator.save_state('out')"
    ),
    "one device is made visible on every rank": case(
        "LCH013", "os.environ", l5="import os; os.environ['CUDA_VISIBLE_DEVICES'] = '0'"
    ),
    "one device is named on every rank": case(
        "RNK003", "cuda:0", l5="try: nn.Linear(1, 1).to('cuda:0')\nexcept (AssertionError, RuntimeError): pass"
    ),
    "DataParallel in every rank": case("LCH016", "DataParallel", l5="nn.DataParallel(nn.Linear(1, 1))"),
    "a plugin for FSDP on the CPU": case(
        "SHD004",
        "fsdp_plugin",
        l5="from accelerate import FullyShardedDataParallelPlugin as Plugin",
        l6="accelerator = Accelerator(fsdp_plugin=Plugin(fsdp_version=2, cpu_ram_efficient_loading=False))",
    ),
}


def planted(case: Case) -> str:
    """Return the base script with the case's lines in place of its own."""
    lines = case.base.splitlines()
    for number, text in case.changes.items():
        lines[int(number) - 1] = text
    return "\n".join(lines) + "\n"


Examine = Callable[[str], Evidence]


@pytest.fixture
def examine(run_ranks: RunRanks, tmp_path: Path) -> Examine:
    """Return a function that runs a script on two traced ranks and returns the evidence of the run."""

    def run(text: str) -> Evidence:
        folder = tmp_path / "work"
        folder.mkdir()
        (folder / "train.py").write_text(text)
        variables: Mapping[str, str] = {"SCRIPT": str(folder / "train.py")}
        ran = run_ranks(work="traced_script:run", environment={0: variables, 1: variables}, limit_s=20)
        ranks = read_traced_ranks(ran.run_dir)
        assert all(r.trace for r in ranks), ran.output
        assert not [r.trace.broken for r in ranks if r.trace and r.trace.broken]
        return healthy_user_run(
            ranks=ranks,
            code=read_code(ranks, folder),
            stall=StallSeen(stalled=False, limit_s=30.0),
            ending=Ending(exit_code=max(ran.codes)),
        )

    return run


def test_the_healthy_script_is_silent(examine: Examine) -> None:
    evidence = examine(BASE)
    assert faults(evidence) == {}
    first = evidence.world[0].trace
    assert first is not None
    assert first.steps == 12
    assert first.loaders[0].epochs[0].rows == 48
    assert first.position.phase == "end"


@pytest.mark.parametrize("name", CASES)
def test_a_planted_fault_is_found_at_its_line(name: str, examine: Examine) -> None:
    text = planted(CASES[name])
    wanted = [n for n, line in enumerate(text.splitlines(), 1) if CASES[name].line in line]
    found = faults(examine(text))
    assert set(found) == CASES[name].ids, found
    assert {n for lines in found.values() for n in lines} & {*wanted, *CASES[name].no_line}, (found, wanted)


HEALTHY = {
    "an optimizer made after fully_shard": case(
        "",
        "",
        l5="from torch.distributed.fsdp import fully_shard; from torch.distributed.device_mesh import init_device_mesh",
        l10="loader = DataLoader(data, batch_size=8, shuffle=True, generator=torch.Generator().manual_seed(0))",
        l11="model = nn.Sequential(nn.Linear(4, 8), nn.Linear(8, 4), nn.Linear(4, 1))",
        l12="loader = accelerator.prepare(loader); [fully_shard(m, mesh=init_device_mesh('cpu', (2,))) for m in (*model, model)]",
        l13="optimizer = torch.optim.SGD(model.parameters(), lr=0.05)",
    ),
    "gradient accumulation": case(
        "",
        "",
        l6="accelerator = Accelerator(gradient_accumulation_steps=2)",
        l16="        with accelerator.accumulate(model):",
        l17="            accelerator.backward((model(a) - b).pow(2).mean())",
        l18="            optimizer.step()",
        l19="            optimizer.zero_grad()",
    ),
    "an evaluation on padded batches that is cut": case(
        "",
        "",
        l20="    rows = torch.cat([accelerator.gather(a) for a, b in accelerator.prepare(DataLoader(data, batch_size=7))])[: len(data)]",
    ),
    "every rank its own file and its own words": case(
        "",
        "",
        l20="    r = accelerator.process_index; print(f'rank {r} done'); torch.save(x, f'part_{r}.pt'); open(f'log-{r}.txt', 'w').write('x')",
    ),
    "a state saved on all ranks, weights by the main one": case(
        "",
        "",
        l20="    accelerator.save_state('out')\n    if accelerator.is_main_process: torch.save(accelerator.unwrap_model(model).state_dict(), 'm.pt')",
    ),
    "noise from a seed of its own": case(
        "",
        "",
        l11="model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 1)); set_seed(1, device_specific=True)",
        l16="        loss = (model(a + torch.randn_like(a)) - b).pow(2).mean()",
    ),
    "one fixed split for all": case(
        "",
        "",
        l9="data = torch.utils.data.random_split(TensorDataset(x, x.sum(1, keepdim=True)), [72, 24], torch.Generator().manual_seed(0))[0]",
    ),
    "parts of its own without prepare": case(
        "",
        "",
        l9="x = x[accelerator.process_index :: 2]; data = TensorDataset(x, x.sum(1, keepdim=True))",
        l13="model, optimizer = accelerator.prepare(model, optimizer)",
    ),
    "a frozen teacher that nobody prepares": case(
        "",
        "",
        l5="",
        l12="teacher = nn.Linear(4, 1).requires_grad_(False); optimizer = torch.optim.SGD(model.parameters(), lr=0.05)",
        l16="        loss = (model(a) - teacher(a)).pow(2).mean() + 0 * b.mean()",
    ),
    "evaluation through the bare model": case("", "", l20="    with torch.no_grad(): model.module(x).mean()"),
    "the mean of two losses": case(
        "",
        "",
        l6="accelerator = Accelerator(gradient_accumulation_steps=2)",
        l16="        with accelerator.accumulate(model):",
        l17="            accelerator.backward(((model(a) - b).pow(2).mean() + (model(a) - b).abs().mean()) / 2)",
        l18="            optimizer.step()",
        l19="            optimizer.zero_grad()",
    ),
    "a prepared schedule of the right length": case(
        "",
        "",
        l12="optimizer = torch.optim.SGD(model.parameters(), lr=0.05); schedule = torch.optim.lr_scheduler.LinearLR(optimizer, 1.0, 0.0, total_iters=24)",
        l13="model, optimizer, loader, schedule = accelerator.prepare(model, optimizer, loader, schedule)",
        l18="        optimizer.step(); schedule.step()",
    ),
    "an iterable data set that accelerate deals out": case(
        "",
        "",
        l10="class Rows(torch.utils.data.IterableDataset):\n    def __iter__(self): return iter([(r, r.sum(0, keepdim=True)) for r in x])\nloader = DataLoader(Rows(), batch_size=8)",
    ),
    "an iterable data set dispatched by the main process": case(
        "",
        "",
        l5="from accelerate import DataLoaderConfiguration",
        l6="accelerator = Accelerator(dataloader_config=DataLoaderConfiguration(dispatch_batches=True))",
    ),
    "a cache that the main process builds first": case(
        "",
        "",
        l5="import os",
        l9="with accelerator.main_process_first():\n    if not os.path.exists('cache.pt'): torch.save(x, 'cache.pt')\n    x = torch.load('cache.pt')\ndata = TensorDataset(x, x.sum(1, keepdim=True))",
    ),
    "an early stop that all ranks take together": case(
        "",
        "",
        l19="        optimizer.zero_grad()\n        if step == 2 and accelerator.process_index == 1: accelerator.set_trigger()\n        if accelerator.check_trigger(): break",
    ),
    "metrics gathered for metrics on padded batches": case(
        "",
        "",
        l20="    rows = sum(len(accelerator.gather_for_metrics(a)) for a, b in accelerator.prepare(DataLoader(data, batch_size=7))); assert rows == 96",
    ),
    "a quiet logger and a loss of the main rank": case(
        "",
        "",
        l5="import logging; logging.basicConfig(level=logging.INFO); from accelerate.logging import get_logger",
        l20="    get_logger(__name__).info('epoch %d', epoch)\n    if accelerator.is_main_process: print(loss.item())",
    ),
    "two models with an optimizer each": case(
        "",
        "",
        l13="other = nn.Linear(4, 1); second = torch.optim.SGD(other.parameters(), lr=0.05); model, optimizer, loader, other, second = accelerator.prepare(model, optimizer, loader, other, second)",
        l17="        accelerator.backward(loss); optimizer.step(); accelerator.backward((other(a) - model(a).detach()).pow(2).mean())",
        l18="        second.step(); second.zero_grad()",
    ),
    "an average of the weights kept aside": case(
        "",
        "",
        l5="import copy",
        l13="ema = copy.deepcopy(model).requires_grad_(False); model, optimizer, loader = accelerator.prepare(model, optimizer, loader)",
        l18="        optimizer.step(); [e.lerp_(p.detach(), 0.1) for e, p in zip(ema.parameters(), accelerator.unwrap_model(model).parameters())]",
    ),
    "find_unused_parameters for a branch that is taken now and then": case(
        "",
        "",
        l5="from accelerate.utils import DistributedDataParallelKwargs as K",
        l6="accelerator = Accelerator(kwargs_handlers=[K(find_unused_parameters=True)])",
        l16="        loss = (model(a) - b).pow(2).mean()",
    ),
    "every rank reads what all ranks had before": case(
        "",
        "",
        l5="open('config.txt', 'a').close() if __import__('os').environ['RANK'] == '0' else None",
        l20="    open('config.txt').read()",
    ),
    "a function compiled for any shape": case(
        "",
        "",
        l4="from accelerate import Accelerator\ndef error(a, b): return (a - b).pow(2).mean()",
        l5="compiled = torch.compile(error, backend='eager')",
        l16=GROWS,
    ),
    "a compiled wrapper": case(
        "",
        "",
        l13="model, optimizer, loader = accelerator.prepare(model, optimizer, loader); compiled = torch.compile(model, backend='eager')",
        l16="        loss = (compiled(a) - b).pow(2).mean()",
    ),
    "FSDP 2 in units": case(
        "",
        "",
        l11="model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(5)], nn.Linear(4, 1))",
        l12="from torch.distributed.fsdp import fully_shard",
        l13="loader = accelerator.prepare(loader); [fully_shard(layer) for layer in model]; fully_shard(model); optimizer = torch.optim.SGD(model.parameters(), lr=0.05)",
    ),
    "the last epoch broken off on every rank alike": case(
        "", "", l19="        optimizer.zero_grad()\n        if epoch == 1 and step == 2: break"
    ),
    "a generator that is stepped at every other step of its judge": case(
        "",
        "",
        l12="judge = nn.Linear(1, 1); optimizer = torch.optim.SGD(model.parameters(), lr=0.05); other = torch.optim.SGD(judge.parameters(), lr=0.05)",
        l13="model, judge, optimizer, other, loader = accelerator.prepare(model, judge, optimizer, other, loader)",
        l16="        made = model(a); accelerator.backward(judge(made.detach()).pow(2).mean()); other.step(); other.zero_grad()",
        l17="        if step % 2: accelerator.backward((judge(made) - b).pow(2).mean())",
        l18="        if step % 2: optimizer.step()",
    ),
    "replicas that LocalSGD averages now and then": case(
        "",
        "",
        l14="from accelerate.local_sgd import LocalSGD\nlocal = LocalSGD(accelerator=accelerator, model=model, local_sgd_steps=4, enabled=True).__enter__()\nfor epoch in range(2):",
        l18="        optimizer.step(); local.step()",
    ),
    "a look at some held-out batches after every few steps": case(
        "",
        "",
        l14="held_out = iter(DataLoader(data, batch_size=4))\nfor epoch in range(2):",
        l19="        optimizer.zero_grad()\n        if step % 6 == 5 and accelerator.is_main_process: model.module(next(held_out)[0]).detach()",
    ),
    "several forwards of one model in a step": case(
        "", "", l16="        loss = (model(a) - b).pow(2).mean() + (model(a + 1) - b).pow(2).mean()"
    ),
    "FSDP in units": case(
        "",
        "",
        l11="model = nn.Sequential(*[nn.Linear(4, 4) for _ in range(5)], nn.Linear(4, 1))",
        l12="import functools; from torch.distributed.fsdp import FullyShardedDataParallel as FSDP; from torch.distributed.fsdp.wrap import transformer_auto_wrap_policy as policy",
        l13="loader = accelerator.prepare(loader); model = FSDP(model, auto_wrap_policy=functools.partial(policy, transformer_layer_cls={nn.Linear}), device_id=torch.device('cpu')); optimizer = torch.optim.SGD(model.parameters(), lr=0.05)",
    ),
    "each rank sees and names a device of its own": case(
        "",
        "",
        l5="import os; os.environ['CUDA_VISIBLE_DEVICES'] = os.environ['RANK']\ntry: nn.Linear(1, 1).to('cuda:0')\nexcept (AssertionError, RuntimeError): pass",
    ),
    "DataParallel over the rank's one device": case("", "", l5="nn.DataParallel(nn.Linear(1, 1), device_ids=[0])"),
}


@pytest.mark.parametrize("name", HEALTHY)
def test_what_looks_like_a_fault_is_silent(name: str, examine: Examine) -> None:
    assert faults(examine(planted(HEALTHY[name]))) == {}


def test_a_rehearsal_ends_on_every_rank_at_the_same_step(run_ranks: RunRanks, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(BASE)
    variables = {"SCRIPT": str(tmp_path / "train.py"), "ACCEL_DOCTOR_STEPS": "3"}
    ran = run_ranks(work="traced_script:run", environment={0: variables, 1: variables})
    traces = [r.trace for r in read_traced_ranks(ran.run_dir)]
    assert ran.codes == (0, 0)
    assert [t.stopped_at_step for t in traces if t] == [3, 3]


def test_a_rehearsal_overwrites_no_checkpoint(run_ranks: RunRanks, tmp_path: Path) -> None:
    (tmp_path / "last.pt").write_text("precious")
    save = "        if accelerator.is_main_process: torch.save(accelerator.unwrap_model(model).state_dict(), 'last.pt')"
    lines = [*BASE.splitlines()[:19], save, *BASE.splitlines()[19:]]
    (tmp_path / "train.py").write_text("\n".join(lines))
    variables = {"SCRIPT": str(tmp_path / "train.py"), "ACCEL_DOCTOR_STEPS": "3"}
    ran = run_ranks(work="traced_script:run", environment={0: variables, 1: variables})
    traces = [r.trace for r in read_traced_ranks(ran.run_dir)]
    assert (tmp_path / "last.pt").read_text() == "precious"
    assert [t.kept_files for t in traces if t] == [2, 0]


def test_what_a_script_computes_is_the_same_bit_for_bit(run_ranks: RunRanks, tmp_path: Path) -> None:
    save = "torch.save(accelerator.unwrap_model(model).state_dict(), f'end{accelerator.process_index}.pt')\n"
    results = []
    for untraced in ("", "1"):
        folder = tmp_path / f"work{untraced}"
        folder.mkdir()
        (folder / "train.py").write_text(BASE + save)
        variables = {"SCRIPT": str(folder / "train.py"), "UNTRACED": untraced}
        ran = run_ranks(work="traced_script:run", environment={0: variables, 1: variables})
        assert ran.codes == (0, 0), ran.output
        results.append([(folder / f"end{r}.pt").read_bytes() for r in (0, 1)])
    assert results[0] == results[1]


def test_the_global_rank_picks_the_device_on_the_second_machine(run_ranks: RunRanks, tmp_path: Path) -> None:
    text = "import os, torch\nfrom accelerate import Accelerator\nAccelerator()\ntry: torch.cuda.set_device({})\nexcept AttributeError: pass"
    found = {}
    for rank in ("int(os.environ['RANK'])", "int(os.environ['LOCAL_RANK'])"):
        (tmp_path / "train.py").write_text(text.format(rank))
        variables = {n: {"SCRIPT": str(tmp_path / "train.py"), "LOCAL_RANK": str(n % 2)} for n in range(4)}
        ran = run_ranks(4, work="traced_script:run", environment=variables)
        assert ran.codes == (0,) * 4, ran.output
        found[rank] = faults(healthy_user_run(ranks=read_traced_ranks(ran.run_dir)))
    assert list(found.values()) == [{"RNK007": [4]}, {}]
