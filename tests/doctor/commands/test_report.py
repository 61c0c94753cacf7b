import json
import os
import shutil
from pathlib import Path

import pytest

from accel_doctor import __version__
from accel_doctor.evidence import Ending, Rank
from accel_doctor.evidence.file import write_evidence
from accel_doctor.main import main
from accel_doctor.testing import healthy_run
from report_samples import EVIDENCE

Captured = pytest.CaptureFixture[str]


@pytest.fixture
def run_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    directory = tmp_path / "runs" / "first"
    directory.mkdir(parents=True)
    shutil.copy(EVIDENCE, directory / "evidence.json")
    return directory


@pytest.fixture
def sick_dir(run_dir: Path) -> Path:
    """A run whose second rank never came."""
    ranks: tuple[Rank, ...] = healthy_run().world[:1]
    write_evidence(run_dir, healthy_run(ranks=ranks, ending=Ending(exit_code=1)))
    return run_dir


def test_evidence_is_judged_again_from_its_directory_or_file(run_dir: Path, capsys: Captured) -> None:
    assert main(["report", str(run_dir)]) == 0
    first = capsys.readouterr().out
    assert "PASSED ON CPU: 2 gloo ranks, no GPU examined" in first
    assert main(["report", str(run_dir / "evidence.json")]) == 0
    assert capsys.readouterr().out == first


def test_a_run_directory_that_was_moved_is_named_where_it_is_now(run_dir: Path, capsys: Captured) -> None:
    assert main(["report", str(run_dir), "--output-format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert report["run_dir"] == os.path.join("runs", "first")  # noqa: PTH118 - a string of the contract
    assert report["exam"] == "preflight"
    assert report["doctor_version"] == __version__


def test_a_fault_exits_1_and_exit_zero_changes_the_exit_code_alone(sick_dir: Path, capsys: Captured) -> None:
    assert main(["report", str(sick_dir)]) == 1
    assert "FAILED  " in capsys.readouterr().out
    assert main(["report", str(sick_dir), "--exit-zero", "--output-format", "json"]) == 0
    report = json.loads(capsys.readouterr().out)
    assert (report["verdict"], report["exit_code"]) == ("failed", 0)


def test_select_and_ignore_choose_checks_by_id_prefix_or_name(run_dir: Path, capsys: Captured) -> None:
    def judged(*options: str) -> set[str]:
        main(["report", str(run_dir), "--output-format", "json", *options])
        return {check["id"] for check in json.loads(capsys.readouterr().out)["checks"]}

    every = judged()
    assert judged("--select", "rnk") == {i for i in every if i.startswith("RNK")}
    assert judged("--select", "missing-rank,LCH002") == {"RNK001", "LCH002"}
    assert judged("--ignore", "RNK", "--ignore", "LCH") == {i for i in every if i[:3] not in ("RNK", "LCH")}


def test_a_required_check_that_was_skipped_makes_it_incomplete(run_dir: Path, capsys: Captured) -> None:
    assert main(["report", str(run_dir), "--require", "SHD001"]) == 2
    assert "INCOMPLETE  SHD001 was required and not examined" in capsys.readouterr().out


def test_an_unknown_check_is_refused_with_the_nearest(run_dir: Path, capsys: Captured) -> None:
    for option in ("--select", "--ignore", "--require"):
        assert main(["report", str(run_dir), option, "RNK001,missing-rnak"]) == 2
        captured = capsys.readouterr()
        assert captured.out == ""
        assert captured.err.startswith(
            f"accel-doctor: flag {option}: no check is called 'missing-rnak'; did you mean RNK001 missing-rank"
        )


def test_a_settings_file_sets_what_no_flag_says_and_is_named_when_wrong(run_dir: Path, capsys: Captured) -> None:
    Path("accel-doctor.toml").write_text('output-format = "json"\nselect = ["RNK001"]\nquiet = true')
    assert main(["report", str(run_dir)]) == 0
    assert [c["id"] for c in json.loads(capsys.readouterr().out)["checks"]] == ["RNK001"]
    assert main(["report", str(run_dir), "--output-format", "terminal", "--select", "RNK005"]) == 0
    assert capsys.readouterr().out.startswith("PASSED ON CPU: 2 gloo ranks, no GPU examined, 1 check")
    Path("accel-doctor.toml").write_text('require = ["ZZZ"]')
    assert main(["report", str(run_dir)]) == 2
    assert "accel-doctor.toml: no check is called 'ZZZ'" in capsys.readouterr().err


def test_help_works_beside_a_broken_settings_file(run_dir: Path, capsys: Captured) -> None:
    Path("accel-doctor.toml").write_text("x = [")
    assert main(["report", "--help"]) == 0
    assert "RUN_DIR|FILE" in capsys.readouterr().out
    assert main(["report", str(run_dir)]) == 2
    assert "accel-doctor.toml: Invalid value" in capsys.readouterr().err


def test_an_unknown_threshold_is_refused_with_file_and_key(run_dir: Path, capsys: Captured) -> None:
    Path("accel-doctor.toml").write_text("thresholds.NET999.slow = 3")
    assert main(["report", str(run_dir)]) == 2
    assert "accel-doctor.toml: no check has the threshold 'NET999.slow'" in capsys.readouterr().err


def test_report_files_are_written_and_the_terminal_report_goes_to_stderr(run_dir: Path, capsys: Captured) -> None:
    assert main(["report", str(run_dir), "--output", "a.json", "--output", "terminal:b.txt", "--output", "json:-"]) == 0
    captured = capsys.readouterr()
    assert json.loads(captured.out) == json.loads(Path("a.json").read_text())
    assert captured.err == Path("b.txt").read_text()
    assert "PASSED ON CPU" in captured.err


def test_a_file_without_a_format_takes_its_suffixes_or_that_of_stdout(run_dir: Path) -> None:
    main(["report", str(run_dir), "--output-format", "json", "--output", "plain", "--output", "./x:y"])
    assert json.loads(Path("plain").read_text()) == json.loads(Path("x:y").read_text())
    main(["report", str(run_dir), "--output", "plain"])
    assert Path("plain").read_text().startswith("ws1 · ")


@pytest.mark.parametrize(
    ("word", "message"),
    [
        ("nowhere/report.json", "nowhere/report.json cannot be written: no such directory, or no permission"),
        ("json:.", ". cannot be written: it is a directory"),
        ("xml:report", "--output xml:report: no format is called 'xml', but terminal, json"),
        ("/dev/full", "/dev/full cannot be written: No space left on device"),
    ],
)
def test_a_report_that_cannot_be_written_exits_2(run_dir: Path, capsys: Captured, word: str, message: str) -> None:
    assert main(["report", str(run_dir), "--output", word]) == 2
    assert capsys.readouterr().err.splitlines()[-1] == f"accel-doctor: {message}"


def test_verbose_and_quiet_exclude_each_other(run_dir: Path, capsys: Captured) -> None:
    assert main(["report", str(run_dir), "-v", "-q"]) == 2
    assert "exclude each other" in capsys.readouterr().err


def test_what_is_no_evidence_exits_2_in_one_line(tmp_path: Path, capsys: Captured) -> None:
    assert main(["report", str(tmp_path)]) == 2
    captured = capsys.readouterr()
    assert captured.err.startswith(f"accel-doctor: no evidence.json in {tmp_path}: ")
    assert len(captured.err.splitlines()) == 1


def test_a_threshold_of_the_settings_is_in_force(run_dir: Path, capsys: Captured) -> None:
    assert main(["report", str(run_dir), "--select", "SPD001", "--strict"]) == 0
    capsys.readouterr()
    Path("accel-doctor.toml").write_text("thresholds.SPD001.cpu_warn_ratio = 0.01")
    assert main(["report", str(run_dir), "--select", "SPD001", "--strict"]) == 1
    text = capsys.readouterr().out
    assert "asked   SPD001.cpu_warn_ratio 0.01 (settings)" in text
    assert "FAILED  1 warning, which --strict fails" in text
