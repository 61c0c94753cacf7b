"""Takes the stack of a Python that we did not start: by py-spy without stopping it, or by torch's own worker server.

py-spy reads the memory of the process (``--nonblocking``: nothing is stopped, a stack in change may be torn and is
then left out). The worker server answers where the job has opened one: TORCH_WORKER_SERVER_SOCKET.
"""

import contextlib
import http.client
import json
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

from accel_doctor.evidence.run import Frame

KEPT = 48
LIMIT_S = 2.0
KILLED_S = 0.3
DEAF = f"py-spy: no answer within {LIMIT_S:g} s; the job's files may lie on a mount that does not answer"
AT_ONCE = 4
SERVER = "TORCH_WORKER_SERVER_SOCKET"
MISSING = "py-spy is not installed: pip install 'accel-doctor[attach]' shows where each rank's Python is"
REFUSED = (
    "ptrace is refused: run as the same user; with kernel.yama.ptrace_scope=1 as root (sudo -E); in a container with "
    "--cap-add SYS_PTRACE"
)
_LIBRARY = re.compile(r"/(site|dist)-packages/|/lib/python\d|^<|/accel_doctor/")


class Stack(NamedTuple):
    """A main thread's stack, innermost first, or why there is none."""

    frames: tuple[Frame, ...] | None
    why: str = ""


def find_spy() -> str:
    """Return the py-spy beside this Python or on PATH; empty where there is none."""
    beside = Path(sys.executable).with_name("py-spy")
    return str(beside) if beside.exists() else shutil.which("py-spy") or ""


def take(pids: Mapping[int, str], spy: str, cwds: Mapping[int, str]) -> dict[int, Stack]:
    """Return the stacks of processes, all at once.

    Args:
        pids: each process's worker server socket, empty where it has none.
        spy: the py-spy program, empty without one.
        cwds: directories that paths are shown relative to.
    """
    with ThreadPoolExecutor(AT_ONCE) as pool:
        taken = pool.map(lambda item: _take(item[0], item[1], spy, cwds.get(item[0], "")), pids.items())
        return dict(zip(pids, taken, strict=True))


def _take(pid: int, server: str, spy: str, cwd: str) -> Stack:
    if spy:
        stack = by_spy(pid, spy, cwd)
        if stack.frames is not None or not server:
            return stack
    return by_server(server, cwd) if server else Stack(None, MISSING)


def by_spy(pid: int, spy: str, cwd: str) -> Stack:
    """Return the stack that py-spy reads."""
    command = (spy, "dump", "--nonblocking", "--json", "--pid", str(pid))
    try:
        done = run_within(command, LIMIT_S)
        threads = json.loads(done.stdout) if done and done.returncode == 0 else None
    except (OSError, ValueError) as error:
        return Stack(None, f"py-spy: {type(error).__name__}")
    if done is None:
        return Stack(None, DEAF)
    if threads is None:
        return Stack(None, _refusal(done.stderr.decode(errors="replace")))
    main = next((t for t in threads if t.get("os_thread_id") == pid or t.get("thread_name") == "MainThread"), None)
    return Stack(_frames(((f["filename"], f["line"], f["name"]) for f in main["frames"]), cwd) if main else (), "")


def run_within(command: Sequence[str], limit_s: float) -> subprocess.CompletedProcess[bytes] | None:
    """Run a program; ``None`` where it does not end in time, and is killed.

    One that waits for a dead mount may not even end when it is killed: nobody waits for it then.
    """
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, bufsize=0
    )
    try:
        out, err = process.communicate(timeout=limit_s)
    except subprocess.TimeoutExpired:
        process.kill()
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(KILLED_S)
        for pipe in (process.stdout, process.stderr):
            if pipe:
                pipe.close()
        return None
    return subprocess.CompletedProcess(command, process.returncode, out, err)


def _refusal(said: str) -> str:
    if re.search(r"(?i)permission denied|operation not permitted|os error (1|13)\b", said):
        return REFUSED
    first = next((line for line in said.splitlines() if line.strip()), "no reason given")
    return f"py-spy: {first.removeprefix('Error: ')[:160]}"


def by_server(path: str, cwd: str) -> Stack:
    """Return the main thread's stack by torch's worker server on a Unix socket."""
    try:
        said = post(path, "/handler/dump_traceback")
    except (OSError, http.client.HTTPException) as error:
        return Stack(None, f"worker server {path}: {type(error).__name__}")
    frames = _faulthandler(said)
    return Stack(_frames(frames, cwd)) if frames else Stack(None, f"worker server {path}: no stack in its answer")


def post(path: str, handler: str, most_bytes: int = 2**20) -> str:
    """Return what a worker server on a Unix socket answers.

    Raises:
        OSError, http.client.HTTPException: it does not.
    """
    connection = http.client.HTTPConnection("localhost", timeout=LIMIT_S)
    connection.sock = socket.socket(socket.AF_UNIX)
    connection.sock.settimeout(LIMIT_S)
    try:
        connection.sock.connect(path)
        connection.request("POST", handler)
        return connection.getresponse().read(most_bytes).decode(errors="replace")
    finally:
        connection.close()


def _faulthandler(said: str) -> list[tuple[str, int, str]]:
    """Return the frames of the main thread, which faulthandler writes last."""
    last = re.split(r"(?m)^(?:Current thread|Thread) 0x[0-9a-f]+.*$", said)[-1]
    found = re.findall(r'File "([^"]+)", line (\d+) in (\S+)', last)
    return [(path, int(line), name) for path, line, name in found]


def _frames(found: Iterable[Any], cwd: str) -> tuple[Frame, ...]:
    frames = [
        Frame(path=_relative(path, cwd), line=int(line), function=name, user=not _LIBRARY.search(path))
        for path, line, name in found
    ]
    return tuple(frames[:KEPT])


def _relative(path: str, cwd: str) -> str:
    below = cwd.rstrip("/") + "/"
    return path[len(below) :] if cwd and path.startswith(below) else path
