"""Hosts as network namespaces on one bridge, each with a name, an address and a wire; always removed again."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import pytest

from launches import environment

NETNS = Path("/etc/netns")
SHAPE = "rate {}mbit burst 64kb latency 400ms"


class Node(NamedTuple):
    """One host."""

    name: str
    """Its host name: ``node-a``."""
    space: str
    interface: str
    address: str

    def words(self, *command: str, first: str = "true") -> list[str]:
        """Return a command as it is run there, under the host's own name; mounts that ``first`` makes are its alone."""
        setting = f'hostname "$0" && {first} && exec "$@"'
        return ["ip", "netns", "exec", self.space, "unshare", "--uts", "sh", "-c", setting, self.name, *command]

    def ip(self, *words: str) -> None:
        """Change this host's network: ``route add blackhole 10.77.0.3/32``."""
        _run("ip", "-n", self.space, *words)

    def shape(self, mbit_s: int) -> None:
        """Let no more than so much leave this host."""
        limit = SHAPE.format(mbit_s).split()
        _run("ip", "netns", "exec", self.space, "tc", "qdisc", "add", "dev", self.interface, "root", "tbf", *limit)

    def name_hosts(self, lines: Sequence[str]) -> None:
        """Write what this host's names resolve to."""
        (NETNS / self.space / "hosts").write_text("127.0.0.1 localhost\n" + "".join(f"{line}\n" for line in lines))


def _run(*words: str) -> None:
    subprocess.run(words, check=True, capture_output=True)


@contextmanager
def made(count: int) -> Iterator[tuple[Node, ...]]:
    """Give ``count`` hosts that reach and name each other."""
    if os.geteuid() or not shutil.which("ip") or not shutil.which("tc") or not shutil.which("unshare"):
        pytest.skip("network namespaces need root and iproute2")
    tag = f"ad{os.getpid() % 100000}"
    bridge = f"{tag}br"
    nodes = tuple(
        Node(f"node-{letter}", f"{tag}{letter}", f"{tag}{letter}0", f"10.77.0.{number}")
        for number, letter in enumerate("abcdef"[:count], 1)
    )
    try:
        try:
            _run("ip", "netns", "add", bridge)
        except subprocess.CalledProcessError as error:
            pytest.skip(f"no network namespace here: {error.stderr.decode().strip()}")
        _run("ip", "-n", bridge, "link", "add", "br0", "type", "bridge")
        _run("ip", "-n", bridge, "link", "set", "br0", "up")
        for node in nodes:
            _join(node, bridge)
            (NETNS / node.space).mkdir(parents=True, exist_ok=True)
            node.name_hosts([f"{n.address} {n.name}" for n in nodes])
        yield nodes
    finally:
        for space in (*(n.space for n in nodes), bridge):
            subprocess.run(["ip", "netns", "delete", space], check=False, capture_output=True)
        for node in nodes:
            shutil.rmtree(NETNS / node.space, ignore_errors=True)
        if NETNS.is_dir() and not any(NETNS.iterdir()):
            NETNS.rmdir()


def _join(node: Node, bridge: str) -> None:
    """Give a host a wire to the bridge, which lies in a namespace of its own."""
    other = f"{node.interface}p"
    _run("ip", "netns", "add", node.space)
    _run("ip", "-n", node.space, "link", "add", node.interface, "type", "veth", "peer", "name", other, "netns", bridge)
    _run("ip", "-n", bridge, "link", "set", other, "master", "br0", "up")
    node.ip("addr", "add", f"{node.address}/24", "dev", node.interface)
    node.ip("link", "set", "lo", "up")
    node.ip("link", "set", node.interface, "up")


class Doctors:
    """One doctor a host, started at once with a run directory that they share."""

    def __init__(self, tmp_path: Path) -> None:
        """Start them below ``tmp_path``."""
        self.tmp_path = tmp_path
        self.run_dir = tmp_path / "run"
        self._started: list[subprocess.Popen[bytes]] = []

    def environment(self, **more: str) -> dict[str, str]:
        """Return a user's environment for ranks on the CPU."""
        return environment(self.tmp_path, ACCELERATE_USE_CPU="1", OMP_NUM_THREADS="1", **more)

    def start(self, node: Node, *words: str, env: dict[str, str] | None = None, first: str = "true") -> None:
        """Start ``accel-doctor`` with ``words`` on a host; ``@`` in a word is the shared run directory."""
        filled = [word.replace("@", str(self.run_dir)) for word in words]
        report = self.tmp_path / f"{node.name}.json"
        at = filled.index("--") if "--" in filled else len(filled)
        filled[at:at] = ["--output", f"json:{report}"]
        with (self.tmp_path / f"{node.name}.out").open("wb") as out:
            process = subprocess.Popen(
                node.words(sys.executable, "-m", "accel_doctor", *filled, first=first),
                cwd=self.tmp_path,
                env=self.environment(**(env or {})),
                stdout=out,
                stderr=subprocess.STDOUT,
                stdin=subprocess.DEVNULL,
            )
        self._started.append(process)

    def wait(self, timeout_s: float = 140.0) -> list[int]:
        """Return the exit codes, in order of start."""
        return [process.wait(timeout_s) for process in self._started]

    def end(self) -> None:
        """End those that are still there."""
        for process in self._started:
            if process.poll() is None:
                process.kill()
                process.wait(10)
