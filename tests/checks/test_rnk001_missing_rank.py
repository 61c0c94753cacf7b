import msgspec

from accel_checks.rnk001_missing_rank import CHECK
from accel_doctor.check import Location
from accel_doctor.evidence import Ending, RankEnd
from accel_doctor.evidence.run import Failure
from accel_doctor.testing import findings, healthy_rank, healthy_run, outcome, sick_rank
from accel_doctor.testing_trace import at, healthy_traced_rank, healthy_user_run


def test_a_rank_killed_by_a_signal_is_named_with_the_signal() -> None:
    evidence = sick_rank(1, end=RankEnd(how="signal", signal=9))
    (finding,) = findings(CHECK, evidence)
    assert finding.ranks == (1,)
    assert "signal 9 (SIGKILL)" in finding.message
    assert finding.values["signal"] == 9


def test_the_survivors_echo_is_not_the_cause() -> None:
    echo = RankEnd(how="error", at_s=1.0, error="RuntimeError: Connection closed by peer [127.0.0.1]:5")
    ranks = (
        msgspec.structs.replace(healthy_rank(0), end=echo),
        msgspec.structs.replace(healthy_rank(1), end=RankEnd(how="signal", signal=9)),
    )
    (finding,) = findings(CHECK, healthy_run(ranks=ranks))
    assert finding.ranks == (1,)
    assert "rank 0 only saw the connection close" in finding.evidence


def test_a_rank_that_fails_by_its_own_error_gives_its_last_words() -> None:
    end = RankEnd(
        how="error", error="ImportError: no module named x", last_words=("Traceback", "ImportError: no module named x")
    )
    (finding,) = findings(CHECK, sick_rank(0, end=end))
    assert "ImportError: no module named x" in finding.message
    assert finding.evidence[-1] == "ImportError: no module named x"


def test_ranks_that_never_came_are_counted_with_the_launchers_last_words() -> None:
    ending = Ending(exit_code=1, output_tail=("ValueError: no such key",))
    (finding,) = findings(CHECK, healthy_run(ranks=(), ending=ending))
    assert finding.message == "2 of 2 ranks never came: the launcher ended with exit code 1"
    assert finding.evidence == ("ValueError: no such key",)


def test_one_rank_of_two_is_missing_at_the_deadline() -> None:
    ending = Ending(stopped_by="deadline")
    (finding,) = findings(CHECK, healthy_run(ranks=(healthy_rank(0),), ending=ending, cut="deadline"))
    assert finding.ranks == (1,)


def test_an_interrupt_accuses_nobody_and_acquits_nobody() -> None:
    result = outcome(
        CHECK, healthy_run(ranks=(healthy_rank(0),), ending=Ending(stopped_by="interrupt"), cut="interrupt")
    )
    assert (result.outcome.value, result.reason) == (
        "skipped",
        "the exam was interrupted before 1 of its ranks had come",
    )


def test_fewer_processes_than_asked_in_a_launch_that_ended_well_is_another_fault() -> None:
    assert findings(CHECK, healthy_run(ranks=(healthy_rank(0),))) == ()


def test_a_rank_stopped_because_of_another_is_not_missing() -> None:
    assert findings(CHECK, sick_rank(0, end=RankEnd(how="stopped"))) == ()


def test_a_launcher_that_dies_before_its_ranks_is_not_their_fault() -> None:
    ranks = tuple(msgspec.structs.replace(healthy_rank(n), end=RankEnd(how="stopped")) for n in range(2))
    (finding,) = findings(CHECK, healthy_run(ranks=ranks, ending=Ending(signal=9)))
    assert (
        finding.message == "the launcher was killed by signal 9 (SIGKILL), and none of its 2 ranks had failed before it"
    )
    assert finding.ranks == ()


def test_what_ranks_say_when_the_launchers_store_is_gone_is_an_echo() -> None:
    lost = "DistNetworkError: Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server crash?"
    ranks = (
        msgspec.structs.replace(healthy_rank(0), end=RankEnd(how="error", at_s=1.0, error=lost)),
        msgspec.structs.replace(healthy_rank(1), end=RankEnd(how="stopped")),
    )
    (finding,) = findings(CHECK, healthy_run(ranks=ranks, ending=Ending(signal=9)))
    assert finding.message.startswith("the launcher was killed by signal 9 (SIGKILL)")
    assert finding.evidence == ("rank 0 only saw the connection close",)
    (finding,) = findings(CHECK, healthy_run(ranks=ranks, ending=Ending(exit_code=1)))
    assert finding.ranks == (0,)


def test_a_launcher_that_fails_after_its_ranks_have_finished() -> None:
    (finding,) = findings(CHECK, healthy_run(ending=Ending(exit_code=3, output_tail=("boom",))))
    assert finding.seen == "the launcher ended with exit code 3"
    assert finding.evidence == ("boom",)


def test_what_ranks_could_not_write_on_a_full_disk_is_not_held_against_them() -> None:
    lost = msgspec.structs.replace(healthy_rank(1), end=RankEnd(how="vanished"))
    assert findings(CHECK, healthy_run(ranks=(healthy_rank(0), lost), cut="disk")) == ()
    assert outcome(CHECK, healthy_run(ranks=(), ending=Ending(exit_code=1), cut="disk")).outcome.value == "skipped"
    killed = msgspec.structs.replace(healthy_rank(1), end=RankEnd(how="signal", signal=9))
    assert findings(CHECK, healthy_run(ranks=(healthy_rank(0), killed), cut="disk"))[0].ranks == (1,)


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"


def test_a_rank_that_leaves_by_os_exit_is_a_fault_only_where_others_missed_it() -> None:
    left = msgspec.structs.replace(healthy_traced_rank(1, exit_site=at(41)), end=RankEnd(how="exit", exit_code=0))
    assert findings(CHECK, healthy_user_run(ranks=(healthy_traced_rank(0), left))) == ()
    lost = Failure(kind="RuntimeError", message="Connection closed by peer", at_s=1.0, peer_gone=True)
    missed = healthy_user_run(ranks=(healthy_traced_rank(0, failure=lost), left), ending=Ending(exit_code=1))
    (finding,) = findings(CHECK, missed)
    assert "left with exit code 0 by os._exit at train.py:41 before its work was done" in finding.message
    assert finding.location == Location("train.py", 41)
