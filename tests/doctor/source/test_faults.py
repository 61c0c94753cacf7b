"""One fault a script: the line that must be found ends in ``#! ID``, and nothing else may be said."""

# ruff: noqa: E501 - a script a line

import re

import pytest

from accel_doctor.testing_source import said
from source_scripts import HEAD, LOOP, RAW_STEP, STEP, script

FAULTS = {
    "collective under a guard in a variable": script(
        "@SETUP\n    first = accelerator.is_main_process\n    if first:\n        accelerator.gather(torch.ones(1))  #! HNG002\n"
    ),
    "collective in a helper under a guard": script(
        "@SETUP\n    if accelerator.is_main_process:\n        report(accelerator)\n",
        "def report(acc):\n    acc.wait_for_everyone()  #! HNG002\n",
    ),
    "collective after an early return": script(
        "@SETUP\n    if not accelerator.is_main_process:\n        return\n    accelerator.reduce(torch.ones(1))  #! HNG002\n"
    ),
    "barrier on rank 0 in plain torch": script("@RAW\n    if rank == 0:\n        dist.barrier()  #! HNG002\n"),
    "all_reduce under not rank": script("@RAW\n    if not rank:\n        dist.all_reduce(torch.ones(1))  #! HNG002\n"),
    "rank from the environment": script(
        "    dist.init_process_group('gloo')\n    if int(os.environ['RANK']) == 0:\n        dist.broadcast(torch.ones(1), 0)  #! HNG002\n"
    ),
    "predicate function": script(
        "@RAW\n    if is_chief_rank():\n        dist.all_reduce(torch.ones(1))  #! HNG002\n",
        "def is_chief_rank():\n    if not dist.is_available() or not dist.is_initialized():\n        return True\n    return dist.get_rank() == 0\n",
    ),
    "on_main_process decorates a collective": script(
        "@SETUP\n    state = PartialState()\n    @state.on_main_process\n    def evaluate():\n        accelerator.gather(torch.ones(1))  #! HNG002\n    evaluate()\n"
    ),
    "short-circuit before a collective": script(
        "@SETUP\n    ok = accelerator.is_main_process and accelerator.gather(torch.ones(1)).sum() > 0  #! HNG002\n"
    ),
    "conditional expression": script(
        "@SETUP\n    mean = accelerator.gather(torch.ones(1)).mean() if accelerator.is_main_process else None  #! HNG002\n"
    ),
    "early stop by a local loss": script(
        f"@SETUP\n    for epoch in range(3):\n        total = 0.0\n        for x, y in loader:\n{STEP}            total += loss.item()\n        if total < 0.1:  #! HNG002\n            break\n    accelerator.wait_for_everyone()\n"
    ),
    "nan skipped by continue": script(
        f"@SETUP\n{LOOP}            loss = F.mse_loss(model(x), y)\n            if torch.isnan(loss):  #! HNG002\n                continue\n            accelerator.backward(loss)\n            optimizer.step()\n"
    ),
    "budget of time": script(
        f"@SETUP\n    start = time.time()\n{LOOP}{STEP}            if time.time() - start > 60:  #! HNG002\n                break\n    accelerator.wait_for_everyone()\n"
    ),
    "stop file": script(
        f"@SETUP\n{LOOP}{STEP}            if os.path.exists('STOP'):  #! HNG002\n                break\n    accelerator.wait_for_everyone()\n"
    ),
    "bar that is disabled elsewhere": script(
        f"@SETUP\n    bar = tqdm(total=10, disable=not accelerator.is_main_process)\n{LOOP}{STEP}            bar.update(1)\n            if bar.n % 5 == 0:  \n                accelerator.gather(loss)  #! HNG002\n"
    ),
    "coin not tossed alike": script(
        "    accelerator = Accelerator()\n    if random.random() < 0.5:\n        accelerator.wait_for_everyone()  #! HNG002\n"
    ),
    "patience object": script(
        f"@SETUP\n    best, bad = float('inf'), 0\n    for epoch in range(9):\n        for x, y in loader:\n{STEP}        value = loss.item()\n        if value < best:\n            best, bad = value, 0\n        else:\n            bad += 1\n        if bad > 2:  #! HNG002\n            break\n"
    ),
    "state saved on main": script(
        "@SETUP\n    if accelerator.is_local_main_process:\n        accelerator.save_state('ckpt')  #! CKP001\n"
    ),
    "load on rank 0": script(
        "@SETUP\n    if accelerator.process_index == 0:\n        accelerator.load_state('ckpt')  #! CKP001\n"
    ),
    "state dict for main only": script(
        "@SETUP\n    if accelerator.is_main_process:\n        state = accelerator.get_state_dict(model)  #! CKP001\n"
    ),
    "print everywhere": script("@SETUP\n    print('ready', len(loader))  #! LOG001\n"),
    "print in a helper": script("@SETUP\n    show(3)\n", "def show(n):\n    print('n', n)  #! LOG001\n"),
    "standard logger": script(
        "@SETUP\n    logger.info('hello')  #! LOG001\n",
        "import logging\nlogging.basicConfig(level=logging.INFO)\nlogger = logging.getLogger(__name__)\n",
    ),
    "bar everywhere": script("@SETUP\n    for x, y in tqdm(loader):  #! LOG002\n        pass\n"),
    "bar inverted": script(
        "@SETUP\n    for x, y in tqdm(loader, disable=accelerator.is_local_main_process):  #! LOG002\n        pass\n"
    ),
    "trange": script("@RAW\n    for i in trange(3):  #! LOG002\n        pass\n", "from tqdm import trange\n"),
    "wandb everywhere": script("@SETUP\n    wandb.init(project='x')  #! LOG003\n"),
    "tensorboard everywhere": script(
        "@RAW\n    writer = SummaryWriter('runs')  #! LOG003\n    writer.add_scalar('a', 1, 1)\n",
        "from torch.utils.tensorboard import SummaryWriter\n",
    ),
    "json everywhere": script(
        "@SETUP\n    with open('results.json', 'w') as f:  #! LOG004\n        json.dump({}, f)\n"
    ),
    "folder everywhere": script("@SETUP\n    if not os.path.exists('out'):\n        os.makedirs('out')  #! LOG005\n"),
    "download everywhere": script(
        "@SETUP\n    torchvision.datasets.MNIST('data', download=True)  #! LOG005\n", "import torchvision\n"
    ),
    "checkpoint everywhere": script(
        "@SETUP\n    torch.save(accelerator.unwrap_model(model).state_dict(), 'last.pt')  #! CKP003\n"
    ),
    "save_pretrained everywhere": script(
        "@SETUP\n    accelerator.unwrap_model(model).save_pretrained('out')  #! CKP003\n"
    ),
    "wrapped keys": script("@RAW\n    if rank == 0:\n        torch.save(model.state_dict(), 'last.pt')  #! CKP005\n"),
    "local main writes": script(
        "@SETUP\n    if accelerator.is_local_main_process:\n        torch.save({'a': 1}, 'last.pt')  #! CKP010\n"
    ),
    "own directory": script(
        "@SETUP\n    out = f'runs/{time.time()}'\n    os.makedirs(out, exist_ok=True)  #! CKP011\n"
    ),
    "read before written": script(
        "@SETUP\n    if accelerator.is_main_process:\n        torch.save([1], 'cache.pt')\n    rows = torch.load('cache.pt', map_location='cpu')  #! CKP004\n"
    ),
    "plain backward": script(
        f"@SETUP\n{LOOP}            loss = F.mse_loss(model(x), y)\n            loss.backward()  #! GRD001\n            optimizer.step()\n"
    ),
    "model left out": script(
        f"    accelerator = Accelerator()\n    loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=8)\n    model = nn.Linear(4, 1).to(accelerator.device)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    optimizer, loader = accelerator.prepare(optimizer, loader)  #! GRD002\n{LOOP}{STEP}"
    ),
    "prepare dropped": script(
        f"    accelerator = Accelerator()\n    loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=8)\n    model = nn.Linear(4, 1)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    accelerator.prepare(model, optimizer)  #! GRD002\n    loader = accelerator.prepare(loader)\n{LOOP}{STEP}"
    ),
    "prepare swapped": script(
        "    accelerator = Accelerator()\n    loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=8)\n    model = nn.Linear(4, 1)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    model, loader, optimizer = accelerator.prepare(model, optimizer, loader)  #! GRD002\n"
    ),
    "forward through module": script(
        f"@SETUP\n{LOOP}            loss = F.mse_loss(model.module(x), y)  #! GRD003\n            accelerator.backward(loss)\n            optimizer.step()\n"
    ),
    "unwrapped before the loop": script(
        f"@SETUP\n    net = accelerator.unwrap_model(model)\n{LOOP}            loss = F.mse_loss(net(x), y)  #! GRD003\n            accelerator.backward(loss)\n            optimizer.step()\n"
    ),
    "unfrozen late": script(
        f"    accelerator = Accelerator()\n    loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=8)\n    model = nn.Linear(4, 1)\n    for p in model.parameters():\n        p.requires_grad = False\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)\n    for p in model.parameters():\n        p.requires_grad = True  #! GRD005\n{LOOP}{STEP}"
    ),
    "optimizer of another model": script(
        f"    accelerator = Accelerator()\n    loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=8)\n    model = nn.Linear(4, 1)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  #! GRD005\n    model = nn.Linear(4, 1)\n    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)\n{LOOP}{STEP}"
    ),
    "accumulation by hand": script(
        "@SETUP\n    for i, (x, y) in enumerate(loader):\n        loss = F.mse_loss(model(x), y) / 4\n        accelerator.backward(loss)  #! GRD008\n        if (i + 1) % 4 == 0 or i + 1 == len(loader):\n            optimizer.step()\n            optimizer.zero_grad()\n"
    ),
    "accumulation by hand in plain torch": script(
        "@RAW\n    for i, (x, y) in enumerate(loader):\n        loss = F.mse_loss(model(x), y) / 4\n        loss.backward()  #! GRD008\n        if i % 4 == 3:\n            optimizer.step()\n            optimizer.zero_grad()\n"
    ),
    "step in a hook": script(
        "@RAW\n    for p in model.parameters():\n        p.register_post_accumulate_grad_hook(lambda q: optimizer.step())  #! GRD011\n"
    ),
    "divided twice": script(
        "    accelerator = Accelerator(gradient_accumulation_steps=4)\n    loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=8)\n    model = nn.Linear(4, 1)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)\n    for x, y in loader:\n        with accelerator.accumulate(model):\n            loss = F.mse_loss(model(x), y)\n            loss /= 4  #! DAT008\n            accelerator.backward(loss)\n            optimizer.step()\n            optimizer.zero_grad()\n"
    ),
    "accumulate forgotten": script(
        f"    accelerator = Accelerator(gradient_accumulation_steps=4)\n    loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=8)\n    model = nn.Linear(4, 1)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)\n{LOOP}            loss = F.mse_loss(model(x), y)\n            accelerator.backward(loss)  #! DAT008\n            optimizer.step()\n"
    ),
    "optimizer outside": script(
        "    accelerator = Accelerator(gradient_accumulation_steps=4)\n    loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=8)\n    model = nn.Linear(4, 1)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    model, loader = accelerator.prepare(model, loader)\n    for x, y in loader:\n        with accelerator.accumulate(model):\n            accelerator.backward(F.mse_loss(model(x), y))\n            optimizer.step()  #! DAT008\n            optimizer.zero_grad()\n"
    ),
    "loader left out": script(
        f"    accelerator = Accelerator()\n    loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=8, shuffle=True)\n    model = nn.Linear(4, 1)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    model, optimizer = accelerator.prepare(model, optimizer)  #! DAT001\n{LOOP}{STEP}"
    ),
    "no sampler in plain torch": script(
        f"    dist.init_process_group('gloo')\n    model = DDP(nn.Linear(4, 1))\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=8, shuffle=True)  #! DAT001\n{LOOP}{RAW_STEP}"
    ),
    "sampler and prepare": script(
        "    accelerator = Accelerator()\n    data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))\n    loader = DataLoader(data, batch_size=8, sampler=DistributedSampler(data))\n    model = nn.Linear(4, 1)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)  #! DAT002\n"
    ),
    "split by node and prepare": script(
        "    accelerator = Accelerator()\n    data = split_dataset_by_node(load_dataset('x'), rank=accelerator.process_index, world_size=accelerator.num_processes)\n    loader = DataLoader(data, batch_size=8)\n    loader = accelerator.prepare(loader)  #! DAT002\n",
        "from datasets import load_dataset\nfrom datasets.distributed import split_dataset_by_node\n",
    ),
    "cosine over fixed steps": script(
        "    accelerator = Accelerator()\n    model = nn.Linear(4, 1)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    scheduler = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=1000)  #! DAT006\n    model, optimizer, scheduler = accelerator.prepare(model, optimizer, scheduler)\n"
    ),
    "schedule from the prepared length": script(
        "@SETUP\n    scheduler = get_linear_schedule_with_warmup(optimizer, 10, len(loader) * 3)  #! DAT006\n    scheduler = accelerator.prepare(scheduler)\n",
        "from transformers import get_linear_schedule_with_warmup\n",
    ),
    "bounded by the raw length": script(
        f"    accelerator = Accelerator()\n    loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=8)\n    model = nn.Linear(4, 1)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    total = 3 * len(loader)\n    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)\n    step = 0\n    while step < 10000:\n        for x, y in loader:\n{STEP}            step += 1\n            if step >= total:  #! DAT007\n                break\n"
    ),
    "same order": script(f"@RAW\n    for epoch in range(3):\n        for x, y in loader:  #! DAT009\n{RAW_STEP}"),
    "seeded each epoch": script(
        f"@SETUP\n    for epoch in range(3):\n        set_seed(42)  #! DAT009\n        for x, y in loader:\n{STEP}"
    ),
    "padded": script(
        "@SETUP\n    model.eval()\n    preds = []\n    for x, y in val_loader:\n        with torch.no_grad():\n            out = model(x)\n        preds.append(accelerator.gather(out))  #! DAT010\n    print_once = torch.cat(preds).mean()\n"
    ),
    "gathered once after the loop": script(
        "@SETUP\n    preds = []\n    for x, y in val_loader:\n        preds.append(model(x))\n    allp = accelerator.gather_for_metrics(torch.cat(preds))  #! DAT010\n"
    ),
    "accuracy of a shard": script(
        "@SETUP\n    correct = 0\n    for x, y in val_loader:\n        with torch.no_grad():\n            correct += (model(x).round() == y).sum().item()\n    accelerator.print('accuracy', correct / 64)  #! DAT011\n"
    ),
    "sum over batches of one": script(
        f"@SETUP\n    total = torch.zeros(1)\n    for x, y in loader:\n{STEP.replace('            ', '        ')}        total += loss.detach()\n    mean = accelerator.reduce(total, 'sum').item() / len(loader)  #! DAT015\n"
    ),
    "split after own seeds": script(
        "    accelerator = Accelerator()\n    set_seed(42, device_specific=True)\n    train, val = random_split(TensorDataset(torch.randn(64, 4)), [48, 16])  #! DAT014\n"
    ),
    "sampler's seed by rank": script(
        "    dist.init_process_group('gloo')\n    rank = dist.get_rank()\n    data = TensorDataset(torch.randn(64, 4))\n    sampler = DistributedSampler(data, seed=7 + rank)  #! DAT014\n"
    ),
    "seed on main": script(
        "    accelerator = Accelerator()\n    if accelerator.is_main_process:\n        set_seed(42)  #! DAT016\n"
    ),
    "cuda:0": script("    accelerator = Accelerator()\n    teacher = nn.Linear(4, 1).to('cuda:0')  #! RNK003\n"),
    "set_device(0)": script("    dist.init_process_group('nccl')\n    torch.cuda.set_device(0)  #! RNK003\n"),
    "global rank picks": script(
        "    dist.init_process_group('nccl')\n    torch.cuda.set_device(dist.get_rank())  #! RNK007\n"
    ),
    "global rank in a device": script(
        "    dist.init_process_group('nccl')\n    rank = int(os.environ['RANK'])\n    model = nn.Linear(4, 1).to(f'cuda:{rank}')  #! RNK007\n"
    ),
    "load without a map": script("@SETUP\n    state = torch.load('checkpoint.pth')  #! RNK004\n"),
    "device map": script(
        "    accelerator = Accelerator()\n    model = AutoModelForCausalLM.from_pretrained('x', device_map='auto')  #! LCH015\n",
        "from transformers import AutoModelForCausalLM\n",
    ),
    "data parallel": "import torch\nfrom torch import nn\nmodel = nn.DataParallel(nn.Linear(4, 1)).cuda()  #! LCH016\n",
    "visible devices": HEAD + "os.environ['CUDA_VISIBLE_DEVICES'] = '0'  #! LCH013\naccelerator = Accelerator()\n",
    "sharded after the optimizer": script(
        "    dist.init_process_group('nccl')\n    model = nn.Linear(4, 1)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)  #! SHD005\n    model = FSDP(model)\n",
        "from torch.distributed.fsdp import FullyShardedDataParallel as FSDP\n",
    ),
    "evaluated on main": script(
        "@SETUP\n    if accelerator.is_main_process:\n        net = accelerator.unwrap_model(model)\n        for x, y in DataLoader(data, batch_size=8):  #! HNG006\n            net(x)\n    accelerator.wait_for_everyone()\n"
    ),
    "swallowed": script(
        f"@SETUP\n    for x, y in loader:\n        try:\n{STEP}        except RuntimeError:  #! HNG008\n            continue\n"
    ),
    "barrier each step": script(
        f"@SETUP\n    for x, y in loader:\n{STEP.replace('            ', '        ')}        accelerator.wait_for_everyone()  #! SPD006\n"
    ),
    "clipped each micro-batch": script(
        "    accelerator = Accelerator(gradient_accumulation_steps=4)\n    loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=8)\n    model = nn.Linear(4, 1)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)\n    for x, y in loader:\n        with accelerator.accumulate(model):\n            accelerator.backward(F.mse_loss(model(x), y))\n            accelerator.clip_grad_norm_(model.parameters(), 1.0)  #! GRD013\n            optimizer.step()\n            optimizer.zero_grad()\n"
    ),
    "precision asked for": script(
        "    args = parse()\n    accelerator = Accelerator()  #! GRD010\n    accelerator.print(args.mixed_precision)\n",
        "import argparse\ndef parse():\n    parser = argparse.ArgumentParser()\n    parser.add_argument('--mixed_precision', default='bf16')\n    return parser.parse_args()\n",
    ),
    "even batches off": script(
        f"    accelerator = Accelerator(even_batches=False)  #! DAT003\n    loader = DataLoader(TensorDataset(torch.randn(64, 4), torch.randn(64, 1)), batch_size=8)\n    model = nn.Linear(4, 1)\n    optimizer = torch.optim.SGD(model.parameters(), lr=0.1)\n    model, optimizer, loader = accelerator.prepare(model, optimizer, loader)\n{LOOP}{STEP}"
    ),
    "resumed in the middle": script(
        f"@SETUP\n    accelerator.load_state('ckpt')  #! DAT012\n    start_step = int(open('ckpt/step.txt').read())\n    step = start_step\n    for x, y in loader:\n{STEP.replace('            ', '        ')}        step += 1\n"
    ),
}


@pytest.mark.parametrize("name", FAULTS)
def test_a_fault_is_found_at_its_line_and_nothing_else_is_said(name: str) -> None:
    text = FAULTS[name]
    wanted = {
        (check, number)
        for number, line in enumerate(text.splitlines(), 1)
        for check in re.findall(r"#! ([A-Z]{3}\d{3})", line)
    }
    assert set(said(text)) == wanted
