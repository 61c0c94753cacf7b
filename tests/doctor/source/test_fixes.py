# ruff: noqa: E501 - a script a line
import pytest

from accel_doctor.source.facts import syntax_tree
from accel_doctor.source.fixes import Edit, accelerator_at, apply, repair
from accel_doctor.testing_source import said
from source_scripts import script


def found(text: str) -> list[tuple[str, int, int]]:
    return [(i, f.location.line or 0, f.location.column or 0) for (i, _), f in said(text).items() if f.location]


REPAIRED = {
    "print": ("@SETUP\n    print('a',\n          'b')\n", "    accelerator.print('a',\n          'b')\n"),
    "bar": (
        "@SETUP\n    for x in tqdm(loader):\n        pass\n",
        "tqdm(loader, disable=not accelerator.is_local_main_process):",
    ),
    "inverted bar": (
        "@SETUP\n    for x in tqdm(loader, disable=accelerator.is_main_process):\n        pass\n",
        "disable=not accelerator.is_main_process):",
    ),
    "backward": (
        "@SETUP\n    for x, y in loader:\n        (model(x) - y).mean().backward(retain_graph=True)\n        optimizer.step()\n",
        "        accelerator.backward((model(x) - y).mean(), retain_graph=True)\n",
    ),
    "gather": (
        "@SETUP\n    for x, y in val_loader:\n        with torch.no_grad():\n            out = accelerator.gather(model(x))\n",
        "out = accelerator.gather_for_metrics(model(x))",
    ),
    "device": ("@SETUP\n    teacher = nn.Linear(4, 1).to('cuda:0')\n", ".to(accelerator.device)"),
    "barrier": (
        "@SETUP\n    if accelerator.is_main_process:\n        torch.save([1], 'v')\n    v = torch.load('v', map_location='cpu')\n",
        "    accelerator.wait_for_everyone()\n    v = torch.load('v', map_location='cpu')\n",
    ),
    "wrapped": (
        "@SETUP\n    if accelerator.is_main_process:\n        torch.save(model.state_dict(), 'm')\n",
        "torch.save(accelerator.unwrap_model(model).state_dict(), 'm')",
    ),
}


@pytest.mark.parametrize("name", REPAIRED)
def test_a_repair_is_the_least_edit_and_leaves_nothing_to_say(name: str) -> None:
    body, wanted = REPAIRED[name]
    text = script(body)
    repaired = repair(text, found)
    assert wanted in repaired
    assert said(repaired) == {}
    assert repair(repaired, found) == repaired
    assert sum(a != b for a, b in zip(text.splitlines(), repaired.splitlines(), strict=False)) >= 1


def test_there_is_no_repair_where_no_accelerator_has_a_name() -> None:
    text = script("@SETUP\n    show()\n", "def show():\n    print('a')\n")
    assert repair(text, found) == text


def test_a_repair_that_says_something_new_is_not_made() -> None:
    text = script("@SETUP\n    print('a')\n")
    assert repair(text, lambda t: found(t) if t == text else [("HNG002", 1, 1)]) == text


@pytest.mark.parametrize(
    ("text", "line", "name"),
    [
        ("acc = Accelerator()\nprint()\n", 2, "acc"),
        ("print()\nacc = Accelerator()\n", 1, ""),
        ("def f(accelerator):\n    print()\n", 2, "accelerator"),
        (
            "class T:\n    def __init__(self):\n        self.a = Accelerator()\n    def f(self):\n        print()\n",
            5,
            "self.a",
        ),
        ("def f():\n    acc = Accelerator()\ndef g():\n    print()\n", 4, ""),
    ],
)
def test_the_accelerators_name_is_the_one_in_scope(text: str, line: int, name: str) -> None:
    assert accelerator_at(syntax_tree(text.encode()), line) == name


def test_columns_count_bytes() -> None:
    assert apply("é = 'é'; x\n", Edit(1, 11, 1, 12, "y")) == "é = 'é'; y\n"
