"""The supervisor on light real processes that write like ranks do; no torch in them."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from accel_doctor.launch.process import LaunchedProcess
from accel_doctor.launch.watch import Patience, RankWatch, Supervisor, Watched
from accel_doctor.progress import Progress

pytestmark = pytest.mark.ranks

RANK = """
import os, sys, threading, time
from pathlib import Path
from accel_doctor.probes.record import RankFile

def beat():
    while True:
        record.beat()
        time.sleep(0.2)

if sys.argv[2] == "silent":
    time.sleep(60)
record = RankFile(Path(sys.argv[1]))
record.write(pid=record.pid, host=record.host, rank=int(os.environ["RANK"]))
threading.Thread(target=beat, daemon=True).start()
exec(sys.argv[2])
"""
LAUNCHER = """
import os, subprocess, sys

def start(number, script):
    environment = {**os.environ, "RANK": str(number)}
    return subprocess.Popen([sys.executable, "-c", *sys.argv[1:3], script], env=environment, start_new_session=True)

ranks = [start(number, script) for number, script in enumerate(sys.argv[3:])]
for rank in ranks:
    rank.wait()
"""
WAITS = "record.begin('sweep')\nwith record.collective('all_reduce'): time.sleep(60)"
WORKS = "record.begin('sweep')\nfor i in range(600):\n  record.begin('data')\n  time.sleep(0.1)"
FINISHES = "from accel_doctor.evidence import RankEnd\nrecord.end(RankEnd(how='finished', exit_code=0))"
SLEEPS = "record.begin('data'); time.sleep(60)"
DIES = "record.begin('data'); os.kill(os.getpid(), 9)"
STOPS = "record.begin('data'); os.kill(os.getpid(), 19)"
QUICK = Patience(deadline_s=20.0, stopped_s=0.5, silent_s=1.5, stalled_s=1.0, importing_s=3.0, dead_s=0.5)


class World:
    def __init__(self, tmp_path: Path, *scripts: str) -> None:
        (tmp_path / "ranks").mkdir()
        self.shown: list[Progress] = []
        argv = (sys.executable, "-c", LAUNCHER, RANK, str(tmp_path), *scripts)
        output = tmp_path / "output.log"
        self.launched = LaunchedProcess(argv, environment=dict(os.environ), cwd=tmp_path, output=output)
        self.run_dir, self.asked = tmp_path, len(scripts)

    def watch(self, patience: Patience = QUICK) -> Watched:
        return Supervisor(self.launched, self.run_dir, patience, self.shown.append, self.asked).watch()


@pytest.fixture
def worlds(tmp_path: Path) -> Iterator[list[World]]:
    made: list[World] = []
    yield made
    for world in made:
        assert world.launched.stop(0.1) == ()


def judged(watched: Watched) -> list[str]:
    return sorted(w.judged for w in watched.ranks.values())


def test_a_launch_that_ends_by_itself(tmp_path: Path, worlds: list[World]) -> None:
    worlds.append(World(tmp_path, FINISHES, FINISHES))
    watched = worlds[0].watch()
    assert (watched.stopped_by, watched.exit_code, judged(watched)) == ("", 0, ["", ""])
    assert worlds[0].shown[-1].asked == 2


def test_a_stopped_rank_is_frozen_and_its_waiting_peer_is_not(tmp_path: Path, worlds: list[World]) -> None:
    worlds.append(World(tmp_path, WAITS, STOPS))
    watched = worlds[0].watch()
    assert watched.stopped_by == "frozen"
    assert judged(watched) == ["", "frozen"]
    (frozen,) = (w for w in watched.ranks.values() if w.judged)
    assert frozen.state == "T"


def test_a_rank_that_died_unnoticed_by_its_launcher(tmp_path: Path, worlds: list[World]) -> None:
    worlds.append(World(tmp_path, WAITS, DIES))
    watched = worlds[0].watch()
    assert (watched.stopped_by, judged(watched)) == ("dead-rank", ["", "dead-rank"])


def test_a_rank_that_never_enters_the_collective_is_the_one_that_stalls(tmp_path: Path, worlds: list[World]) -> None:
    worlds.append(World(tmp_path, WAITS, SLEEPS))
    watched = worlds[0].watch()
    assert (watched.stopped_by, judged(watched)) == ("stalled", ["", "stalled"])
    (stalled,) = (w for w in watched.ranks.values() if w.judged)
    assert not stalled.waiting


def test_a_rank_that_never_wrote_a_word_is_the_one_that_stalls(tmp_path: Path, worlds: list[World]) -> None:
    worlds.append(World(tmp_path, WAITS, "silent", WAITS))
    watched = worlds[0].watch()
    assert (watched.stopped_by, judged(watched)) == ("stalled", ["", ""])
    (silent,) = watched.unseen
    assert silent.rank == 1
    assert silent.watch
    assert (silent.watch.judged, silent.watch.phase) == ("stalled", "start")


def test_a_rank_that_works_while_its_peer_waits_is_no_stall(tmp_path: Path, worlds: list[World]) -> None:
    worlds.append(World(tmp_path, WAITS, WORKS))
    watched = worlds[0].watch(QUICK._replace(deadline_s=4.0))
    assert (watched.stopped_by, judged(watched)) == ("deadline", ["", ""])


def test_a_rank_stopped_before_it_could_write_is_known_by_its_environment(tmp_path: Path, worlds: list[World]) -> None:
    worlds.append(World(tmp_path, WAITS))
    world = worlds[0]
    world.asked = 2
    early = subprocess.Popen(
        ["sh", "-c", "kill -STOP $$"],
        env={"ACCEL_DOCTOR_RUN": world.launched.mark, "RANK": "1", "LOCAL_RANK": "1"},
        start_new_session=True,
    )
    watched = world.watch()
    early.send_signal(signal.SIGKILL)
    early.wait()
    assert watched.stopped_by == "frozen"
    assert [(r.rank, r.watch and r.watch.judged) for r in watched.unseen] == [(1, "frozen")]


def test_a_stopped_launcher_is_seen(tmp_path: Path, worlds: list[World]) -> None:
    worlds.append(World(tmp_path, WORKS))
    os.kill(worlds[0].launched.pid, signal.SIGSTOP)
    time.sleep(0.1)
    watched = worlds[0].watch()
    assert (watched.stopped_by, watched.launcher_state) == ("frozen", "T")


@pytest.mark.parametrize(
    ("state", "for_s", "word"),
    [("D", 0.3, "running"), ("D", 3.0, "asleep on disk or driver"), ("T", 0.3, "stopped"), ("S", 3.0, "running")],
)
def test_a_short_sleep_on_the_disk_is_not_called_stopped(tmp_path: Path, state: str, for_s: float, word: str) -> None:
    watch = RankWatch(tmp_path / "ws1-1.jsonl", 1)
    watch.state, watch._stopped_since = state, None if state == "S" else 10.0
    assert watch.word(10.0 + for_s) == word


def test_a_rank_that_imports_for_long_is_not_yet_stalled(tmp_path: Path, worlds: list[World]) -> None:
    worlds.append(World(tmp_path, WAITS, "record.begin('import'); time.sleep(2.2)\n" + WORKS))
    watched = worlds[0].watch(QUICK._replace(deadline_s=5.0, importing_s=30.0))
    assert (watched.stopped_by, judged(watched)) == ("deadline", ["", ""])


def test_a_rank_that_never_ends_its_import_is_the_one_that_stalls(tmp_path: Path, worlds: list[World]) -> None:
    worlds.append(World(tmp_path, WAITS, "record.begin('import'); time.sleep(60)"))
    watched = worlds[0].watch()
    assert (watched.stopped_by, judged(watched)) == ("stalled", ["", "stalled"])
