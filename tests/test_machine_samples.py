"""The samples for Slurm and Kubernetes: well-formed, and started as they stand."""

import json
import os
import subprocess
from pathlib import Path

import pytest
import yaml

from namespaces import Doctors, made

SAMPLES = Path(__file__).parent.parent / "samples"
SCRIPTS = sorted((SAMPLES / "slurm").glob("*.sbatch"))
MANIFESTS = sorted((SAMPLES / "kubernetes").glob("*.yaml"))
SRUN = """#!/bin/bash
# Stands for srun: one task a node (or as many as TASKS says), each in its host's namespace with Slurm's variables.
while [[ $1 == --* ]]; do shift; done
pids=() code=0
for ((task = 0; task < NODES * TASKS; task++)); do
    node=$((task / TASKS)) space=SPACE_$((task / TASKS)) name=NAME_$((task / TASKS))
    SLURM_STEP_ID=0 SLURM_NODEID=$node SLURM_PROCID=$task SLURM_LOCALID=$((task % TASKS)) SLURM_NNODES=$NODES \\
        SLURM_NTASKS=$((NODES * TASKS)) SLURM_TASKS_PER_NODE="$TASKS(x$NODES)" \\
        ip netns exec "${!space}" unshare --uts sh -c 'hostname "$0" && exec "$@"' "${!name}" "$@" &
    pids+=($!)
done
for pid in "${pids[@]}"; do wait "$pid" || code=$?; done
exit $code
"""
SCRIPT = """
from accelerate import Accelerator
accelerator = Accelerator()
accelerator.wait_for_everyone()
accelerator.print(f"world {accelerator.num_processes}")
accelerator.end_training()
"""


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda p: p.name)
def test_a_batch_script_is_bash(script: Path) -> None:
    run = subprocess.run(["bash", "-n", script], capture_output=True, text=True, check=False)
    assert (run.returncode, run.stderr) == (0, "")


def programs(node: object) -> list[str]:
    """Return the bash of every container in a manifest."""
    if isinstance(node, dict):
        own = [node["args"][0]] if node.get("command") == ["bash", "-euc"] else []
        return own + [found for value in node.values() for found in programs(value)]
    return [found for value in node for found in programs(value)] if isinstance(node, list) else []


@pytest.mark.parametrize("manifest", MANIFESTS, ids=lambda p: p.name)
def test_a_manifest_is_yaml_with_kinds_and_its_containers_run_bash(manifest: Path) -> None:
    documents = list(yaml.safe_load_all(manifest.read_text()))
    assert all({"apiVersion", "kind", "metadata", "spec"} <= d.keys() for d in documents)
    found = [program for d in documents for program in programs(d)]
    assert found
    for program in found:
        assert "accel-doctor run --run-dir" in program
        run = subprocess.run(["bash", "-n", "-c", program], capture_output=True, text=True, check=False)
        assert (run.returncode, run.stderr) == (0, "")


@pytest.mark.ranks
@pytest.mark.slow
@pytest.mark.parametrize(("script", "tasks"), [("train.sbatch", 1), ("one_task_a_rank.sbatch", 2)])
def test_a_batch_script_runs_on_two_nodes_under_a_stand_in_of_srun(script: str, tasks: int, tmp_path: Path) -> None:
    with made(2) as nodes:
        bin_dir = tmp_path / "bin"
        bin_dir.mkdir()
        (bin_dir / "srun").write_text(SRUN)
        (bin_dir / "scontrol").write_text(f"#!/bin/sh\necho {nodes[0].name}\necho {nodes[1].name}\n")
        for program in bin_dir.iterdir():
            program.chmod(0o755)
        (tmp_path / "train.py").write_text(SCRIPT)
        env = Doctors(tmp_path).environment(
            NODES="2",
            TASKS=str(tasks),
            SLURM_JOB_ID="4711",
            SLURM_NNODES="2",
            SLURM_JOB_NODELIST="node-[a-b]",
            PRECISION="no",
            **{f"SPACE_{n}": node.space for n, node in enumerate(nodes)},
            **{f"NAME_{n}": node.name for n, node in enumerate(nodes)},
        )
        env["PATH"] = f"{bin_dir}{os.pathsep}{env['PATH']}"
        run = subprocess.run(
            ["bash", SAMPLES / "slurm" / script, "train.py"],
            cwd=tmp_path,
            env=env,
            capture_output=True,
            text=True,
            check=False,
            timeout=200,
        )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-3000:]
    assert f"world {2 * tasks}" in run.stdout
    for exam in ("preflight", "run"):
        evidence = json.loads((tmp_path / ".accel-doctor" / "4711-0" / exam / "evidence.json").read_text())
        assert len(evidence["machines"]) == 2 * tasks
        assert sorted(r["rank"] for r in evidence["ranks"]) == list(range(2 * tasks))
