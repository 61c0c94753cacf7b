import fcntl
import io
import os
import pty
import signal
import struct
import subprocess
import sys
import termios
from collections.abc import Iterator
from pathlib import Path

import pytest

from accel_doctor.progress import Progress, RankProgress
from accel_doctor.reports.live import PlainDisplay, open_display, rows, wants_plain

pytestmark = pytest.mark.ranks

SHOW = """
import sys, time
from accel_doctor.progress import Progress, RankProgress
from accel_doctor.reports.live import open_display
with open_display(plain=False) as display:
    for step in range(40):
        rank = RankProgress("rank 1 \\x1b[2J", "sweep", "running")
        display.show(Progress("probing " * 9, step / 10, (rank, rank._replace(name="rank 0", state="stopped")), 2))
        if step == 3: print("ready", flush=True)
        time.sleep(0.03)
print("exam went on")
"""


def progress(*ranks: tuple[str, str, str], stage: str = "probing", at: float = 1.0) -> Progress:
    return Progress(stage, at, tuple(RankProgress(*r) for r in ranks), 2)


def test_the_plain_display_writes_a_line_a_stage_and_no_line_twice() -> None:
    stream = io.StringIO()
    display = PlainDisplay(stream)
    for at in range(5):
        display.show(progress(stage="launching", at=at))
    for at in range(5, 10):
        display.show(progress(("rank 0", "join", "running"), ("rank 1", "sweep", "waiting"), at=at))
    assert stream.getvalue() == "[  0.0 s] launching\n[  5.0 s] probing: 2 of 2 ranks\n"


def test_the_plain_display_names_a_rank_in_trouble_once() -> None:
    stream = io.StringIO()
    display = PlainDisplay(stream)
    for state in ("running", "stopped", "stopped", "gone"):
        display.show(progress(("rank \x1b[31m1", "sweep", state)))
    assert stream.getvalue().splitlines()[1:] == [r"[  1.0 s] rank \x1b[31m1 is stopped in sweep"]


def test_the_plain_display_stays_short_when_all_of_many_ranks_are_in_trouble() -> None:
    stream = io.StringIO()
    PlainDisplay(stream).show(progress(*((f"rank {r}", "sweep", "stopped") for r in range(1024))))
    assert len(stream.getvalue().splitlines()) == 9


def test_a_full_disk_under_stderr_silences_the_display_and_does_not_end_the_exam() -> None:
    with Path("/dev/full").open("w") as stream:
        display = PlainDisplay(stream)
        display.show(progress(stage="launching"))
        display.show(progress())


def test_quiet_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    with open_display(plain=True, quiet=True) as display:
        display.show(progress())
    assert capsys.readouterr() == ("", "")


def test_few_ranks_have_a_row_each_and_many_are_folded_with_the_odd_ones_first() -> None:
    few = rows(progress(("rank 0", "join", "running"), ("rank 1", "sweep", "stopped")))
    assert few == [
        "   1.0 s  probing: 2 of 2 ranks",
        "          rank 0       join",
        "          rank 1       sweep (stopped)",
    ]
    many = [(f"rank {r}", "sweep", "waiting") for r in range(1023)]
    assert rows(progress(*many, ("rank 1023", "join", "running")))[1:] == [
        "          rank 1023    join",
        "          1023 ranks   sweep",
    ]


def test_the_picture_never_has_more_rows_than_a_small_terminal() -> None:
    assert len(rows(progress(*((f"rank {r}", f"phase {r}", "running") for r in range(1024))))) == 10


def test_lines_are_wanted_in_ci_in_a_file_and_on_a_dumb_terminal() -> None:
    leader, follower = pty.openpty()
    with os.fdopen(follower, "w") as terminal, os.fdopen(leader):
        assert not wants_plain(terminal, {})
        assert wants_plain(terminal, {"CI": "true"})
        assert wants_plain(terminal, {"TERM": "dumb"})
    assert wants_plain(terminal, {})
    assert wants_plain(io.StringIO(), {})
    assert wants_plain(None, {})


class Terminal:
    """A process whose stderr is a terminal of its own, of a given width."""

    def __init__(self, columns: int) -> None:
        self.columns = columns
        self.leader, follower = pty.openpty()
        fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        environment = {k: v for k, v in os.environ.items() if k not in ("COLUMNS", "CI", "NO_COLOR")}
        out, into = os.pipe()
        self.out = os.fdopen(out)
        self.process = subprocess.Popen(
            [sys.executable, "-c", SHOW], stderr=follower, stdout=into, env={**environment, "TERM": "xterm"}
        )
        os.close(follower)
        os.close(into)

    def hang_up(self) -> None:
        if self.leader >= 0:
            os.close(self.leader)
        self.leader = -1

    def screen(self) -> str:
        """Return everything that was drawn, once the process has ended."""
        return b"".join(iter(self._read, b"")).decode()

    def _read(self) -> bytes:
        try:
            return os.read(self.leader, 65536)
        except OSError:
            return b""


@pytest.fixture
def terminal(request: pytest.FixtureRequest) -> Iterator[Terminal]:
    opened = Terminal(getattr(request, "param", 80))
    yield opened
    opened.process.kill()
    opened.process.wait(30)
    opened.hang_up()
    opened.out.close()


@pytest.mark.parametrize("terminal", [100, 12], indirect=True)
def test_the_picture_fits_the_terminal_and_is_wiped_at_the_end(terminal: Terminal) -> None:
    drawn = terminal.screen()
    assert terminal.out.read() == "ready\nexam went on\n"
    assert terminal.process.wait(30) == 0
    assert "\x1b[2J" not in drawn
    assert drawn.rstrip().endswith("\x1b[2K")
    assert drawn.index("\x1b[?25l") < drawn.index("\x1b[?25h")
    pieces = drawn.replace("\r", "\n").replace("\x1b", "\n\x1b").split("\n")
    assert 0 < max(len(piece) for piece in pieces if "\x1b" not in piece) <= terminal.columns


def test_ctrl_c_gives_the_cursor_back(terminal: Terminal) -> None:
    assert terminal.out.readline() == "ready\n"
    terminal.process.send_signal(signal.SIGINT)
    assert "\x1b[?25h" in terminal.screen()
    assert terminal.process.wait(30) != 0


def test_a_terminal_that_goes_away_does_not_end_the_exam(terminal: Terminal) -> None:
    assert terminal.out.readline() == "ready\n"
    terminal.hang_up()
    assert terminal.out.read() == "exam went on\n"
    assert terminal.process.wait(30) == 0
