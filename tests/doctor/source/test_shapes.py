"""The same faults in other shapes: in classes, helpers, lists, other spellings."""

# ruff: noqa: E501 - a script a line

import re

import pytest

from accel_doctor.testing_source import said
from source_scripts import script

SHAPES = {
    "metric local via lists": script(
        "@SETUP\n    preds, refs = [], []\n    for x, y in val_loader:\n        with torch.no_grad():\n            preds += model(x).round().tolist()\n        refs += y.tolist()\n    acc = sum(p == r for p, r in zip(preds, refs)) / len(refs)\n    accelerator.print(acc)  #! DAT011\n"
    ),
    "metric local returned": script(
        "@SETUP\n    acc = evaluate(model, val_loader)\n    if accelerator.is_main_process:\n        print(f'accuracy {acc:.3f}')  #! DAT011\n",
        "def evaluate(model, loader):\n    model.eval()\n    correct = total = 0\n    with torch.no_grad():\n        for x, y in loader:\n            correct += (model(x).argmax(-1) == y).sum().item()\n            total += len(y)\n    return correct / total\n",
    ),
    "gather in eval helper": script(
        "@SETUP\n    evaluate(accelerator, model, val_loader)\n",
        "def evaluate(accelerator, model, loader):\n    model.eval()\n    out = []\n    for x, y in loader:\n        with torch.inference_mode():\n            p = model(x)\n        out.append(accelerator.gather(p).cpu())  #! DAT010\n    return torch.cat(out)\n",
    ),
    "seed by rank then split": script(
        "    accelerator = Accelerator()\n    torch.manual_seed(1 + accelerator.process_index)\n    n = torch.utils.data.random_split(TensorDataset(torch.randn(64, 4)), [48, 16])  #! DAT014\n"
    ),
    "unseeded numpy permutation": script(
        "@SETUP\n    order = np.random.permutation(64)  #! DAT014\n    for x, y in loader:\n        accelerator.backward(model(x).mean())\n        optimizer.step()\n",
        "import numpy as np\n",
    ).replace("from accelerate.utils import set_seed, broad", "from accelerate.utils import broad"),
    "ddp raw module forward": script(
        "@RAW\n    for epoch in range(3):\n        sampler.set_epoch(epoch)\n        for x, y in loader:\n            loss = F.mse_loss(model.module(x), y)  #! GRD003\n            loss.backward()\n            optimizer.step()\n"
    ),
    "save sharded opt fsdp": script(
        "@SETUP\n    accelerator.state.fsdp_plugin\n    if accelerator.is_main_process:\n        torch.save({'opt': optimizer.state_dict()}, 'opt.pt')  #! CKP002\n"
    ),
    "gather under main in class": script(
        "    T().run()\n",
        "class T:\n    def __init__(self):\n        self.accelerator = Accelerator()\n        self.is_main = self.accelerator.is_main_process\n    def run(self):\n        if self.is_main:\n            self.log(torch.ones(1))\n    def log(self, x):\n        self.accelerator.reduce(x)  #! HNG002\n",
    ),
    "sys.exit on others": script(
        "@SETUP\n    if not accelerator.is_main_process:\n        sys.exit(0)\n    accelerator.wait_for_everyone()  #! HNG002\n",
        "import sys\n",
    ),
    "while on local loss": script(
        "@SETUP\n    it = iter(loader)\n    loss = torch.ones(1)\n    while loss.item() > 0.1:  #! HNG002\n        x, y = next(it)\n        loss = F.mse_loss(model(x), y)\n        accelerator.backward(loss)\n        optimizer.step()\n"
    ),
    "len(batch) skip": script(
        "@SETUP\n    for x, y in loader:\n        if len(x) < 8:  #! HNG002\n            continue\n        loss = F.mse_loss(model(x), y)\n        accelerator.backward(loss)\n        optimizer.step()\n"
    ),
    "barrier only rank 0 after save": script(
        "@RAW\n    if dist.get_rank() == 0:\n        torch.save(model.module.state_dict(), 'a.pt')\n        dist.barrier()  #! HNG002\n"
    ),
    "onecycle fixed": script(
        "    args = parse()\n    accelerator = Accelerator()\n    model = nn.Linear(4, 1)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    scheduler = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=0.1, total_steps=args.max_steps)  #! DAT006\n    model, optimizer, scheduler = accelerator.prepare(model, optimizer, scheduler)\n",
        "import argparse\ndef parse():\n    p = argparse.ArgumentParser()\n    p.add_argument('--max_steps', type=int)\n    return p.parse_args()\n",
    ),
    "steplr epoch": script(
        "@SETUP\n    scheduler = torch.optim.lr_scheduler.StepLR(optimizer, step_size=10)  #! DAT006\n    scheduler = accelerator.prepare(scheduler)\n    for epoch in range(30):\n        for x, y in loader:\n@STEP\n        scheduler.step()\n"
    ),
    "lambda sched inline": script(
        "    total = 500\n    accelerator = Accelerator()\n    model = nn.Linear(4, 1)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    scheduler = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda s: 1 - s / total)  #! DAT006\n    model, optimizer, scheduler = accelerator.prepare(model, optimizer, scheduler)\n"
    ),
    "accum not used args": script(
        "    args = parse()\n    accelerator = Accelerator(gradient_accumulation_steps=args.accum)\n    loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=8)\n    model = nn.Linear(4, 1)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)\n    for x, y in loader:\n        accelerator.backward(F.mse_loss(model(x), y))  #! DAT008\n        optimizer.step()\n",
        "import argparse\ndef parse():\n    p = argparse.ArgumentParser()\n    p.add_argument('--accum', type=int, default=4)\n    return p.parse_args()\n",
    ),
    "tracker in class": script(
        "    accelerator = Accelerator()\n    log = Log()\n    log.put(1)\n",
        "class Log:\n    def __init__(self):\n        self.run = wandb.init(project='a')  #! LOG003\n    def put(self, x):\n        self.run.log({'x': x})\n",
    ),
    "mkdir uuid": script(
        "    accelerator = Accelerator()\n    out = os.path.join('runs', uuid.uuid4().hex)\n    os.makedirs(out, exist_ok=True)  #! CKP011\n",
        "import uuid\n",
    ),
    "datetime dir": script(
        "    accelerator = Accelerator()\n    out = 'runs/' + datetime.now().strftime('%H%M%S')\n    Path(out).mkdir(parents=True, exist_ok=True)  #! CKP011\n",
        "from datetime import datetime\nfrom pathlib import Path\n",
    ),
    "peft after prepare": script(
        "@SETUP\n    model = get_peft_model(model, None)  #! GRD005\n", "from peft import get_peft_model\n"
    ),
    "loader unprepared in class": script(
        "    T().fit()\n",
        "class T:\n    def __init__(self):\n        self.acc = Accelerator()\n        self.model = nn.Linear(4, 1)\n        self.opt = torch.optim.SGD(self.model.parameters(), lr=0.1)\n        self.dl = DataLoader(TensorDataset(torch.randn(64, 4)), batch_size=8, shuffle=True)\n        self.model, self.opt = self.acc.prepare(self.model, self.opt)  #! DAT001\n    def fit(self):\n        for (x,) in self.dl:\n            self.acc.backward(self.model(x).mean())\n            self.opt.step()\n            self.opt.zero_grad()\n",
    ),
    "device index variable": script(
        "    device = torch.device('cuda', 0)  #! RNK003\n    accelerator = Accelerator()\n    m = nn.Linear(1, 1).to(device)\n"
    ),
    "cuda(0)": script("    accelerator = Accelerator()\n    m = nn.Linear(1, 1).cuda(0)  #! RNK003\n"),
    "delete others ckpt": script(
        "@SETUP\n    accelerator.save_state('tmp')\n    if accelerator.is_main_process:\n        shutil.rmtree('tmp')  #! CKP004\n"
    ),
    "model not prepared class": script(
        "    T().fit()\n",
        "class T:\n    def __init__(self):\n        self.acc = Accelerator()\n        self.net = nn.Linear(4, 1).to(self.acc.device)\n        self.opt = torch.optim.SGD(self.net.parameters(), lr=0.1)\n        dl = DataLoader(TensorDataset(torch.randn(64, 4)), batch_size=8, shuffle=True)\n        self.opt, self.dl = self.acc.prepare(self.opt, dl)  #! GRD002\n    def fit(self):\n        for (x,) in self.dl:\n            self.acc.backward(self.net(x).mean())\n            self.opt.step()\n            self.opt.zero_grad()\n",
    ),
    "bar manual": script("@SETUP\n    bar = tqdm(total=10)  #! LOG002\n    bar.update(1)\n"),
    "print in method": script(
        "    T().go()\n",
        "class T:\n    def __init__(self):\n        self.acc = Accelerator()\n    def go(self):\n        self.say('x')\n    def say(self, s):\n        print(s)  #! LOG001\n",
    ),
    "unscaled torch clip fp16": script(
        "    accelerator = Accelerator(mixed_precision='fp16')\n    loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=8)\n    model = nn.Linear(4, 1)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)\n    for x, y in loader:\n        accelerator.backward(F.mse_loss(model(x), y))\n        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)  #! GRD013\n        optimizer.step()\n"
    ),
    "scaler backward": script(
        "@SETUP\n    scaler = torch.cuda.amp.GradScaler()\n    for x, y in loader:\n        loss = F.mse_loss(model(x), y)\n        scaler.scale(loss).backward()  #! GRD001\n        optimizer.step()\n"
    ),
    "dataclass precision": script(
        "    cfg = Cfg()\n    accelerator = Accelerator()  #! GRD010\n    accelerator.print(cfg.mixed_precision)\n",
        "from dataclasses import dataclass\n@dataclass\nclass Cfg:\n    mixed_precision: str = 'bf16'\n",
    ),
    "two models accumulate one": script(
        "    accelerator = Accelerator(gradient_accumulation_steps=2)\n    loader = DataLoader(TensorDataset(torch.randn(64, 4)), batch_size=8)\n    a, b = nn.Linear(4, 4), nn.Linear(4, 1)\n    opt = torch.optim.SGD([*a.parameters(), *b.parameters()], lr=0.1)\n    a, b, opt, loader = accelerator.prepare(a, b, opt, loader)\n    for (x,) in loader:\n        with accelerator.accumulate(a):  #! GRD008\n            accelerator.backward(b(a(x)).mean())\n            opt.step()\n            opt.zero_grad()\n"
    ),
    "set_epoch missing while": script(
        "@RAW\n    epoch = 0\n    while epoch < 3:\n        for x, y in loader:  #! DAT009\n@RAW_STEP\n        epoch += 1\n"
    ),
    "resume attr": script(
        "@SETUP\n    accelerator.load_state('ckpt')  #! DAT012\n    global_step = int(open('ckpt/s').read())\n    for epoch in range(3):\n        for x, y in loader:\n@STEP\n            global_step += 1\n"
    ),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_fault_is_found_in_this_shape_too(name: str) -> None:
    lines = SHAPES[name].splitlines()
    wanted = {(check, n) for n, line in enumerate(lines, 1) for check in re.findall(r"#! ([A-Z]{3}\d{3})", line)}
    assert set(said(SHAPES[name])) == wanted
