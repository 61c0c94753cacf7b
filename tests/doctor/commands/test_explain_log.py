"""The verb, from a file or standard input to a report and an exit code."""

import io
import json
import subprocess
import sys
from pathlib import Path

import pytest

from accel_doctor.main import main
from log_texts import QUIET, SICK, UNCLEAR

Captured = pytest.CaptureFixture[str]
LOGS = Path(__file__).parents[2] / "logs"


def test_a_cause_fails_the_exam_and_says_who_where_and_what_next(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    monkeypatch.chdir(LOGS)
    assert main(["explain-log", "raise.log"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == "raise.log · 70 lines, 3.72 KiB · ranks 0-1 · torchelastic reports 2 deaths"
    assert lines[2].startswith("FAIL HNG003 crashed-rank    rank 1 failed by its own error at /home/me/train.py:36")
    assert "  where  raise.log:13" in lines
    assert any(line.startswith("  also   rank 0 failed later, as a consequence (line 29)") for line in lines)
    assert lines[-2].startswith("FAILED  1 fault, 1 cause, 1 check")
    assert lines[-1] == "next: accel-doctor explain HNG003"


@pytest.mark.parametrize("text", [QUIET["errors that were caught"], UNCLEAR["survivors alone"], ""])
def test_without_a_cause_the_exam_is_incomplete_and_says_why(text: str, tmp_path: Path, capsys: Captured) -> None:
    log = tmp_path / "run.log"
    log.write_text(text)
    assert main(["explain-log", str(log), "--output-format", "json"]) == 2
    report = json.loads(capsys.readouterr().out)
    assert report["verdict"] == "incomplete"
    assert all(check["outcome"] == "skipped" and check["reason"] for check in report["checks"])
    assert main(["explain-log", str(log)]) == 2
    out = capsys.readouterr().out
    assert "nothing was judged" not in out
    assert "INCOMPLETE" in out


def test_what_was_seen_stands_in_an_unclear_report(tmp_path: Path, capsys: Captured) -> None:
    log = tmp_path / "run.log"
    log.write_text(UNCLEAR["survivors alone"])
    main(["explain-log", str(log)])
    out = " ".join(capsys.readouterr().out.split())
    assert "unclear: rank 0 only lost a peer (line 12: RuntimeError" in out
    assert "ends " in out


def test_json_has_the_rank_the_place_and_the_echoes(tmp_path: Path) -> None:
    report = tmp_path / "report.json"
    assert main(["explain-log", str(LOGS / "kill.log"), "--output", f"json:{report}"]) == 1
    checks = {c["id"]: c for c in json.loads(report.read_text())["checks"]}
    (finding,) = checks["HNG004"]["findings"]
    assert finding["ranks"] == [1]
    assert finding["values"]["signal"] == 9
    assert finding["location"]["line"] == 61
    assert [c["id"] for c in checks.values() if c["outcome"] == "failed"] == ["HNG004"]


def test_standard_input_is_read(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(SICK["disk full"].text.encode())))
    assert main(["explain-log", "-", "-q"]) == 1
    assert "CKP008" in capsys.readouterr().out


def test_a_log_that_cannot_be_read_is_one_line(capsys: Captured, tmp_path: Path) -> None:
    assert main(["explain-log", str(tmp_path / "absent.log")]) == 2
    assert capsys.readouterr().err == f"accel-doctor: {tmp_path}/absent.log cannot be read: No such file or directory\n"
    assert main(["explain-log", str(tmp_path)]) == 2
    assert " has no logs: no file that ends with .err, " in capsys.readouterr().err
    assert main(["explain-log", "-", str(LOGS / "kill.log")]) == 2
    assert "is read alone" in capsys.readouterr().err
    assert main(["explain-log"]) == 2


def test_a_directory_is_read_as_the_log_of_one_run(capsys: Captured, tmp_path: Path) -> None:
    for rank, text in enumerate((UNCLEAR["survivors alone"].replace("[rank0]: ", ""), SICK["disk full"].text[:700])):
        folder = tmp_path / "none_x1" / "attempt_0" / str(rank)
        folder.mkdir(parents=True)
        (folder / "stderr.log").write_text(text.replace("[rank0]: ", ""))
        (folder / "core.bin").write_bytes(b"no log")
    report = tmp_path / "report.json"
    assert main(["explain-log", str(tmp_path), "--output", f"json:{report}"]) == 1
    checks = {c["id"]: c for c in json.loads(report.read_text())["checks"]}
    (finding,) = checks["CKP008"]["findings"]
    assert finding["ranks"] == [1]
    assert finding["location"] == {"path": str(folder / "stderr.log"), "line": 8, "column": None}
    assert f"{tmp_path} · 2 files, " in capsys.readouterr().err


def test_options_of_judging_hold_here_too(capsys: Captured) -> None:
    log = str(LOGS / "kill.log")
    assert main(["explain-log", log, "--exit-zero"]) == 0
    assert main(["explain-log", log, "--ignore", "HNG004"]) == 2
    assert main(["explain-log", log, "--require", "GPU005"]) == 1
    capsys.readouterr()


def test_torch_is_not_imported() -> None:
    program = (
        "import sys; from accel_doctor.main import main; "
        f"code = main(['explain-log', {str(LOGS / 'kill.log')!r}, '-q']); "
        "sys.exit(9 if {'torch', 'accelerate', 'pynvml', 'psutil'} & sys.modules.keys() else code)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60, check=False)
    assert done.returncode == 1, done.stderr
