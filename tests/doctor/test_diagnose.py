from collections.abc import Iterator

import msgspec
import pytest

from accel_doctor.check import Check, Finding, Invariant, Judge, Location, NotApplicable, Severity
from accel_doctor.diagnose import Options, Outcome, Verdict, belongs, diagnose, examine
from accel_doctor.evidence import Asked, Evidence
from accel_doctor.testing import healthy_rank, healthy_run, sick_rank


def check(check_id: str, *found: Finding, needs: tuple[str, ...] = ("ranks",), causes: tuple[str, ...] = ()) -> Check:
    def judge(_: Evidence) -> Iterator[Finding]:
        yield from found

    return Check(
        id=check_id,
        name="x",
        invariant=Invariant.EQUAL,
        title="t",
        why="w",
        fix="the check's own fix",
        judges=(Judge(needs, judge),),
        consequence_of=causes,
    )


ERROR = Finding(message="bad")
WARNING = Finding(message="odd", severity=Severity.WARNING)
NOTE = Finding(message="so", severity=Severity.NOTE)


@pytest.mark.parametrize(
    ("found", "outcome"),
    [
        ((ERROR, NOTE), Outcome.FAILED),
        ((WARNING, NOTE), Outcome.WARNED),
        ((NOTE,), Outcome.PASSED),
        ((), Outcome.PASSED),
    ],
)
def test_the_worst_finding_is_the_outcome(found: tuple[Finding, ...], outcome: Outcome) -> None:
    result = examine(check("AAA001", *found), healthy_run())
    assert (result.outcome, len(result.findings)) == (outcome, len(found))


def test_a_finding_without_a_fix_takes_the_checks_own() -> None:
    assert examine(check("AAA001", ERROR), healthy_run()).findings[0].fix == "the check's own fix"


def test_absent_evidence_is_skipped_with_the_reason_that_was_recorded() -> None:
    evidence = healthy_run(devices=None, absent={"devices": "the driver does not answer"})
    result = examine(check("AAA001", ERROR, needs=("devices",)), evidence)
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "the driver does not answer")


def test_a_probe_that_no_rank_reached_is_skipped() -> None:
    evidence = healthy_run(ranks=tuple(healthy_rank(r) for r in ()))
    assert examine(check("AAA001", needs=("ranks.sweep",)), evidence).outcome is Outcome.SKIPPED


def test_a_silent_judge_does_not_acquit_when_a_rank_was_not_seen() -> None:
    result = examine(check("AAA001", needs=("ranks.sweep",)), sick_rank(1, sweep=None))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "not seen on rank 1")


def test_a_silent_judge_does_not_acquit_when_a_rank_never_came() -> None:
    result = examine(check("AAA001", needs=("ranks.sweep",)), healthy_run(ranks=(healthy_rank(0),)))
    assert (result.outcome, result.reason) == (Outcome.SKIPPED, "not seen on 1 that never came")


def test_partial_evidence_may_convict() -> None:
    assert examine(check("AAA001", ERROR, needs=("ranks.sweep",)), sick_rank(1, sweep=None)).outcome is Outcome.FAILED


def test_a_judge_that_raises_is_broken_and_says_why() -> None:
    def judge(_: Evidence) -> Iterator[Finding]:
        yield NOTE
        raise ZeroDivisionError("nothing to divide")

    broken = check("AAA001")._replace(judges=(Judge(("ranks",), judge),))
    result = examine(broken, healthy_run())
    assert (result.outcome, result.reason) == (Outcome.BROKEN, "ZeroDivisionError: nothing to divide")


def test_not_applicable_is_skipped_unless_another_judge_passes() -> None:
    def judge(_: Evidence) -> Iterator[Finding]:
        raise NotApplicable("FSDP was not asked for")
        yield NOTE

    alone = check("AAA001")._replace(judges=(Judge(("ranks",), judge),))
    assert examine(alone, healthy_run()).reason == "FSDP was not asked for"
    beside = alone._replace(judges=(*alone.judges, *check("AAA001").judges))
    assert examine(beside, healthy_run()).outcome is Outcome.PASSED


def test_findings_at_one_site_merge_into_the_worst() -> None:
    place = Location("train.py", 3)
    said = (
        Finding(message="seen so", severity=Severity.WARNING, location=place),
        Finding(message="run so", location=place),
    )
    (finding,) = examine(check("AAA001", *said), healthy_run()).findings
    assert (finding.message, finding.severity, finding.evidence) == ("run so", Severity.ERROR, ("seen so",))


def test_a_consequence_is_carried_by_its_first_cause() -> None:
    checks = [
        check("AAA001", ERROR),
        check("AAA002", WARNING, causes=("AAA001",)),
        check("AAA003", ERROR, causes=("AAA002",)),
    ]
    diagnosis = diagnose(healthy_run(), checks)
    outcomes = [r.outcome for r in diagnosis.results]
    assert outcomes == [Outcome.FAILED, Outcome.SKIPPED, Outcome.SKIPPED]
    assert diagnosis.results[0].findings[0].evidence == ("AAA002 x: odd", "AAA003 x: bad")
    assert diagnosis.results[2].reason == "a consequence of AAA001"


def test_a_cause_that_only_gave_a_note_explains_nothing_away() -> None:
    diagnosis = diagnose(healthy_run(), [check("AAA001", NOTE), check("AAA002", ERROR, causes=("AAA001",))])
    assert diagnosis.results[1].outcome is Outcome.FAILED


def test_causes_that_name_each_other_end() -> None:
    checks = [check("AAA001", ERROR, causes=("AAA002",)), check("AAA002", ERROR, causes=("AAA001",))]
    outcomes = {r.outcome for r in diagnose(healthy_run(), checks).results}
    assert Outcome.FAILED in outcomes


@pytest.mark.parametrize(
    ("found", "options", "verdict", "code"),
    [
        (NOTE, Options(), Verdict.PASSED, 0),
        (WARNING, Options(), Verdict.PASSED, 0),
        (WARNING, Options(strict=True), Verdict.FAILED, 1),
        (ERROR, Options(), Verdict.FAILED, 1),
        (ERROR, Options(exit_zero=True), Verdict.FAILED, 0),
        (ERROR, Options(ignore=("AAA",)), Verdict.INCOMPLETE, 2),
        (NOTE, Options(require=("AAA001",)), Verdict.PASSED, 0),
        (NOTE, Options(require=("BBB001",)), Verdict.INCOMPLETE, 2),
        (NOTE, Options(select=("BBB",)), Verdict.INCOMPLETE, 2),
    ],
)
def test_verdict_and_exit_code(found: Finding, options: Options, verdict: Verdict, code: int) -> None:
    diagnosis = diagnose(healthy_run(), [check("AAA001", found)], options)
    assert (diagnosis.verdict, diagnosis.exit_code) == (verdict, code)


@pytest.mark.parametrize(
    ("asked", "strategy", "why"),
    [
        ("train.py:build", "FSDP", ("no units of train.py:build: train.py has no build",)),
        ("train.py:build", "DDP", ()),
        (None, "FSDP", ()),
    ],
)
def test_a_model_that_was_named_and_not_built_makes_the_exam_incomplete(
    asked: str | None, strategy: str, why: tuple[str, ...]
) -> None:
    run = healthy_run()
    assert run.launch
    launch = msgspec.structs.replace(run.launch, strategy=strategy)
    unseen = msgspec.structs.replace(
        run, asked=Asked(model=asked), launch=launch, plan=None, absent={"plan": "train.py has no build"}
    )
    assert diagnose(unseen, [check("AAA001")]).why_incomplete == why


def test_a_required_check_that_was_skipped_makes_the_exam_incomplete() -> None:
    checks = [check("AAA001"), check("AAA002", needs=("plan",))]
    diagnosis = diagnose(healthy_run(), checks, Options(require=("AAA002",)))
    assert (diagnosis.verdict, diagnosis.why_incomplete) == (
        Verdict.INCOMPLETE,
        ("AAA002 was required and not examined",),
    )


def test_an_exam_that_was_cut_is_incomplete() -> None:
    assert diagnose(healthy_run(cut="deadline"), [check("AAA001")]).verdict is Verdict.INCOMPLETE


def test_a_check_whose_evidence_this_exam_never_brings_is_not_listed() -> None:
    assert diagnose(healthy_run(), [check("AAA001", needs=("source",))]).results == ()


def test_a_check_that_needs_the_trace_of_a_users_run_is_no_check_of_a_preflight() -> None:
    traced = check("AAA001", needs=("launch", "ranks.trace"))
    assert not belongs(traced, "preflight")
    assert belongs(traced, "run")
    assert not belongs(check("AAA001", needs=("ranks.sweep",)), "run")


def test_a_warning_never_explains_a_failure_away() -> None:
    diagnosis = diagnose(healthy_run(), [check("AAA001", WARNING), check("AAA002", ERROR, causes=("AAA001",))])
    assert [r.outcome for r in diagnosis.results] == [Outcome.WARNED, Outcome.FAILED]
    assert diagnosis.verdict is Verdict.FAILED
