"""Facts of other processes, from recorded trees of /proc: what is there, what is gone, what may not be read."""

from pathlib import Path

import pytest

from accel_doctor.machine import proc, waits
from accel_doctor.machine.proc import Connection, Stat

TCP = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:733C 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4701 1 0
   1: 0100007F:733C 0100007F:9C40 01 00000000:00000000 00:00000000 00000000     0        0 4702 1 0
   2: 0100007F:9C41 0700000A:01BB 06 00000000:00000000 00:00000000 00000000     0        0 4703 1 0
"""
TCP6 = """\
  sl  local_address                         remote_address                        st tx rx tr tm retr uid timeout inode
   0: 0000000000000000FFFF00000100007F:9C40 0000000000000000FFFF00000100007F:733C 01 0:0 0:0 0 0 0 4704 1 0
"""
LOCKS = """\
1: FLOCK  ADVISORY  WRITE 5000 00:2f:77 0 EOF
1: -> FLOCK  ADVISORY  WRITE 5001 00:2f:77 0 EOF
2: POSIX  ADVISORY  READ -1 00:2f:78 0 EOF
3: OFDLCK ADVISORY  WRITE
"""


def process(root: Path, pid: int = 5000, **files: str) -> Path:
    """Record a process's folder; dots in a name stand for slashes."""
    folder = root / str(pid)
    folder.mkdir(exist_ok=True)
    for name, text in files.items():
        path = folder / name.replace("__", "/")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return folder


def stat_line(pid: int, name: str, state: str, parent: int) -> str:
    """Return a ``stat`` line: 300 ticks of user time, 100 of the system, 7 threads, started after 9000, 64 pages."""
    zeros = " 0" * 6
    return f"{pid} ({name}) {state} {parent} 1 1 0{zeros} 300 100 0 0 20 0 7 0 9000 99 64" + " 0" * 20


def test_a_stat_line_with_a_name_that_lies(tmp_path: Path) -> None:
    folder = process(tmp_path, stat=stat_line(5000, "a) R 1 (b", "S", 4999))
    assert proc.stat(folder) == Stat(
        pid=5000, parent=4999, name="a) R 1 (b", state="S", cpu_s=400 * proc.TICKS_S, threads=7,
        start_s=9000 * proc.TICKS_S, memory_bytes=64 * proc.PAGE_BYTES,
    )  # fmt: skip


def test_what_is_gone_or_cut_short_is_nothing(tmp_path: Path) -> None:
    gone = tmp_path / "1"
    assert proc.stat(gone) is None
    assert proc.stat(process(tmp_path, stat="5000 (python) S 1")) is None
    assert (proc.words(gone), proc.environment(gone), proc.owner(gone)) == ((), None, None)
    assert (proc.link(gone / "exe"), proc.library(gone, "libtorch"), proc.io_bytes(gone)) == ("", "", None)
    assert (proc.descriptors(gone), proc.tcp_sockets(gone), proc.pids(gone)) == (None, {}, [])
    assert (proc.boot_s(tmp_path), waits.lock_holders(tmp_path), waits.wait(gone, {}, {})) == (None, {}, None)


def test_words_and_environment_keep_what_users_put_in(tmp_path: Path) -> None:
    folder = process(tmp_path, cmdline="python\0train.py\0--name\0a b\0\0", environ="A=1\0B=x=y\0=C\0D\0E=\0")
    assert proc.words(folder) == ("python", "train.py", "--name", "a b")
    assert proc.environment(folder) == {"A": "1", "B": "x=y", "E": ""}
    assert proc.words(process(tmp_path, 2, cmdline="")) == ()


def test_a_loaded_library_is_found_by_the_file(tmp_path: Path) -> None:
    maps = "7f00-7f01 r--p 0 08:01 9 /venv/lib/torch/lib/libtorch_cpu.so\n7f02-7f03 r--p 0 0 0 [heap]\n"
    assert proc.library(process(tmp_path, maps=maps), "libtorch_cpu.so") == "/venv/lib/torch/lib/libtorch_cpu.so"
    assert proc.library(process(tmp_path, 2, maps="7f00 r--p 0 0 0 /x/libtorch_python.so\n"), "libtorch_cpu.so") == ""


def test_bytes_of_files_and_the_start_of_the_machine(tmp_path: Path) -> None:
    assert proc.io_bytes(process(tmp_path, io="rchar: 30\nwchar: 12\nread_bytes: 4096\n")) == 42
    (tmp_path / "stat").write_text("cpu 1 2\nbtime 1764000000\n")
    assert proc.boot_s(tmp_path) == 1764000000.0


def test_sockets_of_both_families_meet(tmp_path: Path) -> None:
    folder = process(tmp_path, net__tcp=TCP, net__tcp6=TCP6)
    assert proc.tcp_sockets(folder) == {
        "4701": Connection("127.0.0.1:29500", "0.0.0.0:0", listening=True),
        "4702": Connection("127.0.0.1:29500", "127.0.0.1:40000", listening=False),
        "4704": Connection("127.0.0.1:40000", "127.0.0.1:29500", listening=False),
    }


def test_who_holds_the_lock_that_another_waits_for(tmp_path: Path) -> None:
    (tmp_path / "locks").write_text(LOCKS)
    assert waits.lock_holders(tmp_path) == {5001: 5000}


@pytest.mark.parametrize(
    ("call", "link", "expected"),
    [
        ("0 0x0", "/dev/pts/3", ("read", "terminal", "/dev/pts/3", None)),
        ("0 0x0", "pipe:[9]", ("read", "pipe", "standard input", None)),
        ("45 0x0", "socket:[4702]", ("receive", "socket", "127.0.0.1:40000", None)),
        ("73 0x0", "/data/x.lock", ("lock", "file", "/data/x.lock", 7)),
        ("202 0x0", "/data/x", ("futex", "", "", None)),
        ("9999 0x0", "", ("another", "", "", None)),
    ],
)
def test_what_a_thread_waits_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, call: str, link: str, expected: tuple[object, ...]
) -> None:
    monkeypatch.setattr(waits, "MACHINE", "x86_64")
    folder = process(tmp_path, syscall=f"{call} 0x1 0x2\n", net__tcp=TCP)
    (folder / "fd").mkdir()
    (folder / "fd/0").symlink_to(link or "/gone")
    found = waits.wait(folder, proc.tcp_sockets(folder), {5000: 7})
    assert found is not None
    assert (found.call, found.target, found.name, found.holder) == expected


@pytest.mark.parametrize(
    ("files", "call"),
    [
        ({"syscall": "running\n"}, None),
        ({"wchan": "futex_do_wait"}, "futex"),
        ({"wchan": "nfs_wait_bit_killable"}, "read"),
        ({"wchan": "fuse_get_req"}, "read"),
        ({"wchan": "0"}, None),
    ],
)
def test_where_the_kernel_tells_less(tmp_path: Path, files: dict[str, str], call: str | None) -> None:
    found = waits.wait(process(tmp_path, **files), {}, {})
    assert (found and found.call) == call


def test_families(tmp_path: Path) -> None:
    for pid, parent in ((2, 1), (3, 2), (4, 2), (9, 9)):
        process(tmp_path, pid, stat=stat_line(pid, "python", "S", parent))
    found = {s.pid: s for pid in proc.pids(tmp_path) if (s := proc.stat(tmp_path / str(pid)))}
    assert proc.children(found.values()) == {1: [2], 2: [3, 4], 9: [9]}
    assert [*proc.ancestors(found, 3)] == [2, 1]
    assert [*proc.ancestors(found, 9)] == []
