"""Sources that nobody would write: the lint ends, and says something or nothing, but does not break."""

import sys

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from accel_doctor.catalogue import load_checks
from accel_doctor.diagnose import Outcome, diagnose
from accel_doctor.evidence import Asked
from accel_doctor.exams.lint import examine
from doctor.source.test_faults import FAULTS
from doctor.source.test_styles import STYLES
from doctor.source.test_traps import TRAPS

SCRIPTS = (*FAULTS.values(), *TRAPS.values(), *STYLES.values())
LINES = [line for text in SCRIPTS for line in text.splitlines()]
CHECKS = load_checks()


def judged(data: bytes) -> None:
    diagnosis = diagnose(examine(["-"], data, Asked()), CHECKS)
    assert not [r for r in diagnosis.results if r.outcome is Outcome.BROKEN]


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.data())
def test_mutated_scripts(data: st.DataObject) -> None:
    lines = data.draw(st.sampled_from(SCRIPTS)).splitlines()
    for _ in range(data.draw(st.integers(1, 6))):
        at = data.draw(st.integers(0, len(lines)))
        lines[at : at + data.draw(st.integers(0, 2))] = data.draw(st.lists(st.sampled_from(LINES), max_size=3))
    judged("\n".join(lines).encode())


@pytest.mark.slow
@pytest.mark.timeout(1800)
@settings(max_examples=10_000, deadline=None, suppress_health_check=list(HealthCheck))
@given(st.lists(st.sampled_from(LINES), max_size=30), st.binary(max_size=40), st.integers(0, 400))
def test_generated_scripts(lines: list[str], noise: bytes, at: int) -> None:
    text = "import torch\n" + "\n".join(line.strip() for line in lines)
    data = text.encode()
    judged(data[:at] + noise + data[at:])


def test_deep_and_long_files_end() -> None:
    deep = sys.getrecursionlimit()
    for text in (
        f"import torch\nx = {'+'.join(['a'] * deep)}\n",
        "import torch\n" + "".join(f"{' ' * i}if a{i}:\n" for i in range(90)) + f"{' ' * 90}pass\n",
        "from accelerate import Accelerator\naccelerator = Accelerator()\n"
        + "".join(
            f"def f{i}(x):\n    print(x)\n    return f{(i * 7 + 1) % 90}(x) or f{(i * 3 + 2) % 90}(x)\n"
            for i in range(90)
        )
        + "f0(1)\n",
        "from accelerate import Accelerator\nacc = Accelerator()\n"
        + "".join(f"if c{i % 50}:\n    x{i} = foo(x{i - 1})\n" for i in range(3000)),
    ):
        judged(text.encode())
