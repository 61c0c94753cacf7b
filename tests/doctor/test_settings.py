import os
from pathlib import Path

import pytest

from accel_doctor.errors import UsageError
from accel_doctor.settings import Settings, load_settings


def written(directory: Path, text: str, name: str = "accel-doctor.toml") -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    path = directory / name
    path.write_text(text)
    return path


def test_without_a_file_nothing_is_set(tmp_path: Path) -> None:
    assert load_settings(tmp_path) == Settings(path=None, values={}, thresholds={})


def test_every_kind_of_value_is_read_from_pyproject(tmp_path: Path) -> None:
    path = written(
        tmp_path,
        """
        [tool.other]
        batch-size = "theirs"
        [tool.accel-doctor]
        batch-size = 16
        min-bus-bandwidth = 12
        ignore = ["NET", "GPU001"]
        strict = true
        output-format = "json"
        [tool.accel-doctor.thresholds]
        NET002.warn_below_pct = 70
        "SPD001.slower_pct" = 12.5
        """,
        "pyproject.toml",
    )
    settings = load_settings(tmp_path)
    assert settings.path == path
    assert settings.source == "pyproject.toml"
    assert settings.values == {
        "batch_size": 16,
        "min_bus_bandwidth": 12.0,
        "ignore": ["NET", "GPU001"],
        "strict": True,
        "output_format": "json",
    }
    assert settings.thresholds == {"NET002.warn_below_pct": 70.0, "SPD001.slower_pct": 12.5}


def test_the_own_file_wins_over_pyproject_beside_it(tmp_path: Path) -> None:
    written(tmp_path, "[tool.accel-doctor]\nbatch-size = 1\ndeadline = 5", "pyproject.toml")
    written(tmp_path, "batch-size = 2")
    assert load_settings(tmp_path).values == {"batch_size": 2}


def test_the_nearest_directory_of_the_repository_that_has_settings_wins(tmp_path: Path) -> None:
    repository = tmp_path / "repository"
    (repository / ".git").mkdir(parents=True)
    written(repository, "batch-size = 2")
    written(repository / "a", "[tool.other]\nx = 1", "pyproject.toml")
    written(repository / "a" / "b", "batch-size = 3")
    assert load_settings(repository / "a").values == {"batch_size": 2}
    (repository / "a" / "b" / "c").mkdir()
    assert load_settings(repository / "a" / "b" / "c").values == {"batch_size": 3}


def test_settings_above_the_repository_are_not_read(tmp_path: Path) -> None:
    written(tmp_path, "batch-size = 2")
    (tmp_path / "repository" / ".git").mkdir(parents=True)
    assert load_settings(tmp_path / "repository") == Settings()


def test_outside_a_repository_only_the_working_directory_is_read(tmp_path: Path) -> None:
    if any((parent / ".git").exists() for parent in tmp_path.parents):
        pytest.skip("the temporary folder lies in a repository")
    written(tmp_path, "batch-size = 2")
    (tmp_path / "below").mkdir()
    assert load_settings(tmp_path / "below") == Settings()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("batch-sise = 3", "no setting is called 'batch-sise'; the nearest is 'batch-size'"),
        ("batch_size = 3", "no setting is called 'batch_size'; the nearest is 'batch-size'"),
        ("zzz = 3", "no setting is called 'zzz'"),
        ('batch-size = "x"', "batch-size: expected `int`, got `str`"),
        ("batch-size = true", "batch-size: expected `int`, got `bool`"),
        ("batch-size = 0", "batch-size: expected `int` >= 1"),
        ("num-workers = -1", "num-workers: expected `int` >= 0"),
        ("deadline = inf", "deadline: expected `float` <= 1000000000000.0"),
        ("min-bus-bandwidth = nan", "min-bus-bandwidth: expected `float` > 0.0"),
        ('per-path-ignores."a/**" = "GPU"', "per-path-ignores.a/**: expected a list, got `str`"),
        ('thresholds."NET002.x" = "a"', "thresholds.NET002.x: expected `float | object`, got `str`"),
        ('contracts."my.save" = "two"', "contracts.my.save: invalid enum value 'two'"),
        ('select = "GPU"', "select: expected a list, got `str`"),
        ("select = [1]", "select[0]: expected `str`, got `int`"),
        ('output-format = "xml"', "output-format: invalid enum value 'xml'"),
        ("thresholds = 3", "thresholds: expected a table, got `int`"),
        ('thresholds.NET002.x = "a"', "thresholds.NET002.x: expected `float`, got `str`"),
        ("thresholds.NET002.x = nan", "thresholds.NET002.x: expected `float` >= -1000000000000.0"),
        ("x = [", "Invalid value (at end of document)"),
    ],
)
def test_a_wrong_key_or_value_names_file_and_key(tmp_path: Path, text: str, words: str) -> None:
    path = written(tmp_path, text)
    with pytest.raises(UsageError) as error:
        load_settings(tmp_path)
    assert str(error.value) == f"{path}: {words}"


def test_a_pyproject_that_is_no_toml_matters_only_where_it_speaks_of_the_doctor(tmp_path: Path) -> None:
    path = written(tmp_path, "x = [", "pyproject.toml")
    assert load_settings(tmp_path) == Settings()
    path.write_text("[tool.accel-doctor]\nx = [")
    with pytest.raises(UsageError, match=r"pyproject\.toml: Invalid value"):
        load_settings(tmp_path)


def test_settings_that_are_no_table_or_no_text_are_named(tmp_path: Path) -> None:
    written(tmp_path, 'tool.accel-doctor = "yes"', "pyproject.toml")
    with pytest.raises(UsageError, match=r"\[tool\.accel-doctor\]: expected a table, got `str`"):
        load_settings(tmp_path)
    (tmp_path / "accel-doctor.toml").write_bytes(b"model = '\xff'")
    with pytest.raises(UsageError, match=r"accel-doctor\.toml: .*can't decode byte"):
        load_settings(tmp_path)


def test_a_file_that_cannot_be_read_is_named(tmp_path: Path) -> None:
    (tmp_path / "accel-doctor.toml").symlink_to("accel-doctor.toml")
    with pytest.raises(UsageError, match=rf"accel-doctor\.toml cannot be read: {os.strerror(40)}"):
        load_settings(tmp_path)
