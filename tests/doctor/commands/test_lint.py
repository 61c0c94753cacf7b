import json
import subprocess
import sys
from pathlib import Path

import pytest

from accel_doctor.main import main

ROOT = Path(__file__).parent.parent.parent.parent
SICK = "import torch\nfrom accelerate import Accelerator\n\naccelerator = Accelerator()\nprint('a')\n"
CONFIG = "compute_environment: LOCAL_MACHINE\nnum_machines: 1\n"
HANGS = f"{SICK}if accelerator.is_main_process:\n    accelerator.wait_for_everyone()\n"


@pytest.fixture(autouse=True)
def _here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)


def report(*words: str) -> tuple[int, dict[str, list[tuple[str, int | None]]]]:
    code = main(["lint", *words, "--output", "json:report.json"])
    checks = json.loads(Path("report.json").read_text())["checks"]
    places = {c["id"]: [f["location"] for f in c["findings"] if f["location"]] for c in checks}
    found = {check: [(at["path"], at["line"]) for at in ats] for check, ats in places.items() if ats}
    return code, found


def test_a_warning_passes_and_an_error_fails() -> None:
    Path("warned.py").write_text(SICK)
    Path("failed.py").write_text(HANGS)
    assert report("warned.py") == (0, {"LOG001": [("warned.py", 5)]})
    assert report("warned.py", "--strict")[0] == 1
    assert report("failed.py") == (1, {"LOG001": [("failed.py", 5)], "HNG002": [("failed.py", 7)]})


def test_a_folder_is_read_with_its_notebooks_and_without_what_is_no_users() -> None:
    Path("a/.venv").mkdir(parents=True)
    Path("a/train.py").write_text(SICK)
    Path("a/.venv/x.py").write_text(SICK)
    cells = [{"cell_type": "code", "source": ["%matplotlib inline\n", "!ls\n", *SICK.splitlines(keepends=True)]}]
    Path("a/n.ipynb").write_text(json.dumps({"cells": cells}))
    assert report("a") == (0, {"LOG001": [("a/n.ipynb", 7), ("a/train.py", 5)]})


def test_stdin_is_read(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "in").write_text(SICK)
    with (tmp_path / "in").open() as stream:
        monkeypatch.setattr("sys.stdin", stream)
        assert report("-") == (0, {"LOG001": [("<stdin>", 5)]})


def test_an_import_of_a_neighbour_is_followed() -> None:
    Path("tools.py").write_text("def show(x):\n    print(x)\n\ndef meet(acc):\n    acc.wait_for_everyone()\n")
    Path("train.py").write_text(
        "from accelerate import Accelerator\nfrom tools import meet, show\naccelerator = Accelerator()\nshow(1)\n"
        "if accelerator.is_main_process:\n    meet(accelerator)\n"
    )
    assert report("train.py") == (1, {"LOG001": [("tools.py", 2)], "HNG002": [("tools.py", 5)]})


def test_diff_prints_a_patch_and_fix_makes_it(capsys: pytest.CaptureFixture[str]) -> None:
    Path("train.py").write_bytes(SICK.replace("\n", "\r\n").encode())
    assert main(["lint", "train.py", "--diff"]) == 0
    assert "+accelerator.print('a')" in capsys.readouterr().out
    assert b"accelerator.print" not in Path("train.py").read_bytes()
    assert main(["lint", "train.py", "--fix", "--strict"]) == 0
    assert Path("train.py").read_bytes() == SICK.replace("print", "accelerator.print").replace("\n", "\r\n").encode()


def test_a_line_is_explained(capsys: pytest.CaptureFixture[str]) -> None:
    Path("train.py").write_text(HANGS)
    assert main(["lint", "--explain-line", "train.py:7"]) == 0
    said = capsys.readouterr().out
    assert "accelerate.Accelerator.wait_for_everyone: reached by ranks 'main', is for 'all'" in said
    assert "`accelerator.is_main_process` (train.py:6)" in said


@pytest.mark.parametrize("words", [[], ["absent.py"], ["--explain-line", "train.py"]])
def test_wrong_usage_is_exit_2(words: list[str]) -> None:
    assert main(["lint", *words]) == 2


def test_nothing_of_the_users_is_run_and_torch_is_not_imported() -> None:
    Path("train.py").write_text(f"{SICK}open('touched', 'w').close()\nraise SystemExit(7)\n")
    code = "import sys; from accel_doctor.main import main; main(['lint', 'train.py']); print('torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.endswith("False\n")
    assert not Path("touched").exists()


def test_a_config_is_judged_as_the_launch_it_stands_for() -> None:
    Path("fsdp.yaml").write_text("distributed_type: FSDP\nnum_processes: 2\nfsdp_confg: {}\n")
    code, found = report("fsdp.yaml")
    assert code == 1
    assert found["LCH005"] == [("fsdp.yaml", 3)]


def test_a_lost_backslash_is_found_in_a_shell_script() -> None:
    Path("run.sh").write_text(
        "#!/bin/bash\naccelerate launch --multi_gpu --num_processes 2 \\\n  --mixed_precision no\n"
        "  --num_machines 1 train.py\n"
    )
    code, found = report("run.sh")
    assert (code, found) == (1, {"LCH005": [("run.sh", 4)]})


def test_a_whole_command_is_no_fault() -> None:
    Path("run.sh").write_text("torchrun --nproc_per_node 2 \\\n  train.py --lr 1\n# accelerate launch\n--x\n")
    assert report("run.sh") == (0, {})


def test_each_launch_file_of_a_folder_is_judged() -> None:
    Path("a/b").mkdir(parents=True)
    Path("a/one.yaml").write_text(f"{CONFIG}distributed_type: MULTI_GPU\nnum_processes: 2\nnum_proceses: 2\n")
    Path("a/b/two.yml").write_text(f"{CONFIG}distributed_type: FSDP\nnum_processes: 2\nfsdp_config:\n  fsdp_x: 1\n")
    Path("a/ds.json").write_text(
        '{"zero_optimization": {"stage": 2}, "train_batch_size": 9,\n'
        '"train_micro_batch_size_per_gpu": 2, "gradient_accumulation_steps": 4}\n'
    )
    Path("a/run.sh").write_text("accelerate launch --num_processes 2 \\\n --num_machines 1\n --x 1 train.py\n")
    code, found = report("a")
    assert code == 1
    assert set(found["LCH005"]) == {("a/one.yaml", 5), ("a/b/two.yml", 6), ("a/run.sh", 3)}
    assert found["SHD006"] == [("a/ds.json", 1)]
    assert found["SHD001"] == [("a/b/two.yml", None)]


def test_a_folder_of_other_files_is_silent_and_none_of_them_counts(capsys: pytest.CaptureFixture[str]) -> None:
    Path("train.py").write_text("import torch\n")
    Path("hydra.yaml").write_text("mixed_precision: fp16\nnum_processes: many\nfsdp_config: {x: 1}\n")
    Path("state.json").write_text('{"train_batch_size": 8, "log_history": []}')
    Path("broken.json").write_text('{"zero_optimization": ')
    Path("data.json").write_text("[" + "1," * 200_000 + "1]")
    Path("setup.sh").write_text("pip install accelerate\n")
    Path("run.sh").write_text("N=4\naccelerate launch --num_processes $N --flag_of_tomorrow $X train.py $@\n")
    Path("ds.sh").write_text("deepspeed --num_gpus 2 train.py\n")
    Path("far.yaml").write_text(
        f"{CONFIG}distributed_type: DEEPSPEED\nnum_processes: 2\n"
        "deepspeed_config:\n  deepspeed_config_file: elsewhere/ds.json\n"
    )
    assert main(["lint", ".", "--strict"]) == 0
    assert capsys.readouterr().out == "PASSED  0 errors, 0 warnings, 4 files\n"


def test_a_file_that_configures_nothing_is_one_clear_line_where_it_was_named(
    capsys: pytest.CaptureFixture[str],
) -> None:
    Path("a.json").write_text("{}")
    assert main(["lint", "a.json", "-q"]) == 2
    assert "a.json was not judged: it is neither a config of accelerate nor one of DeepSpeed" in capsys.readouterr().out


def test_a_deepspeed_file_for_an_unknown_world_is_held_to_what_is_certain() -> None:
    Path("ds.json").write_text(
        '{"zero_optimization": {"stage": 2}, "train_batch_size": "auto",\n'
        '"train_micro_batch_size_per_gpu": "auto", "optimizer": {"params": {"betas": "auto"}}}'
    )
    assert main(["lint", "ds.json", "--strict"]) == 0
    Path("ds.json").write_text(
        '{"train_batch_size": 8, "train_micro_batch_size_per_gpu": 2,\n"gradient_accumulation_steps": 4}'
    )
    assert main(["lint", "ds.json", "--strict"]) == 0
    Path("fp.json").write_text('{"zero_optimization": {}, "fp16": {"enabled": true},\n"bf16": {"enabled": true}}')
    assert report("fp.json") == (1, {"SHD007": [("fp.json", 2)]})


def test_more_processes_than_a_config_lists_devices_are_too_many_on_any_machine() -> None:
    Path("two.yaml").write_text(f"{CONFIG}distributed_type: MULTI_GPU\nnum_processes: 4\ngpu_ids: '0,1'\n")
    assert report("two.yaml") == (1, {"LCH004": [("two.yaml", 4)]})
    Path("two.yaml").write_text(f"{CONFIG}distributed_type: MULTI_GPU\nnum_processes: 2\ngpu_ids: '0,1'\n")
    assert report("two.yaml") == (0, {})


def test_a_file_named_by_a_command_is_found_from_a_folder_above_the_script() -> None:
    Path("a/scripts").mkdir(parents=True)
    Path("a/fsdp.yaml").write_text(f"{CONFIG}distributed_type: FSDP\nnum_processes: 2\nfsdp_config:\n  fsdp_x: 1\n")
    Path("a/scripts/run.sh").write_text("accelerate launch --config_file fsdp.yaml train.py  # note\n")
    assert report("a/scripts")[1]["SHD001"] == [("a/scripts/run.sh", 1)]


def test_a_contract_of_the_users_own_is_kept() -> None:
    Path("accel-doctor.toml").write_text('[contracts]\n"mylib.meet" = "all"\n"mylib.keep" = "one"\n')
    Path("train.py").write_text(
        "from accelerate import Accelerator\nfrom mylib import keep, meet\naccelerator = Accelerator()\nkeep('a')\n"
        "if accelerator.is_main_process:\n    meet()\n"
    )
    assert report("train.py") == (1, {"LOG004": [("train.py", 4)], "HNG002": [("train.py", 6)]})
    Path("accel-doctor.toml").write_text('[contracts]\n"mylib.meet" = "two"\n')
    assert main(["lint", "train.py"]) == 2


def test_a_finding_is_one_line_that_an_editor_can_follow(capsys: pytest.CaptureFixture[str]) -> None:
    Path("train.py").write_text(HANGS)
    assert main(["lint", "train.py"]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].startswith("train.py:5:1 LOG001 unguarded-print print() runs on every rank")
    assert [line for line in lines if line.startswith("train.py:7:5 HNG002 rank-dependent-collective ")]
    assert "(`accelerator.is_main_process` at line 6)" in " ".join(lines)
    assert lines[-1] == "FAILED  1 error, 1 warning, 1 file"
    assert main(["lint", "train.py", "-q"]) == 1
    assert len(capsys.readouterr().out.splitlines()) == 3


@pytest.mark.parametrize("pattern", ["examples/**", "examples/", "**/show.py", "show.py", "examples/*/show.py"])
def test_a_setting_silences_checks_in_the_files_of_a_pattern_and_nowhere_else(pattern: str) -> None:
    Path("accel-doctor.toml").write_text(f'[per-path-ignores]\n"{pattern}" = ["LOG"]\n')
    Path("examples/a").mkdir(parents=True)
    Path("examples/a/show.py").write_text(HANGS)
    Path("train.py").write_text(SICK)
    assert report(".") == (1, {"LOG001": [("train.py", 5)], "HNG002": [("examples/a/show.py", 7)]})


def test_patterns_are_relative_to_the_settings_file_and_hold_for_repairs(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    Path(".git").mkdir()
    Path("accel-doctor.toml").write_text('[per-path-ignores]\n"examples/*.py" = ["unguarded-print"]\n')
    Path("examples").mkdir()
    Path("examples/show.py").write_text(SICK)
    monkeypatch.chdir(tmp_path / "examples")
    assert report("show.py") == (0, {})
    assert main(["lint", "show.py", "--fix"]) == 0
    assert Path("show.py").read_text() == SICK
    (tmp_path / "accel-doctor.toml").write_text('[per-path-ignores]\n"examples/*.py" = ["LOGG"]\n')
    assert main(["lint", "show.py"]) == 2


def test_what_a_config_leaves_out_may_come_from_its_command() -> None:
    Path("many.yaml").write_text("distributed_type: MULTI_GPU\nnum_machines: 2\n")
    Path("zero.yaml").write_text("distributed_type: DEEPSPEED\nnum_processes: 2\ndeepspeed_config: {zero_stage: 2}\n")
    assert report("many.yaml", "zero.yaml") == (0, {})
    Path("typo.yaml").write_text("distributed_type: MULTI_GPU\nnum_machine: 2\n")
    assert report("typo.yaml") == (1, {"LCH005": [("typo.yaml", 2)]})


def test_modules_that_import_each_other_are_read() -> None:
    Path("pkg").mkdir()
    Path("pkg/__init__.py").write_text("from pkg.a import show\nfrom pkg.b import *\n")
    Path("pkg/a.py").write_text("from pkg.b import show\n")
    Path("pkg/b.py").write_text("from pkg.a import show\nfrom pkg.c import meet\n")
    Path("pkg/c.py").write_text("from pkg import show\n\ndef meet(acc):\n    acc.wait_for_everyone()\n")
    Path("train.py").write_text(
        "from accelerate import Accelerator\nfrom pkg import meet, show\naccelerator = Accelerator()\nshow(1)\n"
        "if accelerator.is_main_process:\n    meet(accelerator)\n"
    )
    assert report("train.py") == (1, {"HNG002": [("pkg/c.py", 4)]})


def test_the_sample_shows_what_its_readme_says() -> None:
    folder = ROOT / "samples" / "lint" / "lonely_collective"
    assert report(str(folder / "sick.py")) == (1, {"HNG002": [(str(folder / "sick.py"), 12)]})
    assert report(str(folder / "healthy.py")) == (0, {})
    assert "`accel-doctor lint samples/lint/lonely_collective/sick.py`" in (folder.parent / "README.md").read_text()


def test_what_an_imported_file_does_as_a_program_of_its_own_is_not_run() -> None:
    Path("train.py").write_text(
        "import torch.distributed as dist\nfrom net import f\n\ndist.init_process_group('nccl')\nf()\n"
    )
    Path("net.py").write_text("def f():\n    return 1\n\n\nif __name__ == '__main__':\n    print(f())\n")
    assert report("train.py") == (0, {})
    Path("net.py").write_text("def f():\n    return 1\n\n\nprint(f())\n")
    assert report("train.py") == (0, {"LOG001": [("net.py", 5)]})
