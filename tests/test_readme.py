"""What the README gives to type is taken."""

import re
import shlex
from pathlib import Path

import pytest

from accel_doctor.catalogue import load_checks
from accel_doctor.commands.options import judging, known_thresholds
from accel_doctor.main import verbs
from accel_doctor.settings import load_settings

TOP = Path(__file__).parent.parent
README = (TOP / "README.md").read_text()
LINES = sorted(set(re.findall(r"^(?:\$ )?(accel-doctor\b[^#\n]*)", README, re.MULTILINE)))


def test_the_settings(tmp_path: Path) -> None:
    options, silenced = re.findall(r"```toml\n(.*?)```", README, re.DOTALL)
    (tmp_path / "pyproject.toml").write_text(f"{options}\n{silenced}")
    settings = load_settings(tmp_path)
    assert set(known_thresholds(settings, load_checks())) == {"SPD001.fail_ratio"}
    assert settings.contracts == {"mylib.save": "one"}
    assert settings.per_path_ignores == {"tools/**": ["LOG001"]}


@pytest.mark.parametrize("line", LINES)
def test_a_line(line: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(TOP)
    with verbs.make_context("accel-doctor", shlex.split(line)[1:]) as group:
        name, command, words = verbs.resolve_command(group, [*group._protected_args, *group.args])
        assert command is not None
        with command.make_context(name, words, parent=group) as context:
            if "require" in context.params:
                assert judging(context, load_checks())  # type: ignore[arg-type]
