import subprocess
import sys
from pathlib import Path

import click
import pytest

from accel_doctor import __version__
from accel_doctor.commands import explain
from accel_doctor.errors import DoctorError
from accel_doctor.main import VERBS, main, verbs
from report_samples import EVIDENCE

Captured = pytest.CaptureFixture[str]


def test_help_names_every_verb_and_the_exit_codes(capsys: Captured) -> None:
    assert main(["--help"]) == 0
    text = capsys.readouterr().out
    assert all(f"  {verb} " in text for verb in VERBS)
    assert "Exit codes: 0 passed, 1 failed, 2 incomplete" in text


def test_every_verb_is_a_module_with_a_command() -> None:
    for verb in VERBS:
        command = verbs.get_command(click.Context(verbs), verb)
        assert isinstance(command, click.Command)


def test_the_version_is_that_of_the_package(capsys: Captured) -> None:
    assert main(["--version"]) == 0
    assert capsys.readouterr().out == f"accel-doctor {__version__}\n"


@pytest.mark.parametrize(
    ("words", "passed_on"),
    [
        ([], ["preflight"]),
        (["--batch-size", "4"], ["preflight", "--batch-size", "4"]),
        (["-v"], ["preflight", "-v"]),
        (["--", "accelerate", "launch", "train.py"], ["preflight", "--", "accelerate", "launch", "train.py"]),
        (["preflight", "--strict"], ["preflight", "--strict"]),
        (["list", "--help"], ["list", "--help"]),
    ],
)
def test_without_a_verb_it_is_preflight(words: list[str], passed_on: list[str]) -> None:
    context = verbs.make_context("accel-doctor", words)
    assert [*context._protected_args, *context.args] == passed_on


def test_a_word_that_is_no_verb_is_refused_with_the_way_to_examine_a_script(capsys: Captured) -> None:
    assert main(["train.py"]) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert captured.err.startswith("accel-doctor: no verb is called 'train.py', but preflight, ")
    assert "accel-doctor -- accelerate launch train.py" in captured.err
    assert len(captured.err.splitlines()) == 1


def test_a_wrong_option_exits_2_in_one_line(capsys: Captured) -> None:
    assert main(["report", "--sort", "x"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("accel-doctor: No such option")
    assert error.endswith("(see accel-doctor report --help)\n")
    assert main(["report"]) == 2
    assert main(["report", str(EVIDENCE), "--output-format", "xml"]) == 2


def failing(error: BaseException) -> click.Command:
    @click.command()
    @click.argument("words", nargs=-1)
    @click.option("-v", is_flag=True)
    def command(**_: object) -> int:
        raise error

    return command


def test_an_error_of_the_doctors_is_its_message(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explain, "command", failing(DoctorError("the moon is \x1b[31mred")))
    assert main(["explain"]) == 2
    assert capsys.readouterr().err == "accel-doctor: the moon is \\x1b[31mred\n"


def test_an_unforeseen_error_is_one_line_that_says_how_to_report_it(
    capsys: Captured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("ACCEL_DOCTOR_DEBUG", raising=False)
    monkeypatch.setattr(explain, "command", failing(ZeroDivisionError("by zero")))
    assert main(["explain"]) == 2
    line = capsys.readouterr().err
    assert line == (
        "accel-doctor: this is a fault of the doctor's own: ZeroDivisionError: by zero; "
        "please report it with what ACCEL_DOCTOR_DEBUG=1 adds\n"
    )
    assert main(["explain", "--", "-v"]) == 2
    assert capsys.readouterr().err == line
    assert main(["explain", "-v"]) == 2
    assert "Traceback" in capsys.readouterr().err
    monkeypatch.setenv("ACCEL_DOCTOR_DEBUG", "1")
    assert main(["explain"]) == 2
    assert capsys.readouterr().err.endswith("ZeroDivisionError: by zero\n")


def test_ctrl_c_exits_2(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(explain, "command", failing(KeyboardInterrupt()))
    assert main(["explain"]) == 2
    assert capsys.readouterr().err.strip() == "accel-doctor: interrupted"


def run(*words: str, **options: object) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # type: ignore[call-overload, no-any-return]
        [sys.executable, "-m", "accel_doctor", *words], text=True, timeout=60, check=False, **options
    )


def test_as_a_program_it_exits_with_the_verdict_and_prints_ascii_where_utf8_is_not_spoken() -> None:
    environment = {"PATH": "/usr/bin:/bin", "PYTHONIOENCODING": "ascii", "COLUMNS": "90"}
    done = run("report", str(EVIDENCE), capture_output=True, env=environment)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.isascii()
    assert done.stdout.startswith("ws1 - no GPU - torch 2.13.0+cpu - accelerate 1.15.0\n")


def test_a_working_directory_that_is_gone_is_one_line(tmp_path: Path) -> None:
    gone = f"mkdir x; cd x; rmdir ../x; {sys.executable} -m accel_doctor --batch-size 2"
    done = subprocess.run(["bash", "-c", gone], cwd=tmp_path, timeout=60, check=False, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stderr == "accel-doctor: the working directory is gone; change into one that exists\n"


def test_a_full_disk_under_stdout_exits_2_and_a_closed_one_is_quiet() -> None:
    with Path("/dev/full").open("w") as full:
        done = run("report", str(EVIDENCE), stdout=full, stderr=subprocess.PIPE)
    assert (done.returncode, done.stderr) == (2, "accel-doctor: <stdout> cannot be written: No space left on device\n")
    closed = f"{sys.executable} -m accel_doctor report {EVIDENCE} >&- 2>&-"
    assert subprocess.run(["bash", "-c", closed], timeout=60, check=False).returncode == 0
