import click
import pytest

from accel_doctor.commands.preflight import command
from accel_doctor.main import main

NUMBERS = [p for p in command.params if isinstance(p.type, (click.IntRange, click.FloatRange))]


@pytest.mark.parametrize("word", ["nan", "inf", "-inf", "1e400", "1" + "0" * 30])
@pytest.mark.parametrize("option", NUMBERS, ids=lambda p: str(p.name))
def test_a_number_that_evidence_cannot_carry_is_refused(option: click.Parameter, word: str) -> None:
    with pytest.raises(click.BadParameter):
        option.type.convert(word, option, None)


def test_a_model_file_that_is_not_there_is_refused_before_anything_starts(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--model", "nosuch.py:build"]) == 2
    refusal = "Invalid value for '--model': there is no file nosuch.py."
    assert capsys.readouterr().err == f"accel-doctor: {refusal} (see accel-doctor preflight --help)\n"


def test_it_is_refused_in_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["--checkpoint-size", "nan"]) == 2
    refusal = "Invalid value for '--checkpoint-size': nan is not a number."
    assert capsys.readouterr().err == f"accel-doctor: {refusal} (see accel-doctor preflight --help)\n"
