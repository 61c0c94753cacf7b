"""Healthy scripts on which a naive checker is wrong: nothing may be said."""

# ruff: noqa: E501 - a script a line

import pytest

from accel_doctor.testing_source import said
from source_scripts import LOOP, RAW_STEP, STEP, UNPREPARED, script

TRAPS = {
    "1 print in a helper only called under a guard": script(
        "@SETUP\n    if accelerator.is_main_process:\n        report(3)\n", "def report(n):\n    print(n)\n"
    ),
    "2 early return": script(
        "@SETUP\n    if not accelerator.is_main_process:\n        return\n    torch.save({'a': 1}, 'last.pt')\n    print('saved')\n"
    ),
    "2 continue": script(
        "@SETUP\n    for epoch in range(3):\n        if not accelerator.is_main_process:\n            continue\n        print(epoch)\n"
    ),
    "3 accelerator.print": script(
        "@SETUP\n    accelerator.print('a')\n    print = accelerator.print\n    print('b')\n"
    ),
    "3 accelerate's logger": script(
        "@SETUP\n    logger.info('a')\n    logger.info('b', main_process_only=False)\n",
        "logger = get_logger(__name__)\n",
    ),
    "3 level by rank": script(
        "@SETUP\n    logger.setLevel(logging.INFO if accelerator.is_local_main_process else logging.ERROR)\n    logger.info('a')\n",
        "import logging\nlogging.basicConfig(level=logging.INFO)\nlogger = logging.getLogger(__name__)\n",
    ),
    "3 replaced print": script(
        "@RAW\n    quiet(rank == 0)\n    print('a')\n",
        "import builtins\ndef quiet(main):\n    plain = builtins.print\n    def show(*a, **k):\n        if main:\n            plain(*a, **k)\n    builtins.print = show\n",
    ),
    "3 disabled bars": script(
        "@SETUP\n    show = accelerator.is_local_main_process\n    for x in tqdm(loader, disable=not show):\n        pass\n"
    ),
    "3 a bar a rank on purpose": script(
        "@RAW\n    for x in tqdm(loader, position=rank, desc=f'rank {rank}'):\n        pass\n"
    ),
    "3 names its rank": script("@RAW\n    print(f'[{rank}] ready')\n    print('rank', dist.get_rank())\n"),
    "4 decorators": script(
        "@SETUP\n    @accelerator.on_main_process\n    def a():\n        print('a')\n    @accelerator.on_last_process\n    def b():\n        print('b')\n    @accelerator.on_process(process_index=2)\n    def c():\n        print('c')\n    @PartialState().on_local_main_process\n    def d():\n        print('d')\n    a(), b(), c(), d()\n"
    ),
    "5 other names": script(
        "    ctx = Namespace(acc=hf.Accelerator())\n    ctx.main = ctx.acc.is_main_process\n    if not ctx.main:\n        return\n    print('a')\n",
        "import accelerate as hf\nfrom argparse import Namespace\n",
    ),
    "5 an attribute": script(
        "    Runner().run()\n",
        "class Runner:\n    def __init__(self):\n        self.accelerator = Accelerator()\n        self.main = self.accelerator.is_main_process\n    def run(self):\n        if self.main:\n            print('a')\n            torch.save([1], 'x.pt')\n",
    ),
    "6 proxies": script(
        "@RAW\n    local_rank = int(os.environ.get('LOCAL_RANK', -1))\n    run = wandb.init() if rank == 0 else None\n    if run:\n        run.log({'a': 1})\n    if local_rank in (-1, 0):\n        print('a')\n    if not rank:\n        print('b')\n    if os.environ.get('RANK', '0') == '0':\n        print('c')\n    if rank < 1:\n        print('d')\n    if is_main():\n        print('e')\n",
        "def is_main():\n    return not dist.is_initialized() or dist.get_rank() == 0\n",
    ),
    "6 nanoGPT's master": script(
        "    ddp = int(os.environ.get('RANK', -1)) != -1\n    if ddp:\n        dist.init_process_group('nccl')\n        rank = int(os.environ['RANK'])\n        master_process = rank == 0\n    else:\n        master_process = True\n    if master_process:\n        os.makedirs('out')\n        print('a')\n"
    ),
    "6 distributed or not": script(
        "    args = parse()\n    if args.distributed:\n        dist.init_process_group('nccl')\n        rank = dist.get_rank()\n    else:\n        rank = 0\n    if not args.distributed or rank == 0:\n        print('a')\n",
        "from somewhere import parse\n",
    ),
    "7 uniform branches": script(
        f"@SETUP\n    step = 0\n{LOOP}{STEP}            step += 1\n            if accelerator.sync_gradients:\n                accelerator.clip_grad_norm_(model.parameters(), 1.0)\n            if step % 5 == 0:\n                accelerator.gather(loss.detach())\n            if step >= 100:\n                break\n        if epoch > 0:\n            accelerator.wait_for_everyone()\n"
    ),
    "9 both arms": script(
        "@SETUP\n    if accelerator.is_main_process:\n        box = [1]\n        broadcast_object_list(box)\n    else:\n        box = [None]\n        broadcast_object_list(box)\n"
    ),
    "9 both arms by an early return": script(
        "@RAW\n    if rank != 0:\n        dist.barrier()\n        return\n    print('a')\n    dist.barrier()\n"
    ),
    "10 trigger": script(
        f"@SETUP\n{LOOP}{STEP}            if loss.item() < 0.1:\n                accelerator.set_trigger()\n            if accelerator.check_trigger():\n                break\n"
    ),
    "10 reduced": script(
        f"@SETUP\n{LOOP}{STEP}            if accelerator.reduce(loss.detach(), 'mean').item() < 0.1:\n                break\n"
    ),
    "10 all_reduce in place": script(
        f"@RAW\n    for epoch in range(3):\n        sampler.set_epoch(epoch)\n        for x, y in loader:\n{RAW_STEP}            flag = torch.tensor(float(loss.item() < 0.1))\n            dist.all_reduce(flag)\n            if flag.item() > 0:\n                break\n"
    ),
    "11 plain torch": script(
        f"@RAW\n    for epoch in range(3):\n        sampler.set_epoch(epoch)\n        for x, y in loader:\n{RAW_STEP}"
    ),
    "11 DeepSpeed's engine": script(
        "    engine, _, loader, _ = deepspeed.initialize(model=nn.Linear(4, 1), training_data=None)\n    for x, y in loader:\n        loss = F.mse_loss(engine(x), y)\n        engine.backward(loss)\n        engine.step()\n    engine.save_checkpoint('out')\n",
        "import deepspeed\n",
    ),
    "12 unwrapped under no_grad": script(
        "@SETUP\n    for x, y in loader:\n        with torch.no_grad():\n            hint = accelerator.unwrap_model(model)(x)\n        loss = F.mse_loss(model(x), hint)\n        accelerator.backward(loss)\n        optimizer.step()\n        optimizer.zero_grad()\n"
    ),
    "12 samples on main": script(
        "@SETUP\n    if accelerator.is_main_process:\n        with torch.no_grad():\n            out = accelerator.unwrap_model(model)(torch.randn(2, 4))\n        print(out)\n"
    ),
    "13 frozen teacher": script(
        "@SETUP\n    teacher = nn.Linear(4, 1).to(accelerator.device).eval().requires_grad_(False)\n    for x, y in loader:\n        loss = F.mse_loss(model(x), teacher(x))\n        accelerator.backward(loss)\n        optimizer.step()\n        optimizer.zero_grad()\n"
    ),
    "14 rank-aware stream": script(
        f"    accelerator = Accelerator()\n    stream = Stream(accelerator.process_index, accelerator.num_processes)\n    loader = DataLoader(stream, batch_size=8)\n    model = nn.Linear(4, 1)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    model, optimizer = accelerator.prepare(model, optimizer)\n{LOOP}{STEP}",
        "class Stream(IterableDataset):\n    def __init__(self, rank, world):\n        self.rank, self.world = rank, world\n    def __iter__(self):\n        for i in range(self.rank, 64, self.world):\n            yield torch.randn(4), torch.randn(1)\n",
    ),
    "14 split by node": script(
        f"    accelerator = Accelerator()\n    data = split_dataset_by_node(load_dataset('x'), rank=accelerator.process_index, world_size=accelerator.num_processes)\n    loader = DataLoader(data, batch_size=8)\n    model = nn.Linear(4, 1)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    model, optimizer = accelerator.prepare(model, optimizer)\n{LOOP}{STEP}",
        "from datasets import load_dataset\nfrom datasets.distributed import split_dataset_by_node\n",
    ),
    "14 evaluated by main on its own": script(
        "@SETUP\n    test_loader = DataLoader(data, batch_size=8)\n    accelerator.wait_for_everyone()\n    if accelerator.is_main_process:\n        with torch.no_grad():\n            for x, y in test_loader:\n                accelerator.unwrap_model(model)(x)\n"
    ),
    "15 in pieces": script(
        f"{UNPREPARED}    objects = accelerator.prepare(optimizer, loader)\n    optimizer, loader = objects\n    model = accelerator.prepare(model)\n{LOOP}{STEP}"
    ),
    "15 in a loop": script(
        "    accelerator = Accelerator()\n    models = [nn.Linear(4, 1) for _ in range(2)]\n    models = [accelerator.prepare(m) for m in models]\n    loader = accelerator.prepare_data_loader(DataLoader(TensorDataset(torch.randn(64, 4)), batch_size=8))\n    for (x,) in loader:\n        accelerator.backward(sum(m(x).mean() for m in models))\n"
    ),
    "15 starred": script(
        f"{UNPREPARED}    model, *rest = accelerator.prepare(*[model, optimizer, loader])\n    optimizer, loader = rest\n{LOOP}{STEP}"
    ),
    "17 multiplied": script(
        "    accelerator = Accelerator()\n    model = nn.Linear(4, 1)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=1000 * accelerator.num_processes)\n    model, optimizer, scheduler = accelerator.prepare(model, optimizer, scheduler)\n"
    ),
    "17 from the raw length": script(
        f"{UNPREPARED}    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=3 * len(loader))\n    model, optimizer, loader, scheduler = accelerator.prepare(model, optimizer, loader, scheduler)\n"
    ),
    "17 steps on its own": script(
        "    accelerator = Accelerator(step_scheduler_with_optimizer=False)\n    model = nn.Linear(4, 1)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=1000)\n    model, optimizer, scheduler = accelerator.prepare(model, optimizer, scheduler)\n"
    ),
    "17 not prepared": script(
        "@SETUP\n    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=1000)\n"
    ),
    "17 split batches in a dataclass": script(
        "    accelerator = Accelerator(dataloader_config=DataLoaderConfiguration(split_batches=True))\n    model = nn.Linear(4, 1)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=1000)\n    model, optimizer, scheduler = accelerator.prepare(model, optimizer, scheduler)\n",
        "from accelerate.utils import DataLoaderConfiguration\n",
    ),
    "18 one seed": script(
        "    accelerator = Accelerator()\n    set_seed(42)\n    train, val = random_split(TensorDataset(torch.randn(64, 4)), [48, 16])\n"
    ),
    "18 own seed, split by a generator": script(
        "    accelerator = Accelerator()\n    set_seed(42, device_specific=True)\n    train, val = random_split(TensorDataset(torch.randn(64, 4)), [48, 16], generator=torch.Generator().manual_seed(0))\n"
    ),
    "19 rank in the path": script(
        "@SETUP\n    torch.save([1], f'feat_{accelerator.process_index}.pt')\n    with open(os.path.join('out', str(accelerator.process_index)), 'w') as f:\n        f.write('a')\n"
    ),
    "19 saved by all, rightly": script(
        "@SETUP\n    accelerator.save_state('ckpt')\n    accelerator.save_model(model, 'out')\n    accelerator.save({'a': 1}, 'a.pt')\n    accelerator.unwrap_model(model).save_pretrained('out', is_main_process=accelerator.is_main_process, save_function=accelerator.save)\n"
    ),
    "21 Trainer": "import torch\nfrom transformers import Trainer, TrainingArguments\nargs = TrainingArguments('out')\ntrainer = Trainer(model=torch.nn.Linear(1, 1), args=args)\ntrainer.train()\ntrainer.save_model('out')\nif trainer.is_world_process_zero():\n    print('a')\n",
    "21 Trainer of one's own": "import torch\nfrom transformers import Trainer\nclass Mine(Trainer):\n    def training_step(self, model, inputs):\n        loss = model(**inputs).loss\n        self.accelerator.backward(loss)\n        return loss.detach()\nMine(model=torch.nn.Linear(1, 1)).train()\nprint('done')\n",
    "21 Lightning": "import torch\nimport pytorch_lightning as pl\nclass Lit(pl.LightningModule):\n    def training_step(self, batch, i):\n        loss = self(batch).mean()\n        self.log('loss', loss, sync_dist=True)\n        return loss\n    def configure_optimizers(self):\n        return torch.optim.Adam(self.parameters())\npl.Trainer(devices=2, strategy='ddp').fit(Lit(), torch.utils.data.DataLoader([1, 2]))\n",
    "22 dead helper": script("@SETUP\n", "def unused():\n    print('never')\n    torch.save([1], 'x.pt')\n"),
    "22 overridden device": script(
        "    accelerator = Accelerator()\n    device = 'cuda:0'\n    device = accelerator.device\n    x = torch.zeros(1).to(device)\n"
    ),
    "22 switched off": script("@SETUP\n    debug = False\n    if debug:\n        print('never')\n"),
    "25 mean of the training loss": script(
        f"@SETUP\n{LOOP}{STEP}            mean = accelerator.gather(loss.detach()).mean()\n"
    ),
    "25 truncated": script(
        "@SETUP\n    seen, preds = 0, []\n    for x, y in val_loader:\n        with torch.no_grad():\n            out = accelerator.gather(model(x))\n        out = out[: len(val_loader.dataset) - seen]\n        seen += len(out)\n        preds.append(out)\n"
    ),
    "25 for metrics": script(
        "@SETUP\n    preds = []\n    for x, y in val_loader:\n        with torch.no_grad():\n            preds.append(accelerator.gather_for_metrics(model(x)))\n    accelerator.print(torch.cat(preds).mean())\n"
    ),
    "a loss of the main process": script(
        f"@SETUP\n{LOOP}{STEP}            if accelerator.is_main_process:\n                print(loss.item())\n"
    ),
    "accumulate in use": script(
        "    accelerator = Accelerator(gradient_accumulation_steps=4)\n    loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=8)\n    model = nn.Linear(4, 1)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)\n    for x, y in loader:\n        with accelerator.accumulate(model):\n            accelerator.backward(F.mse_loss(model(x), y))\n            if accelerator.sync_gradients:\n                accelerator.clip_grad_norm_(model.parameters(), 1.0)\n            optimizer.step()\n            optimizer.zero_grad()\n"
    ),
    "local rank of several hosts": script(
        "    dist.init_process_group('nccl')\n    rank = dist.get_rank()\n    local_rank = rank % torch.cuda.device_count()\n    torch.cuda.set_device(local_rank)\n    model = DDP(nn.Linear(4, 1).to(local_rank), device_ids=[local_rank])\n"
    ),
    "current device after set_device": script(
        "    dist.init_process_group('nccl')\n    torch.cuda.set_device(int(os.environ['LOCAL_RANK']))\n    model = DDP(nn.Linear(4, 1).cuda())\n"
    ),
    "main first": script(
        "    accelerator = Accelerator()\n    with accelerator.main_process_first():\n        torchvision.datasets.MNIST('data', download=True)\n        os.makedirs('cache')\n",
        "import torchvision\n",
    ),
    "written, then waited for": script(
        "@SETUP\n    if accelerator.is_main_process:\n        torch.save([1], 'cache.pt')\n    accelerator.wait_for_everyone()\n    rows = torch.load('cache.pt', map_location='cpu')\n"
    ),
    "a file an item": script(
        "    accelerator = Accelerator()\n    with accelerator.split_between_processes(list(range(64))) as mine:\n        for i in mine:\n            torch.save([i], f'out/{i}.pt')\n"
    ),
    "skipped when resumed": script(
        f"@SETUP\n    accelerator.load_state('ckpt')\n    resume_step = int(open('ckpt/step.txt').read())\n    for i, (x, y) in enumerate(loader):\n        if i < resume_step:\n            continue\n{STEP.replace('            ', '        ')}"
    ),
    "an error that ends the job": script(
        f"@SETUP\n{LOOP}            loss = F.mse_loss(model(x), y)\n            if not math.isfinite(loss.item()):\n                raise ValueError('diverged')\n            accelerator.backward(loss)\n            optimizer.step()\n"
    ),
    "not distributed at all": "import torch\nprint('a')\ntorch.save([1], 'x.pt')\nmodel = torch.nn.Linear(1, 1).to('cuda:0')\n",
    "a library that others call": "import torch\ndef save(state, path):\n    torch.save(state, path)\n    print('saved', path)\ndef main_rank(accelerator):\n    return accelerator.is_main_process\n",
    "prints in an error's handler": script(
        "@SETUP\n    try:\n        import apex\n    except ImportError:\n        print('no apex')\n"
    ),
    "bar of accelerate": "import torch\nfrom accelerate import Accelerator\nfrom accelerate.utils import tqdm\naccelerator = Accelerator()\nfor i in tqdm(range(3)):\n    pass\n",
    "silenced": script(
        "@SETUP\n    print('a')  # accel-doctor: ignore[LOG001] a smoke test\n    print('b')  # accel-doctor: ignore\n"
    ),
}


@pytest.mark.parametrize("name", TRAPS)
def test_the_lint_is_silent_on_a_healthy_script(name: str) -> None:
    assert said(TRAPS[name]) == {}
