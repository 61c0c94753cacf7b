"""Ranks as real gloo processes, forked from a warm parent that has imported torch once.

``run_ranks(world)`` starts the probes of a preflight (or another function) on so many ranks, some of them sick, waits
until they have ended, and returns what they wrote. Run as a program, this file is the warm parent.
"""

import ctypes
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from accel_doctor.evidence import Evidence, ProbeOptions, Rank
from accel_doctor.evidence.rank_file import read_ranks
from accel_doctor.testing import healthy_launch, healthy_run

LONGEST_S = 60.0
GRACE_S = 1.0
Fault = tuple[Any, ...]
"""The name of a function of ``faults``, and its arguments."""


class Ran(NamedTuple):
    """What became of one world of ranks."""

    ranks: tuple[Rank, ...]
    codes: tuple[int, ...]
    """Exit code a rank, in order; minus the signal that killed it."""
    output: str
    run_dir: Path

    @property
    def evidence(self) -> Evidence:
        """Return the evidence of a preflight that saw these ranks."""
        return healthy_run(ranks=self.ranks, launch=healthy_launch(len(self.codes)))


class WarmParent:
    """The process that forks ranks, and the pipe to it."""

    def __init__(self) -> None:
        environment = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG", "PYTHONDONTWRITEBYTECODE")}
        self._process = subprocess.Popen(
            [sys.executable, __file__],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
            env=environment | {"OMP_NUM_THREADS": "1"},
        )

    def ask(self, request: Mapping[str, object]) -> list[int]:
        """Run one world and return its exit codes."""
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.write(json.dumps(request) + "\n")
        self._process.stdin.flush()
        return json.loads(self._process.stdout.readline())  # type: ignore[no-any-return]

    def close(self) -> None:
        """End it; it reaps its ranks after every world."""
        self._process.communicate(timeout=LONGEST_S)


@pytest.fixture(scope="session")
def warm_parent() -> Iterator[WarmParent]:
    parent = WarmParent()
    yield parent
    parent.close()


RunRanks = Callable[..., Ran]


@pytest.fixture
def run_ranks(warm_parent: WarmParent, tmp_path: Path) -> RunRanks:
    """Return a function that runs a world of ranks to its end."""

    def run(
        world: int = 2,
        *,
        sick: Mapping[int, Fault] | None = None,
        environment: Mapping[int, Mapping[str, str]] | None = None,
        options: ProbeOptions | None = None,
        work: str = "accel_doctor.probes.__main__:main",
        limit_s: float = 30.0,
    ) -> Ran:
        run_dir = tmp_path / f"run-{len(list(tmp_path.iterdir()))}"
        (run_dir / "ranks").mkdir(parents=True)
        (run_dir / "probe.json").write_bytes(msgspec.json.encode(options or ProbeOptions()))
        codes = warm_parent.ask(
            {
                "world": world,
                "run_dir": str(run_dir),
                "sick": {str(rank): fault for rank, fault in (sick or {}).items()},
                "environment": {str(rank): dict(more) for rank, more in (environment or {}).items()},
                "work": work,
                "limit_s": limit_s,
            }
        )
        return Ran(read_ranks(run_dir), tuple(codes), (run_dir / "output.log").read_text(), run_dir)

    return run


def serve() -> None:
    """Import torch once, then fork a world for every line of standard input."""
    import accelerate  # noqa: F401
    import torch._dynamo
    import torch.distributed.nn  # noqa: F401

    sys.path.insert(0, str(Path(__file__).parent))
    for line in sys.stdin:
        request = json.loads(line)
        print(json.dumps(_run_world(request)), flush=True)  # noqa: T201 - the answer


def _run_world(request: dict[str, Any]) -> list[int]:
    port = _free_port()
    pids = [_fork(request, rank, port) for rank in range(request["world"])]
    codes = _wait(pids, time.monotonic() + request["limit_s"], stop_when_one_fails=True)
    for end_signal in (signal.SIGTERM, signal.SIGKILL):
        for pid in pids:
            if pid not in codes:
                os.kill(pid, end_signal)
        codes |= _wait([p for p in pids if p not in codes], time.monotonic() + GRACE_S, stop_when_one_fails=False)
    return [codes[pid] for pid in pids]


def _wait(pids: list[int], until: float, *, stop_when_one_fails: bool) -> dict[int, int]:
    """Reap ranks as they end, until all have, one has failed as a launcher would notice, or time is up."""
    codes: dict[int, int] = {}
    while len(codes) < len(pids) and time.monotonic() < until:
        for pid in pids:
            if pid not in codes:
                found, status = os.waitpid(pid, os.WNOHANG)
                codes |= {pid: os.waitstatus_to_exitcode(status)} if found else {}
        if stop_when_one_fails and any(codes.values()):
            break
        time.sleep(0.01)
    return codes


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _fork(request: dict[str, Any], rank: int, port: int) -> int:
    pid = os.fork()
    if pid == 0:
        code = 70
        try:
            code = _be_rank(request, rank, port)
        finally:
            os._exit(code)
    return pid


def _be_rank(request: dict[str, Any], rank: int, port: int) -> int:
    die_with_parent()
    run_dir = Path(request["run_dir"])
    output = os.open(run_dir / "output.log", os.O_CREAT | os.O_WRONLY | os.O_APPEND)
    os.dup2(output, 1)
    os.dup2(output, 2)
    os.environ |= {
        "RANK": str(rank),
        "LOCAL_RANK": str(rank),
        "WORLD_SIZE": str(request["world"]),
        "LOCAL_WORLD_SIZE": str(request["world"]),
        "MASTER_ADDR": "127.0.0.1",
        "MASTER_PORT": str(port),
        "ACCELERATE_USE_CPU": "1",
        **request["environment"].get(str(rank), {}),
    }
    fault = request["sick"].get(str(rank))
    if fault:
        named("faults", fault[0])(*fault[1:])
    module, _, function = request["work"].partition(":")
    return int(named(module, function)(run_dir) or 0)


def named(module: str, name: str) -> Callable[..., Any]:
    """Return a function by the names of its module and itself."""
    import importlib  # noqa: PLC0415

    return getattr(importlib.import_module(module), name)  # type: ignore[no-any-return]


def die_with_parent() -> None:
    """Have the kernel kill this process when the one that forked it ends."""
    ctypes.CDLL(None).prctl(1, signal.SIGKILL)


if __name__ == "__main__":
    serve()
