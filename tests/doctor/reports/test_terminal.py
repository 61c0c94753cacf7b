from collections.abc import Callable

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_doctor.check import Finding, Location, Severity
from accel_doctor.diagnose import Diagnosis, Outcome, Verdict
from accel_doctor.evidence import Asked, Device, Devices, Sample
from accel_doctor.reports.terminal import render
from report_samples import (
    UNSHARDED,
    diagnosis,
    healthy_pair,
    incomplete,
    many_ranks,
    matches_golden,
    one_cause,
    recorded,
    result,
    single_rank,
)

CASES = (healthy_pair, one_cause, incomplete, single_rank)


def shown(case: Diagnosis, *, width: int = 100, color: bool = False, verbosity: int = 0) -> str:
    return render(case, width=width, color=color, verbosity=verbosity)


@pytest.mark.parametrize("width", [100, 50])
@pytest.mark.parametrize("case", CASES)
def test_the_report_is_the_golden_one(case: Callable[[], Diagnosis], width: int) -> None:
    assert matches_golden(f"terminal-{case.__name__}-{width}.txt", shown(case(), width=width))


@pytest.mark.parametrize("case", CASES)
def test_verbose_lists_every_check_with_its_outcome_and_reason(case: Callable[[], Diagnosis]) -> None:
    text = shown(case(), verbosity=1, width=200)
    for r in case().results:
        assert any(
            line.startswith(f"{r.outcome.value} ") and r.id in line and r.reason in line for line in text.splitlines()
        )


def test_verbose_shows_every_setting_with_its_source_and_the_numbers_of_a_finding() -> None:
    assert "num_processes = 1 (flag --num_processes)" in shown(single_rank(), verbosity=1)
    assert "values common_samples 6, samples 6" in shown(one_cause(), verbosity=1)


def test_quiet_has_only_the_faults_and_the_verdict() -> None:
    assert shown(healthy_pair(), verbosity=-1).splitlines() == [
        "PASSED ON CPU: 2 gloo ranks, no GPU examined, 12 checks, 1 note, 5 not examined, 15 s",
        "  .accel-doctor/20261130T215000Z-4312/",
    ]
    lines = shown(one_cause(), verbosity=-1).splitlines()
    assert lines[0] == "FAIL DAT001 unsharded-loader    Ranks 0 and 1 fetched 6 of 6 samples in common"
    assert not any(line.startswith((" ok", " not examined", "next:", "launch")) for line in lines)


def test_the_worst_comes_first_whatever_the_order_of_ids() -> None:
    lines = shown(one_cause()).splitlines()
    heads = [line.split()[0] for line in lines if line.startswith(("FAIL ", "WARN ", " ok"))]
    assert heads == ["FAIL", "WARN", "ok", "ok", "ok"]


def test_a_group_with_a_fault_is_never_ok() -> None:
    text = shown(one_cause())
    assert " ok  data" not in text
    assert " ok  environment" not in text
    assert " ok  launch" in text


def test_a_group_of_which_nothing_was_examined_is_not_ok() -> None:
    assert " ok  gpus" not in shown(healthy_pair())
    assert "no device on this machine (3)" in shown(healthy_pair())


def test_a_group_whose_fault_is_carried_by_a_cause_elsewhere_is_not_ok() -> None:
    case = diagnosis(
        recorded(),
        Verdict.FAILED,
        result("LCH003", "disconnected-ranks", Outcome.FAILED, "", Finding(message="alone")),
        result("DAT004", "wrong-effective-batch", Outcome.SKIPPED, "a consequence of LCH003"),
        result("DAT003", "uneven-batches"),
    )
    assert " ok  data" not in shown(case)


def test_a_broken_check_is_named_as_the_doctors_own_fault() -> None:
    text = shown(incomplete())
    assert "BROKEN SPD001 straggler    ZeroDivisionError: float division by zero (the doctor's own fault)" in text
    assert " ok  speed" not in text


def test_one_cause_with_its_consequences_is_counted_as_such() -> None:
    assert "FAILED  3 faults, 1 cause, 1 warning, 10 checks, 5 not examined" in shown(one_cause())
    assert "a consequence of" not in shown(one_cause())


def test_strict_says_that_warnings_failed() -> None:
    case = msgspec.structs.replace(
        one_cause(), results=tuple(r for r in one_cause().results if r.outcome is not Outcome.FAILED)
    )
    assert "FAILED  1 warning, which --strict fails" in shown(case)


def test_a_command_to_type_stays_on_one_line_at_every_width() -> None:
    for width in range(40, 201, 20):
        assert any(line.endswith(UNSHARDED.command) for line in shown(one_cause(), width=width).splitlines())


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("verbosity", [-1, 0, 1])
def test_no_line_but_a_command_or_a_word_is_wider_than_asked(case: Callable[[], Diagnosis], verbosity: int) -> None:
    for width in (40, 41, 63, 64, 65, 80, 200):
        for line in shown(case(), width=width, verbosity=verbosity).splitlines():
            copied = line.startswith(("  type", "next:"))
            assert copied or len(line) <= width or len(line.split()) == 1, line


def test_widths_beyond_the_bounds_are_taken_as_the_bounds() -> None:
    assert shown(one_cause(), width=1) == shown(one_cause(), width=40)
    assert shown(one_cause(), width=9999) == shown(one_cause(), width=200)


def test_colour_adds_escape_codes_and_nothing_else() -> None:
    for case in CASES:
        painted = shown(case(), color=True)
        assert "\x1b[" in painted
        plain = painted
        for code in ("1;31", "1;33", "32", "36", "1", "2", "32;1", "1;31;1", "1;33;1", "0"):
            plain = plain.replace(f"\x1b[{code}m", "")
        assert plain == shown(case())


def hostile(text: str) -> Diagnosis:
    finding = Finding(
        message=f"m{text}",
        seen=text,
        wanted=text,
        fix=text,
        command=text,
        host=text,
        values={f"v{text}": 1.0},
        location=Location(path=text, line=1),
        evidence=(text, f"mind: {text}"),
    )
    note = msgspec.structs.replace(finding, severity=Severity.NOTE)
    return diagnosis(
        recorded(run_dir=f"dir{text}", asked=Asked(batch_size=3, sources={"batch_size": text})),
        Verdict.FAILED,
        result("DAT001", f"a{text}", Outcome.FAILED, "", finding),
        result("DAT003", "c", Outcome.PASSED, "", note),
        result("DAT004", "b", Outcome.SKIPPED, f"r{text}"),
        result("NET001", "d", Outcome.BROKEN, text),
    )


@given(st.text(alphabet=st.characters(codec=None), max_size=30))
@settings(max_examples=100, deadline=None)
def test_nothing_from_evidence_can_control_the_terminal(text: str) -> None:
    for verbosity in (-1, 0, 1):
        report = shown(hostile(text), verbosity=verbosity)
        assert all(character.isprintable() for line in report.split("\n") for character in line)


def test_escape_codes_in_evidence_are_shown_not_sent() -> None:
    report = shown(hostile("\x1b[2J\x1b]0;owned\x07\u202egnp.exe\udc80\u2028x"))
    assert r"\x1b[2J\x1b]0;owned\x07\u202egnp.exe\udc80 x" in report


def test_a_very_long_text_is_cut_and_says_so() -> None:
    case = hostile("")
    finding = Finding(message="long " * 100_000)
    case = msgspec.structs.replace(case, results=(result("DAT001", "a", Outcome.FAILED, "", finding),))
    report = shown(case)
    assert "[and 498012 characters]" in report
    assert len(report) < 5000


def test_many_findings_of_one_check_are_folded_and_all_there_with_verbose() -> None:
    found = [Finding(message=f"rank {r} never came") for r in range(1000)]
    case = diagnosis(recorded(), Verdict.FAILED, result("RNK001", "missing-rank", Outcome.FAILED, "", *found))
    assert "RNK001 found 996 more (-v)" in shown(case)
    assert shown(case).count("never came") == 4
    assert shown(case, verbosity=1).count("FAIL RNK001 ") == 1000


def test_of_several_findings_the_first_is_told_in_full_and_the_next_by_their_sentence_and_own_command() -> None:
    found = [
        Finding(message="m0", seen="s0", fix="f", command="c0"),
        Finding(message="m1", seen="s1", fix="f", command="c0"),
        Finding(message="m2", seen="s2", fix="f", command="c2"),
    ]
    case = diagnosis(recorded(), Verdict.FAILED, result("RNK001", "missing-rank", Outcome.FAILED, "", *found))
    assert shown(case, verbosity=-1).splitlines()[:7] == [
        "FAIL RNK001 missing-rank    m0",
        "  seen   s0",
        "  fix    f",
        "  type   c0",
        "FAIL RNK001 missing-rank    m1",
        "FAIL RNK001 missing-rank    m2",
        "  type   c2",
    ]
    assert all(f"  seen   s{i}" in shown(case, verbosity=1) for i in range(3))


def test_a_world_of_many_ranks_takes_no_more_lines_than_a_pair() -> None:
    case = msgspec.structs.replace(healthy_pair(), evidence=recorded(ranks=many_ranks(1024)))
    report = shown(case)
    assert len(report.splitlines()) <= len(shown(healthy_pair()).splitlines()) + 2
    assert report.startswith("129 hosts · no GPU")
    assert "effective batch 2048 = 2 x 1024 ranks x 1 accumulation, measured" in report


def with_gpus(*, busy: tuple[float, ...], hidden: int = 0) -> Diagnosis:
    samples = [
        (Sample(at_s=1, busy_pct=3, phase="before"), Sample(at_s=2, busy_pct=b, power_w=400.4, phase="training"))
        for b in busy
    ]
    devices = [
        Device(index=i, host="ws1", uuid=f"GPU-{i}", name="NVIDIA GeForce RTX 4090", visible=i < len(busy), samples=s)
        for i, s in enumerate([*samples, *[()] * hidden])
    ]
    evidence = recorded(devices=Devices(vendor="nvidia", counts={"driver": len(devices)}, devices=tuple(devices)))
    return diagnosis(evidence, Verdict.PASSED, result("GPU001", "idle-gpu"))


def test_devices_are_named_counted_and_shown_at_work() -> None:
    assert shown(with_gpus(busy=(97, 96), hidden=2)).startswith("ws1 · 2 x RTX 4090 + 2 hidden · torch")
    assert " ok  gpus         busy 97 / 96 %, 400 / 400 W" in shown(with_gpus(busy=(97, 96)))
    assert "busy 91-98 %" in shown(with_gpus(busy=(91, 95, 94, 98, 96, 97)))


def test_devices_that_were_not_read_are_not_none() -> None:
    def headline(devices: Devices | None) -> str:
        return shown(diagnosis(recorded(devices=devices), Verdict.PASSED)).splitlines()[0]

    assert "devices not read" in headline(None)
    assert "2 devices by pci, none readable" in headline(Devices(counts={"pci": 2, "dev": 0}))
    assert "no GPU" in headline(Devices(counts={"pci": 0}))


def test_what_the_user_expects_is_shown_with_its_source() -> None:
    asked = Asked(
        batch_size=16,
        min_bus_bandwidth_gb_s=10.0,
        checkpoint_bytes=2,
        sources={
            "batch_size": "flag --batch-size",
            "min_bus_bandwidth": "pyproject.toml",
            "checkpoint_size": "flag --checkpoint-size",
        },
        thresholds={"NET002.warn_below_pct": 70},
    )
    text = shown(diagnosis(recorded(asked=asked), Verdict.PASSED), width=200)
    assert "asked   batch_size 16 (flag --batch-size) · min_bus_bandwidth_gb_s 10.0 (pyproject.toml)" in text
    assert "checkpoint_bytes 2 (flag --checkpoint-size) · NET002.warn_below_pct 70 (settings)" in " ".join(text.split())


def test_without_a_launch_or_ranks_the_report_still_stands() -> None:
    bare = recorded(launch=None, ranks=None, hosts=None, devices=None, ending=None, run_dir=None, timings={})
    case = diagnosis(bare, Verdict.INCOMPLETE, why=("nothing was judged",))
    assert shown(case).splitlines() == [
        "devices not read",
        "launch  not read: no evidence of it",
        "",
        "INCOMPLETE  nothing was judged, 0 checks",
    ]
