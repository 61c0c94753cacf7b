"""The wire between two ranks, shaped for real: a namespace of its own whose loopback carries 80 Mbit/s."""

import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from launches import Started

pytestmark = [pytest.mark.ranks, pytest.mark.slow]
SLOW = "rate 80mbit burst 64kb latency 400ms".split()  # noqa: SIM905
LEAST_GB_S = "0.03"
"""80 Mbit/s are 0.01 GB/s; an unshaped loopback carries ten times the limit at least."""


def ip(*words: str) -> None:
    subprocess.run(["ip", *words], check=True, capture_output=True)


@pytest.fixture
def namespace() -> Iterator[str]:
    if os.geteuid() or not shutil.which("ip") or not shutil.which("tc"):
        pytest.skip("a network namespace needs root and iproute2")
    name = f"doctor{os.getpid()}"
    try:
        ip("netns", "add", name)
    except subprocess.CalledProcessError as error:
        pytest.skip(f"no network namespace here: {error.stderr.decode().strip()}")
    try:
        ip("netns", "exec", name, "ip", "link", "set", "lo", "up")
        yield name
    finally:
        ip("netns", "delete", name)


def test_a_slow_wire_is_below_the_bandwidth_that_was_asked_for(tmp_path: Path, namespace: str) -> None:
    ip("netns", "exec", namespace, "tc", "qdisc", "add", "dev", "lo", "root", "tbf", *SLOW)
    exam = Started(tmp_path, options=("--min-bus-bandwidth", LEAST_GB_S), inside=namespace).result()
    assert exam.exit_code == 1
    (finding,) = exam.findings("NET002")
    assert finding["values"]["busbw_gb_s"] < float(LEAST_GB_S)
    assert exam.outcome("NET001") == "passed"


def test_the_same_namespace_unshaped_is_fast_enough(tmp_path: Path, namespace: str) -> None:
    exam = Started(tmp_path, options=("--min-bus-bandwidth", LEAST_GB_S), inside=namespace).result()
    assert (exam.exit_code, exam.outcome("NET002")) == (0, "passed")
