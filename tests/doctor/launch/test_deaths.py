"""How the children of a launcher ended, read from beside it."""

import subprocess
import sys

import pytest

from accel_doctor.launch.deaths import Deaths

pytestmark = pytest.mark.ranks

LAUNCHER = """
import subprocess, sys, time
children = [
    subprocess.Popen([sys.executable, "-c", f"input(); import os; {end}"], stdin=subprocess.PIPE)
    for end in sys.argv[1:]
]
print(*[c.pid for c in children], flush=True)
input()
for child in children:
    child.stdin.write(b"now")
    child.stdin.close()
    time.sleep(0.3)
    child.wait()
"""
ENDS = ("os.kill(os.getpid(), 9)", "os.abort()", "os._exit(7)", "os._exit(0)", "os.kill(os.getpid(), 15)")


def test_each_end_is_told_apart() -> None:
    launcher = subprocess.Popen(
        [sys.executable, "-c", LAUNCHER, *ENDS], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert launcher.stdin
    assert launcher.stdout
    pids = [int(word) for word in launcher.stdout.readline().split()]
    deaths = Deaths()
    for pid in pids:
        deaths.watch(pid)
    launcher.communicate("go\n", timeout=60)
    deaths.close()
    ends = [deaths.end_of(pid) for pid in pids]
    assert [(e.how, e.signal, e.exit_code) for e in ends if e] == [
        ("signal", 9, None),
        ("signal", 6, None),
        ("exit", None, 7),
        ("exit", None, 0),
        ("stopped", 15, None),
    ]


def test_what_a_launcher_kills_after_the_first_was_stopped() -> None:
    deaths = Deaths()
    deaths.told(101, 7)
    deaths.told(102, -9)
    deaths.close()
    first, second = deaths.end_of(101), deaths.end_of(102)
    assert first
    assert second
    assert (first.how, second.how) == ("exit", "stopped")


def test_a_process_that_is_gone_already_was_not_seen() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    deaths = Deaths()
    deaths.watch(gone.pid)
    deaths.close()
    assert deaths.end_of(gone.pid) is None
