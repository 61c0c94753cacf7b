"""What py-spy, faulthandler and the kernel's socket diagnostics answer, recorded; and those that do not answer."""

import socket
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from accel_doctor.evidence.run import Frame
from accel_doctor.machine import stacks, tcp_bytes

SPIED = b"""[{"pid": 7, "thread_id": 1, "thread_name": null, "os_thread_id": 9, "active": false, "frames": []},
{"pid": 7, "thread_id": 2, "thread_name": "MainThread", "os_thread_id": 7, "active": true, "frames": [
 {"name": "all_reduce", "filename": "/venv/lib/python3.11/site-packages/torch/distributed/c10d.py", "line": 5},
 {"name": "main", "filename": "/home/me/train.py", "line": 41}]}]"""
DUMPED = """Thread 0x00007f01 (most recent call first):
  File "/venv/lib/python3.11/threading.py", line 5 in wait

Current thread 0x00007f00 (most recent call first):
  File "/home/me/train.py", line 12 in step
  File "/home/me/train.py", line 41 in <module>
"""


def spied(monkeypatch: pytest.MonkeyPatch, out: bytes, code: int = 0, err: bytes = b"") -> stacks.Stack:
    answer = subprocess.CompletedProcess((), code, out, err)
    monkeypatch.setattr(stacks, "run_within", lambda *_: answer)
    return stacks.by_spy(7, "py-spy", "/home/me")


def test_the_main_thread_is_shown_relative_to_where_it_works(monkeypatch: pytest.MonkeyPatch) -> None:
    library = "/venv/lib/python3.11/site-packages/torch/distributed/c10d.py"
    assert spied(monkeypatch, SPIED).frames == (
        Frame(path=library, line=5, function="all_reduce", user=False),
        Frame(path="train.py", line=41, function="main", user=True),
    )
    assert spied(monkeypatch, b"[]") == stacks.Stack(())


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (b"Error: Permission denied (os error 13)\n", stacks.REFUSED),
        (b"Error: Operation not permitted (os error 1)\n", stacks.REFUSED),
        (b"\nError: Failed to find python version\n", "py-spy: Failed to find python version"),
        (b"", "py-spy: no reason given"),
    ],
)
def test_a_refusal_says_what_to_do(monkeypatch: pytest.MonkeyPatch, said: bytes, why: str) -> None:
    assert spied(monkeypatch, b"", 1, said) == stacks.Stack(None, why)


def test_what_is_no_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    assert spied(monkeypatch, b"{").why == "py-spy: JSONDecodeError"
    monkeypatch.setattr(stacks, "run_within", lambda *_: None)
    assert stacks.by_spy(7, "py-spy", "").why == stacks.DEAF
    assert stacks.take({7: ""}, "", {}) == {7: stacks.Stack(None, stacks.MISSING)}


def test_a_servers_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stacks, "post", lambda *_: DUMPED)
    frames = stacks.by_server("/run/w.sock", "/home/me").frames
    assert [(f.path, f.line, f.function) for f in frames or ()] == [
        ("train.py", 12, "step"),
        ("train.py", 41, "<module>"),
    ]
    monkeypatch.setattr(stacks, "post", lambda *_: "")
    assert "no stack in its answer" in stacks.by_server("/run/w.sock", "").why


def test_a_server_that_is_not_there(tmp_path: Path) -> None:
    assert "FileNotFoundError" in stacks.by_server(str(tmp_path / "none"), "").why


@pytest.mark.ranks
def test_a_program_that_does_not_end_is_not_waited_for() -> None:
    assert stacks.run_within((sys.executable, "-c", "import time; time.sleep(60)"), 0.1) is None
    done = stacks.run_within((sys.executable, "-c", "print(1)"), 60)
    assert done is not None
    assert (done.returncode, done.stdout) == (0, b"1\n")


def diagnosis(inode: int, sent: int, received: int, before: bytes = b"") -> bytes:
    """Return one socket as the kernel's ``inet_diag_msg`` with its ``tcp_info``."""
    head = bytearray(tcp_bytes._MESSAGE_BYTES)
    struct.pack_into("=I", head, tcp_bytes._INODE_AT, inode)
    info = bytearray(tcp_bytes._BYTES_AT + 16)
    struct.pack_into("=QQ", info, tcp_bytes._BYTES_AT, sent, received)
    return bytes(head) + before + struct.pack("=HH", 4 + len(info), tcp_bytes.INFO) + bytes(info)


def test_bytes_of_a_socket() -> None:
    other = struct.pack("=HH", 5, 8) + b"\1\0\0\0"
    assert tcp_bytes._read(diagnosis(4702, 1000, 24)) == ("4702", 1024)
    assert tcp_bytes._read(diagnosis(4702, 1000, 24, before=other)) == ("4702", 1024)
    older = diagnosis(4702, 1, 1)[:72] + struct.pack("=HH", 104, tcp_bytes.INFO) + bytes(100)
    assert tcp_bytes._read(older) == ("4702", 0), "an older kernel tells less"
    assert tcp_bytes._read(diagnosis(4702, 1, 1)[:72] + struct.pack("=HH", 0, 9)) == ("4702", 0)


def test_where_the_kernel_refuses_nothing_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> socket.socket:
        raise PermissionError

    monkeypatch.setattr(socket, "socket", refuse)
    assert tcp_bytes.carried() is None
