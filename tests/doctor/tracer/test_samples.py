"""The sample scripts, sick and healthy, on two forked ranks; and by the very line that is given, in the slow tests."""

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from accel_doctor.evidence import Asked
from accel_doctor.evidence.trace_file import read_traced_ranks
from accel_doctor.testing_trace import healthy_user_run
from ranks import RunRanks
from traced_faults import faults

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

ROOT = Path(__file__).parent.parent.parent.parent
SAMPLES = sorted(p.parent for p in (ROOT / "samples" / "scripts").glob("*/sample.toml"))
LAUNCHED_ONLY = "idle_process"


def sample(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "sample.toml").read_text())


@pytest.mark.ranks
@pytest.mark.parametrize("kind", ["sick", "healthy"])
@pytest.mark.parametrize("folder", [s for s in SAMPLES if s.name != LAUNCHED_ONLY], ids=lambda p: p.name)
def test_a_sample_shows_what_it_declares(folder: Path, kind: str, run_ranks: RunRanks, tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text((folder / f"{kind}.py").read_text())
    variables = {"SCRIPT": str(tmp_path / "train.py")}
    ran = run_ranks(work="traced_script:run", environment={0: variables, 1: variables})
    expected = 8 if "--expect-batch-size 8" in sample(folder)[kind] else None
    evidence = replace(
        healthy_user_run(), ranks=read_traced_ranks(ran.run_dir), asked=Asked(expect_batch_size=expected)
    )
    assert sorted(faults(evidence)) == (sample(folder)["must_find"] if kind == "sick" else []), ran.output


@pytest.mark.slow
@pytest.mark.ranks
@pytest.mark.parametrize("kind", ["sick", "healthy"])
@pytest.mark.parametrize("folder", SAMPLES, ids=lambda p: p.name)
def test_a_sample_by_its_line(folder: Path, kind: str, tmp_path: Path) -> None:
    options = ["--output", f"json:{tmp_path / 'report.json'}", "--run-dir", str(tmp_path / "run")]
    _, verb, *words = shlex.split(sample(folder)[kind].replace("samples/", f"{ROOT}/samples/"))
    command = [sys.executable, "-m", "accel_doctor", verb, *options, *words]
    subprocess.run(command, cwd=tmp_path, capture_output=True, timeout=120, check=False)
    report = json.loads((tmp_path / "report.json").read_text())
    failed = {c["id"] for c in report["checks"] if c["outcome"] in ("failed", "warned")}
    assert failed & set(sample(folder)["must_find"]) == (set(sample(folder)["must_find"]) if kind == "sick" else set())


@pytest.mark.parametrize("folder", SAMPLES, ids=lambda p: p.name)
def test_the_readme_gives_the_line(folder: Path) -> None:
    assert f"`{sample(folder)['sick']}`" in (ROOT / "samples" / "scripts" / "README.md").read_text()
