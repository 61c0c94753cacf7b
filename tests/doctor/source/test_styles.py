"""Scripts in the styles people write: each line that must be found ends in ``#! ID``, and nothing else may be said."""

import re
from textwrap import dedent

import pytest

from accel_doctor.testing_source import said

MATCH = """
    import torch
    from accelerate import Accelerator
    def main(mode):
        accelerator = Accelerator()
        match accelerator.process_index:
            case 0:
                print("zero")
                accelerator.wait_for_everyone()  #! HNG002
            case _:
                pass
        match mode:
            case "train" | "fit":
                print("train")  #! LOG001
            case "eval" if accelerator.is_main_process:
                print("eval")
            case other:
                raise ValueError(other)
    main("train")
"""
WHILE = """
    from accelerate import Accelerator
    accelerator = Accelerator()
    while accelerator.is_main_process:
        print("once")
        accelerator.wait_for_everyone()  #! HNG002
        break
    print("all")  #! LOG001
"""
COMPREHENSION = """
    import torch
    from accelerate import Accelerator
    accelerator = Accelerator()
    [print(x) for x in range(3) if accelerator.is_main_process]
    [accelerator.gather(torch.ones(1)) for _ in range(3) if accelerator.is_main_process]  #! HNG002
    {x: print(x) for x in range(3)}  #! LOG001
"""
CHOSEN = """
    import functools
    from accelerate import Accelerator
    accelerator = Accelerator()
    def quiet(*words, **kw): pass
    log = print if accelerator.is_main_process else quiet
    log("hello")
    if accelerator.is_main_process:
        show = functools.partial(print, flush=True)
    else:
        show = quiet
    show("hello")
"""
DEVICE_TYPE = """
    import torch
    from accelerate import Accelerator
    accelerator = Accelerator()
    if accelerator.device.type != "cpu":
        with accelerator.main_process_first():
            data = [1]
    if accelerator.device.index == 0:
        accelerator.wait_for_everyone()  #! HNG002
    if accelerator.distributed_type == "NO":
        print("alone")
"""
DECORATOR = """
    import functools, torch
    from accelerate import Accelerator
    accelerator = Accelerator()
    def rank_zero(function):
        @functools.wraps(function)
        def inner(*words, **kw):
            if not accelerator.is_main_process:
                return None
            return function(*words, **kw)
        return inner
    @rank_zero
    def save():
        torch.save({}, "x.pt")
        accelerator.wait_for_everyone()  #! HNG002
    save()
"""
FLAGGED_ACCUMULATION = """
    import torch
    from accelerate import Accelerator
    accelerator = Accelerator()
    model = torch.nn.Linear(2, 2)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loader = torch.utils.data.DataLoader([1], shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for i, batch in enumerate(loader):
        last = (i + 1) % 4 == 0 or i + 1 == len(loader)
        accelerator.backward(model(batch).sum() / 4)  #! GRD008
        if last:
            optimizer.step()
            optimizer.zero_grad()
"""
TWO_MODELS = """
    import torch
    from accelerate import Accelerator
    accelerator = Accelerator(gradient_accumulation_steps=2)
    one, other = torch.nn.Linear(1, 1), torch.nn.Linear(1, 1)
    optimizer = torch.optim.AdamW(list(one.parameters()) + list(other.parameters()))
    loader = torch.utils.data.DataLoader([1], shuffle=True)
    one, other, optimizer, loader = accelerator.prepare(one, other, optimizer, loader)
    for batch in loader:
        with accelerator.accumulate(one):  #! GRD008
            accelerator.backward(one(other(batch)).sum())
            optimizer.step()
            optimizer.zero_grad()
"""
ONE_CYCLE = """
    import torch
    from accelerate import Accelerator
    accelerator = Accelerator()
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loader = torch.utils.data.DataLoader([1], shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 0.1, epochs=3, steps_per_epoch=len(loader))  #! DAT006
    schedule = accelerator.prepare(schedule)
    for batch in loader:
        accelerator.backward(model(batch).sum())
        optimizer.step()
        schedule.step()
        optimizer.zero_grad()
"""
UNFROZEN_IN_A_LATER_EPOCH = """
    import torch
    from accelerate import Accelerator
    from torchvision.models import resnet18
    accelerator = Accelerator()
    model = resnet18()
    for p in model.parameters():
        p.requires_grad = False
    model.fc = torch.nn.Linear(512, 10)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loader = torch.utils.data.DataLoader([1], shuffle=True)
    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
    for epoch in range(10):
        if epoch == 5:
            for p in model.parameters():
                p.requires_grad = True  #! GRD005
        for batch in loader:
            accelerator.backward(model(batch).sum())
            optimizer.step()
            optimizer.zero_grad()
"""
RUN_BY_RUN = """
    import torch
    from accelerate import Accelerator
    from accelerate.utils import set_seed
    def run(width):
        set_seed(42)
        accelerator = Accelerator()
        model = torch.nn.Linear(width, 1)
        optimizer = torch.optim.SGD(model.parameters(), 0.1)
        loader = torch.utils.data.DataLoader([1], shuffle=True)
        model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
        for batch in loader:
            accelerator.backward(model(batch).sum())
            optimizer.step()
            optimizer.zero_grad()
    for width in (2, 4):
        run(width)
"""
BASELINE_BESIDE = """
    import torch
    from accelerate import Accelerator
    from utilities import everything
    def baseline():
        model, optimizer, loader = everything()
        for batch in loader:
            loss = model(batch).loss
            loss.backward()
            optimizer.step()
    def ours():
        accelerator = Accelerator()
        model, optimizer, loader = everything()
        model = accelerator.prepare(model)
        for batch in loader:
            loss = model(batch).loss
            loss.backward()  #! GRD001
            optimizer.step()
    baseline()
    ours()
"""
HANDED_TO_AN_ENGINE = """
    import torch
    from accelerate import Accelerator
    from utilities import build, everything
    accelerator = Accelerator()
    engine, optimizer, loader = everything(accelerator.device)
    other = accelerator.prepare(torch.nn.Linear(1, 1))
    for batch in loader:
        loss = engine(batch).loss
        engine.backward(loss)
        engine.step()
    model, manager = build()
    for batch in loader:
        manager.backward(model(batch).loss)
"""
ORIGINAL_PARAMETERS = """
    import torch
    import torch.distributed as dist
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    dist.init_process_group("nccl")
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.AdamW(model.parameters())
    model = FSDP(model, use_orig_params=True)
"""
STAND_IN_GROUP = """
    import torch.distributed as dist
    dist.init_process_group("fake", rank=0, world_size=2)
    print("one process only")
"""
TRAINER = """
    import torch
    from transformers import Trainer, TrainingArguments
    class Mine(Trainer):
        def compute_loss(self, model, inputs): return model(**inputs).loss
    trainer = Mine(model=None, args=TrainingArguments("out"))
    print("starting")
    trainer.train()
    trainer.save_model("out")
    if trainer.is_world_process_zero():
        trainer.save_state()
        trainer.evaluate()  #! CKP001
    other = Trainer(model=None)
    if other.is_world_process_zero():
        other.save_model("best")  #! CKP001
"""
FABRIC = """
    import torch
    from lightning.fabric import Fabric
    fabric = Fabric(devices=4, strategy="ddp")
    fabric.launch()
    model = torch.nn.Linear(4, 4).cuda()
    model, optimizer = fabric.setup(model, torch.optim.SGD(model.parameters(), 0.1))
    loader = fabric.setup_dataloaders(torch.utils.data.DataLoader([1]))
    for x, y in loader:
        loss = torch.nn.functional.mse_loss(model(x), y)
        fabric.backward(loss)
        optimizer.step()
    total = fabric.all_reduce(loss.detach())
    if fabric.global_rank == 0:
        print(total, fabric.device)
        fabric.save("last.pt", {"model": model})  #! CKP001
        fabric.barrier()  #! HNG002
"""
SHARDS_CLIPPED = """
    import torch
    import torch.distributed as dist
    from torch.distributed.fsdp import FullyShardedDataParallel as FSDP
    dist.init_process_group("nccl")
    model = FSDP(torch.nn.Linear(1, 1))
    optimizer = torch.optim.AdamW(model.parameters())
    for x in range(3):
        model(x).sum().backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  #! GRD013
        optimizer.step()
        optimizer.zero_grad()
    model.clip_grad_norm_(1.0)
"""
OLD_REFERENCE = """
    import torch
    from accelerate import Accelerator
    accelerator = Accelerator()
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), 0.1)
    loader = torch.utils.data.DataLoader([1], shuffle=True)
    wrapped, optimizer, batches = accelerator.prepare(model, optimizer, loader)
    for batch in batches:
        loss = model(batch).sum()  #! GRD003
        accelerator.backward(loss)
        optimizer.step()
        optimizer.zero_grad()
"""
GUARDED_BY_A_LATER_METHOD = """
    import torch
    import torch.distributed as dist
    class Runner:
        def __init__(self, local_rank):
            self.local_rank = local_rank
            dist.init_process_group("nccl")
        def _save(self, epoch):
            torch.save({}, f"{epoch}.pt")
            print("saved", epoch)
        def run(self):
            if dist.get_rank() == 0:
                self._save(3)
"""
ORDER_IN_THE_LOOP = """
    import numpy as np, torch
    from accelerate import Accelerator
    accelerator = Accelerator()
    np.random.seed(1 + accelerator.process_index)
    rows = np.random.permutation(100)  #! DAT014
    policy = torch.nn.Linear(2, 2)
    optimizer = torch.optim.Adam(policy.parameters())
    loader = torch.utils.data.DataLoader([1], shuffle=True)
    policy, optimizer, loader = accelerator.prepare(policy, optimizer, loader)
    for batch in loader:
        for i in np.random.permutation(8):
            accelerator.backward(policy(batch).mean())
            optimizer.step()
            optimizer.zero_grad()
"""
KEPT_IN_A_DICT = """
    import torch
    from accelerate import Accelerator
    accelerator = Accelerator()
    things = {"model": torch.nn.Linear(1, 1)}
    things["optimizer"] = torch.optim.SGD(things["model"].parameters(), 0.1)
    things["loader"] = torch.utils.data.DataLoader([1], shuffle=True)
    for name, thing in zip(list(things), accelerator.prepare(*things.values())):
        things[name] = thing
    for batch in things["loader"]:
        accelerator.backward(things["model"](batch).sum())
        things["optimizer"].step()
        things["optimizer"].zero_grad()
"""

STYLES = {name.lower(): dedent(text) for name, text in globals().items() if name.isupper() and isinstance(text, str)}


@pytest.mark.parametrize("name", STYLES)
def test_what_is_marked_is_found_and_nothing_else(name: str) -> None:
    wanted = {
        (check, number)
        for number, line in enumerate(STYLES[name].splitlines(), 1)
        for check in re.findall(r"#! ([A-Z]{3}\d{3})", line)
    }
    assert set(said(STYLES[name])) == wanted
