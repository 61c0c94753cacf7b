import json

import pytest

from accel_doctor.source.facts import suppressions
from accel_doctor.source.launch_files import commands_of, is_config
from accel_doctor.source.notebooks import code_of


def notebook(*cells: str) -> bytes:
    return json.dumps({"cells": [{"cell_type": "code", "source": c} for c in cells]}).encode()


def test_magics_become_empty_and_lines_keep_their_numbers() -> None:
    code, bad = code_of(notebook("%load_ext x\n!pip install \\\n  y\nx = 1", "%%bash\nls\n", "z = 2"))
    assert code.decode().split("\n") == ["pass", "pass", "", "x = 1", "", "", "", "z = 2"]
    assert bad == 0


def test_a_cell_that_is_no_python_is_left_out_and_counted() -> None:
    code, bad = code_of(notebook("this is no prose!", "x = 1"))
    assert code.decode().split("\n") == ["", "x = 1"]
    assert bad == 1


@pytest.mark.parametrize("data", [b"", b"[]", b"{}", b'{"cells": 3}', b"\xff"])
def test_what_is_no_notebook_says_so(data: bytes) -> None:
    with pytest.raises(SyntaxError, match="no notebook"):
        code_of(data)


def test_launch_commands_are_joined_and_a_cut_is_seen() -> None:
    whole, cut = commands_of(
        "export A=1\nCUDA_VISIBLE_DEVICES=0 accelerate launch --a 1 \\\n  train.py 'x y' # note\n"
        "torchrun a.py\n  --lr 1\n"
    )
    assert whole == (2, ("accelerate", "launch", "--a", "1", "train.py", "x y"), None)
    assert cut == (4, ("torchrun", "a.py"), 5)


def test_a_comment_is_no_command() -> None:
    assert commands_of("# accelerate launch x.py\n--y\n") == []


def test_configs_are_known_by_their_keys() -> None:
    assert is_config("a.yaml", b"num_processes: 2\n")
    assert not is_config("a.yaml", b"model: x\n")
    assert not is_config("a.json", b"num_processes: 2\n")
    assert is_config("a.yaml", b"mixed_precision: bf16\nnum_proceses: 2\n")


@pytest.mark.parametrize(
    "own", [b"defaults:\n  - model: gpt\n", b"hydra: {}\n", b"opt:\n  _target_: a.B\n", b"model: x\n"]
)
def test_a_scripts_own_settings_are_no_config_though_keys_are_alike(own: bytes) -> None:
    assert not is_config("conf/train.yaml", b"mixed_precision: bf16\nnum_processes: 2\n" + own)


def test_suppressions_name_ids_and_reasons_and_live_in_comments_only() -> None:
    found = suppressions(
        "x = 1  # accel-doctor: ignore[LOG001, CKP003] a reason\n"
        "y = '# accel-doctor: ignore'\nz  # accel-doctor: ignore\n"
    )
    assert [(s.line, s.ids, s.reason) for s in found] == [(1, ("LOG001", "CKP003"), "a reason"), (3, (), "")]


@pytest.mark.parametrize(
    "text",
    [
        'echo "accelerate launch --nope x.py"\n',
        "cat <<EOF\nusage: accelerate launch x.py\n  --lr the rate\nEOF\n",
        "cat > readme.md <<'END'\ntorchrun x.py\n  --lr\nEND\n",
    ],
)
def test_what_is_only_shown_is_no_command(text: str) -> None:
    assert commands_of(text) == []


def test_a_text_for_a_shell_is_commands() -> None:
    (command,) = commands_of("sbatch <<EOF\n#!/bin/bash\nsrun torchrun x.py\nEOF\n")
    assert command == (3, ("torchrun", "x.py"), None)


def test_a_command_ends_where_the_shell_ends_it() -> None:
    found = commands_of(
        "torchrun a.py; echo done\n(cd x && torchrun b.py)\nbash -c 'torchrun c.py --n $N' | tee log\n"
        'torchrun d.py > log 2>&1 &\nCMD="torchrun e.py"\ntorchrun f.py --n $((A * 2))\n'
    )
    scripts = [c.words[1:] for c in found]
    assert scripts == [
        ("a.py",), ("b.py",), ("c.py", "--n", "$N"), ("d.py",), ("e.py",), ("f.py", "--n", "$((A", "*", "2))"),
    ]  # fmt: skip


def test_a_blank_after_the_backslash_cuts_a_command_short() -> None:
    (cut,) = commands_of("torchrun --nproc_per_node 2 \\ \n  train.py\n")
    (whole,) = commands_of("torchrun --nproc_per_node 2 \\\n  train.py\n\n")
    assert (cut.lost, whole.lost) == (2, None)
