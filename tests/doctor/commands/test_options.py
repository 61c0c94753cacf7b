from pathlib import Path

import click
import msgspec
import pytest

from accel_doctor.check import Check, Invariant, Threshold
from accel_doctor.commands.options import (
    ExamCommand,
    ExamContext,
    known_thresholds,
    no_such_check,
    pass_exam,
    resolve_ids,
    sources,
)
from accel_doctor.errors import UsageError
from accel_doctor.main import verbs
from accel_doctor.reports import FORMATS
from accel_doctor.settings import Options, Settings


def check(check_id: str, name: str) -> Check:
    limit = Threshold(f"{check_id}.slow_pct", 5, "")
    return Check(check_id, name, Invariant.FITS, "", "", "", (), thresholds=(limit,))


CHECKS = {
    c.id: c for c in (check("GPU001", "idle-gpu"), check("GPU002", "uneven-utilization"), check("NET001", "slow"))
}


def test_ids_prefixes_and_names_in_any_case_are_found() -> None:
    assert resolve_ids(["gpu", "NET001, idle-gpu"], CHECKS, "") == ("GPU", "NET001", "GPU001")


@pytest.mark.parametrize("word", ["", "GPU9", "GPU001,", "gpu0011", "idle"])
def test_a_word_that_names_no_check_is_refused(word: str) -> None:
    with pytest.raises(UsageError, match=r"^flag --select: no check is called "):
        resolve_ids([word], CHECKS, "flag --select")


def test_the_nearest_checks_are_named() -> None:
    assert no_such_check("idle-gpus", CHECKS) == "no check is called 'idle-gpus'; did you mean GPU001 idle-gpu?"
    assert "GPU001 idle-gpu or GPU002 uneven-utilization" in no_such_check("GPU01", CHECKS)
    assert no_such_check("zebra", CHECKS) == "no check is called 'zebra'; accel-doctor list shows all"


def test_an_unknown_threshold_names_the_nearest() -> None:
    wrong = Settings(Path("p.toml"), {}, {"GPU001.slow": 3.0})
    with pytest.raises(
        UsageError, match=r"^p\.toml: no check has the threshold 'GPU001\.slow'; the nearest is GPU001\.slow_pct$"
    ):
        known_thresholds(wrong, CHECKS.values())
    right = Settings(Path("p.toml"), {}, {"GPU001.slow_pct": 3.0})
    assert known_thresholds(right, CHECKS.values()) == {"GPU001.slow_pct": 3.0}


@click.command(cls=ExamCommand)
@click.option("-b", "--batch-size", type=int)
@click.option("--deadline", type=float, default=120.0)
@click.option("--strict", is_flag=True)
@pass_exam
def example(ctx: ExamContext, /, **values: object) -> int:
    click.echo(repr((values, sources(ctx))))
    return 7


def test_a_flag_wins_over_the_settings_and_each_value_has_its_source(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("accel-doctor.toml").write_text("batch-size = 3\nstrict = true\nmodel = 'not an option here'")
    assert example.main(["-b", "4"], standalone_mode=False) == 7
    values = {"batch_size": 4, "deadline": 120.0, "strict": True}
    origin = {"batch_size": "flag --batch-size", "strict": "accel-doctor.toml"}
    assert capsys.readouterr().out == f"{(values, origin)!r}\n"


def test_settings_are_not_read_for_help_nor_when_every_option_is_given(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("accel-doctor.toml").write_text("x = [")
    assert example.main(["--help"], standalone_mode=False) == 0
    with pytest.raises(UsageError, match="Invalid value"):
        example.main([], standalone_mode=False)


def test_every_option_of_an_exam_can_be_set_and_nothing_else() -> None:
    settable = {field.name for field in msgspec.structs.fields(Options)} - {"thresholds"}
    commands = [verbs.get_command(click.Context(verbs), verb) for verb in ("preflight", "report")]
    options = {p.name for c in commands if c for p in c.params if isinstance(p, click.Option)}
    assert options <= settable


def test_the_settings_know_every_format() -> None:
    for name in FORMATS:
        assert msgspec.convert({"output-format": name}, Options).output_format == name
