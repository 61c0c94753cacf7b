from accel_checks.rnk005_frozen_rank import CHECK
from accel_doctor.evidence import Ending, Trace, Watch
from accel_doctor.evidence.run import Frame, Stall
from accel_doctor.testing import findings, healthy_run, outcome, sick_rank


def test_a_stopped_rank_is_named_with_its_state() -> None:
    watch = Watch(state="T", state_for_s=3.2, silent_for_s=3.4, phase="sweep", phase_for_s=3.4, judged="frozen")
    (finding,) = findings(CHECK, sick_rank(1, watch=watch))
    assert finding.message == (
        "rank 1 (pid 1001) on ws1 is stopped (state T: SIGSTOP, or a debugger) for 3 s, in phase sweep"
    )
    assert finding.ranks == (1,)


def test_a_rank_that_waits_is_not_frozen() -> None:
    watch = Watch(state="S", silent_for_s=0.3, phase="sweep", phase_for_s=3.0, waiting=True)
    assert findings(CHECK, sick_rank(0, watch=watch)) == ()


def test_a_held_interpreter_is_told_from_a_wait() -> None:
    watch = Watch(state="R", silent_for_s=9.0, phase="data", phase_for_s=9.0, judged="frozen")
    (finding,) = findings(CHECK, sick_rank(1, watch=watch))
    assert "its interpreter is held" in finding.message


def test_the_line_that_was_read_from_outside_is_told() -> None:
    watch = Watch(state="S", silent_for_s=5.0, phase="loop", phase_for_s=5.0, judged="frozen")
    stall = Stall(
        at_s=1.0,
        stack=(Frame(path="lib.py", line=1, function="f"), Frame(path="a.py", line=9, function="g", user=True)),
    )
    (finding,) = findings(CHECK, sick_rank(1, watch=watch, trace=Trace(stall=stall)))
    assert finding.message.endswith("in phase loop, at a.py:9")
    assert finding.location is not None
    assert finding.location.line == 9


def test_a_stopped_launcher_is_told() -> None:
    (finding,) = findings(CHECK, healthy_run(ending=Ending(stopped_by="frozen", launcher_state="T")))
    assert finding.message.startswith("the launcher itself is stopped")


def test_healthy() -> None:
    assert outcome(CHECK, sick_rank(1, watch=Watch(state="S"))).outcome.value == "passed"
