import msgspec

from accel_doctor.evidence import Rank, RankEnd, Watch
from accel_doctor.launch.endings import failures, last_words, reconcile
from accel_doctor.testing import healthy_rank

REPORT = """\
Traceback (most recent call last):
  File "/home/u/train.py", line 3, in <module>
    import nothing
ModuleNotFoundError: No module named 'nothing'
E1130 22:00:00.000000 4242 torch/distributed/elastic/multiprocessing/api.py:993] failed (exitcode: 1) local_rank: 1
Traceback (most recent call last):
  File "/venv/bin/accelerate", line 8, in <module>
torch.distributed.elastic.multiprocessing.errors.ChildFailedError:
============================================================
accel_doctor.probes FAILED
------------------------------------------------------------
Failures:
[1]:
  time      : 2026-11-30_22:00:00
  host      : ws1
  rank      : 0 (local_rank: 0)
  exitcode  : -15 (pid: 1000)
  error_file: <N/A>
  traceback : Signal 15 (SIGTERM) received by PID 1000
------------------------------------------------------------
Root Cause (first observed failure):
[0]:
  time      : 2026-11-30_22:00:00
  host      : ws1
  rank      : 1 (local_rank: 1)
  exitcode  : {code} (pid: 1001)
  error_file: <N/A>
============================================================
"""


def unfinished(rank: int) -> Rank:
    return msgspec.structs.replace(healthy_rank(rank), end=None)


def ends(output: str, watched: dict[int, Watch] | None = None) -> list[RankEnd | None]:
    ranks = reconcile((unfinished(0), unfinished(1)), watched or {}, output, host="ws1")
    return [rank.end for rank in ranks]


def test_the_root_cause_comes_first() -> None:
    assert [(f.rank, f.code) for f in failures(REPORT.format(code=-9))] == [(1, -9), (0, -15)]


def test_a_rank_that_died_before_it_wrote_is_known_by_the_launchers_report() -> None:
    _, silent = reconcile((unfinished(0),), {}, REPORT.format(code=7), host="ws1")
    assert (silent.rank, silent.local_rank, silent.pid, silent.host) == (1, 1, 1001, "ws1")
    assert silent.end
    assert (silent.end.how, silent.end.exit_code) == ("exit", 7)


def test_a_killed_rank_is_told_from_those_the_launcher_stopped() -> None:
    stopped, killed = ends(REPORT.format(code=-9))
    assert (stopped and stopped.how, killed and killed.how, killed and killed.signal) == ("stopped", "signal", 9)


def test_an_exit_code_comes_with_the_last_traceback_of_the_ranks() -> None:
    _, died = ends(REPORT.format(code=1))
    assert died is not None
    assert (died.how, died.exit_code) == ("exit", 1)
    assert died.last_words[-1] == "ModuleNotFoundError: No module named 'nothing'"
    assert died.last_words[0] == "Traceback (most recent call last):"


def test_what_the_rank_says_of_itself_wins() -> None:
    finished = healthy_rank(0)
    rank, _ = reconcile((finished,), {}, REPORT.format(code=-9), host="ws1")
    assert rank.end == finished.end


def test_a_rank_alive_when_the_launch_had_ended_or_was_stopped_did_not_die() -> None:
    watched = {1000: Watch(state="S"), 1001: Watch(state="T", judged="frozen")}
    assert [e and e.how for e in ends("", watched)] == ["stopped", "stopped"]


def test_a_rank_that_was_gone_before_the_stop_vanished() -> None:
    watched = {1000: Watch(state="S"), 1001: Watch(state="", judged="dead-rank")}
    assert [e and e.how for e in ends("", watched)] == ["stopped", "vanished"]


def test_ranks_of_other_hosts_are_left_as_they_say() -> None:
    (rank,) = reconcile((unfinished(0),), {}, "", host="another")
    assert rank.end is None


def test_output_without_a_traceback_gives_its_last_lines() -> None:
    assert last_words("one\n\ntwo\n") == ("one", "two")
