import io
import os
import pty
import shlex
import struct
import subprocess
import sys
import termios
from fcntl import ioctl
from pathlib import Path

import pytest

from accel_doctor.errors import DoctorError
from accel_doctor.streams import color_of, emit, encodable, say, width_of, write_file

CHATTER = (
    "from accel_doctor.streams import emit; import sys; [emit('x' * 100 + '\\n', sys.stdout) for _ in range(10000)]"
)


def test_text_that_the_encoding_carries_is_unchanged() -> None:
    assert encodable("ws1 · 2 → ü", "utf-8") == "ws1 · 2 → ü"
    assert encodable("ws1 · ü", "latin-1") == "ws1 · ü"


def test_text_that_it_does_not_carry_becomes_ascii() -> None:
    assert encodable("a · b … c → ü 日", "ascii") == r"a - b ... c -> \xfc \u65e5"


def test_a_stream_of_another_encoding_gets_what_it_can_carry() -> None:
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, "ascii")
    emit("a · ü\n", stream)
    assert raw.getvalue() == rb"a - \xfc" + b"\n"


def test_a_closed_or_missing_stream_is_no_error() -> None:
    emit("x", None)
    stream = io.StringIO()
    stream.close()
    emit("x", stream)


def test_a_full_disk_is_an_error_and_leaves_nothing_to_fail_at_exit() -> None:
    full = pytest.raises(DoctorError, match="/dev/full cannot be written: No space left on device")
    with Path("/dev/full").open("w") as stream, full:
        emit("x", stream)


def test_a_reader_who_has_gone_is_quiet() -> None:
    pipe = f"{shlex.join([sys.executable, '-c', CHATTER])} | head -1; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", pipe], capture_output=True, text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (0, "x" * 100 + "\n", "")


def test_a_message_has_no_control_characters_and_keeps_its_lines(capsys: pytest.CaptureFixture[str]) -> None:
    say("no file 'a\x1b[2J'\nsecond")
    assert capsys.readouterr().err == "no file 'a\\x1b[2J'\nsecond\n"


def test_a_file_is_written_as_utf8_or_named(tmp_path: Path) -> None:
    write_file(tmp_path / "a", "ü")
    assert (tmp_path / "a").read_bytes() == "ü".encode()
    with pytest.raises(DoctorError, match="cannot be written: Is a directory"):
        write_file(tmp_path, "x")


def test_the_width_is_that_of_the_terminal_unless_columns_says_otherwise(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("COLUMNS", raising=False)
    leader, follower = pty.openpty()
    with os.fdopen(follower, "w") as terminal, os.fdopen(leader):
        ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 57, 0, 0))
        assert width_of(terminal) == 57
        monkeypatch.setenv("COLUMNS", "71")
        assert width_of(terminal) == 71
        monkeypatch.setenv("COLUMNS", "0")
        assert width_of(terminal) == 57
    assert width_of(io.StringIO()) == 100
    assert width_of(None) == 100


def test_colour_is_for_terminals_and_no_color_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("NO_COLOR", "FORCE_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)
    leader, follower = pty.openpty()
    with os.fdopen(follower, "w") as terminal, os.fdopen(leader):
        assert color_of(terminal)
        assert not color_of(io.StringIO())
        monkeypatch.setenv("TERM", "dumb")
        assert not color_of(terminal)
        monkeypatch.setenv("FORCE_COLOR", "1")
        assert color_of(io.StringIO())
        monkeypatch.setenv("NO_COLOR", "1")
        assert not color_of(terminal)
    assert not color_of(terminal)
    assert not color_of(None)
