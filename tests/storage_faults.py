"""Ranks of a preflight whose checkpoints or checkpoint directory are sick, each for real; run by ``ranks``."""

import ctypes
import os
import subprocess
from pathlib import Path

import msgspec

from accel_doctor.evidence import ProbeOptions
from accel_doctor.evidence.probe_options import PROBE_FILE
from accel_doctor.probes.__main__ import main

CLONE_NEWNS = 0x20000


def losing_the_optimizer(run_dir: Path) -> int:
    """Save what ``state_dict`` gives without its tensors."""
    from accelerate import Accelerator
    from torch.optim import AdamW

    whole, save = AdamW.state_dict, Accelerator.save_state

    def forgetful(self: Accelerator, output: str) -> None:
        AdamW.state_dict = lambda optimizer: {**whole(optimizer), "state": {}}
        save(self, output)
        AdamW.state_dict = whole

    Accelerator.save_state = forgetful
    return main(run_dir)


def losing_rank_1s_random_state(run_dir: Path) -> int:
    """Remove one of the saved files before it is loaded: accelerate passes over it in silence."""
    from accelerate import Accelerator

    load = Accelerator.load_state

    def late(self: Accelerator, folder: str) -> None:
        if os.environ["RANK"] == "1":
            Path(folder, "random_states_1.pkl").unlink()
        load(self, folder)

    Accelerator.load_state = late
    return main(run_dir)


def failing_on_rank_0(run_dir: Path) -> int:
    """Run out of space in the middle of a save."""
    from accelerate import Accelerator

    save = Accelerator.save_state

    def broken(self: Accelerator, output: str) -> None:
        if os.environ["RANK"] == "0":
            raise OSError(28, "No space left on device")
        save(self, output)

    Accelerator.save_state = broken
    return main(run_dir)


def on_a_full_disk(run_dir: Path) -> int:
    directory = _mount("size=64k", run_dir)
    (directory / "data").write_bytes(bytes(64 * 1024))
    return main(run_dir)


def on_a_small_disk(run_dir: Path) -> int:
    _mount("size=8m", run_dir)
    return main(run_dir)


def rank_1_on_a_disk_of_its_own(run_dir: Path) -> int:
    if os.environ["RANK"] == "1":
        _mount("size=64m", run_dir)
    return main(run_dir)


def rank_1_read_only(run_dir: Path) -> int:
    if os.environ["RANK"] == "1":
        _mount("size=64m,ro", run_dir)
    return main(run_dir)


def _mount(options: str, run_dir: Path) -> Path:
    """Mount a file system over the checkpoint directory, for this process alone."""
    directory = msgspec.json.decode((run_dir / PROBE_FILE).read_bytes(), type=ProbeOptions).checkpoint_dir
    assert directory
    assert ctypes.CDLL(None).unshare(CLONE_NEWNS) == 0
    subprocess.run(["mount", "--make-rprivate", "/"], check=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", directory], check=True)
    return Path(directory)
