"""Jobs over several machines, as network namespaces: one verdict, and the others their part."""

import json
import shutil
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from accel_doctor.evidence.trace_file import read_traced_ranks
from accel_doctor.launch.ports import free_port
from launches import environment
from namespaces import Doctors, Node, made

pytestmark = [pytest.mark.ranks, pytest.mark.slow]
PORT = "29400"
TRAIN = """
import sys, time
import torch
from torch.utils.data import DataLoader, TensorDataset
from accelerate import Accelerator

accelerator = Accelerator()
torch.manual_seed(0)
rows = 8 * int(sys.argv[1]) * accelerator.num_processes
data = TensorDataset(torch.randn(rows, 32), torch.randn(rows, 1))
model = torch.nn.Linear(32, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
model, optimizer, loader = accelerator.prepare(model, optimizer, DataLoader(data, batch_size=8, shuffle=True))
for x, y in loader:
    time.sleep(0.05)
    accelerator.backward(torch.nn.functional.mse_loss(model(x), y))
    optimizer.step()
    optimizer.zero_grad()
accelerator.wait_for_everyone()
accelerator.end_training()
"""


@pytest.fixture
def two() -> Iterator[tuple[Node, ...]]:
    with made(2) as nodes:
        yield nodes


@pytest.fixture
def three() -> Iterator[tuple[Node, ...]]:
    with made(3) as nodes:
        yield nodes


@pytest.fixture
def doctors(tmp_path: Path) -> Iterator[Doctors]:
    started = Doctors(tmp_path)
    yield started
    started.end()


def launch(main: str, number: int, machines: int = 2, processes: int | None = None) -> tuple[str, ...]:
    words = f"accelerate launch --multi_gpu --num_machines {machines} --num_processes {processes or machines}"
    place = f"--machine_rank {number} --main_process_ip {main} --main_process_port {PORT}"
    return (*words.split(), *place.split(), "--mixed_precision", "no", "--dynamo_backend", "no")


def preflight(
    doctors: Doctors, nodes: tuple[Node, ...], main: str = "", **env: str
) -> tuple[list[int], dict[str, Any]]:
    """Return the exit codes of a preflight on all nodes, and the first one's report."""
    for number, node in enumerate(nodes):
        words = launch(main or nodes[0].address, number, len(nodes))
        doctors.start(node, "preflight", "--run-dir", "@", "--deadline", "80", "--", *words, env=env)
    return doctors.wait(), report(doctors, nodes[0])


def report(doctors: Doctors, node: Node) -> dict[str, Any]:
    return json.loads((doctors.tmp_path / f"{node.name}.json").read_text())  # type: ignore[no-any-return]


def failed(seen: dict[str, Any]) -> list[str]:
    return [c["id"] for c in seen["checks"] if c["outcome"] in ("failed", "broken")]


def finding(seen: dict[str, Any], check_id: str) -> dict[str, Any]:
    return next(c["findings"][0] for c in seen["checks"] if c["id"] == check_id)


def test_two_hosts_have_one_verdict_and_meet_again_in_the_same_directory(two: tuple[Node, ...], tmp_path: Path) -> None:
    for _ in range(2):
        doctors = Doctors(tmp_path)
        try:
            codes, seen = preflight(doctors, two)
        finally:
            doctors.end()
        assert (codes, seen["verdict"], failed(seen)) == ([0, 0], "passed", [])
        evidence = json.loads((doctors.run_dir / "evidence.json").read_text())
        assert [m["host"] for m in evidence["machines"]] == ["node-a", "node-b"]
        assert {r["host"] for r in evidence["ranks"]} == {"node-a", "node-b"}
        assert "node-a has the verdict on all" in (tmp_path / "node-b.out").read_text()
        assert len(list((doctors.run_dir / "machines").iterdir())) == 2


def test_two_machines_of_one_rank_are_told_within_seconds(two: tuple[Node, ...], doctors: Doctors) -> None:
    began = time.monotonic()
    for node in two:
        doctors.start(node, "preflight", "--run-dir", "@", "--", *launch(two[0].address, 0))
    codes = doctors.wait()
    seen = next(report(doctors, n) for n in two if not report(doctors, n)["run_dir"].count("machines"))
    assert sorted(codes) == [1, 2]
    assert failed(seen) == ["LCH011"]
    assert finding(seen, "LCH011")["message"] == "node-a and node-b both have machine_rank 0"
    assert time.monotonic() - began < 20


def test_a_machine_that_never_comes_is_named_within_the_deadline(two: tuple[Node, ...], doctors: Doctors) -> None:
    began = time.monotonic()
    words = launch(two[0].address, 0)
    doctors.start(two[0], "preflight", "--run-dir", "@", "--deadline", "25", "--", *words)
    assert doctors.wait() == [1]
    seen = report(doctors, two[0])
    assert failed(seen) == ["LCH011"]
    assert finding(seen, "LCH011")["message"].startswith("machine 1 of 2 never came")
    assert seen["timings"]["exam_s"] < 25
    assert time.monotonic() - began < 35  # with the start of the interpreter and the report, on a busy machine


def test_a_port_behind_a_silent_firewall_is_named(two: tuple[Node, ...], doctors: Doctors) -> None:
    two[0].ip("route", "add", "blackhole", f"{two[1].address}/32")
    codes, seen = preflight(doctors, two)
    assert (codes[0], failed(seen)) == (1, ["LCH010"])
    assert "node-b cannot reach where the ranks meet: 10.77.0.1:29400" in finding(seen, "LCH010")["message"]


def test_a_main_address_that_is_loopback_on_another_host_is_named(two: tuple[Node, ...], doctors: Doctors) -> None:
    two[1].name_hosts([f"127.0.1.1 {two[0].name}", f"{two[1].address} {two[1].name}"])
    codes, seen = preflight(doctors, two, main=two[0].name)
    assert (codes[0], failed(seen)) == (1, ["LCH010"])
    assert "node-a is 127.0.1.1, their own loopback" in finding(seen, "LCH010")["message"]


def test_a_main_address_by_name_is_well(two: tuple[Node, ...], doctors: Doctors) -> None:
    codes, seen = preflight(doctors, two, main=two[0].name)
    assert (codes, failed(seen)) == ([0, 0], [])


def test_host_names_that_resolve_to_loopback_are_where_gloo_listens(two: tuple[Node, ...], doctors: Doctors) -> None:
    for node in two:  # as Debian's installer writes it; with one such host gloo still connects from its side
        node.name_hosts([f"127.0.1.1 {node.name}"])
    codes, seen = preflight(doctors, two)
    assert (codes[0], failed(seen)) == (1, ["NET005"])
    assert "gloo on node-a and node-b listens on loopback (127.0.1.1)" in finding(seen, "NET005")["message"]


def test_an_interface_that_the_peers_cannot_reach_is_named(two: tuple[Node, ...], doctors: Doctors) -> None:
    for number, node in enumerate(two):
        node.ip("link", "add", "mgmt0", "type", "veth", "peer", "name", "mgmt1")
        node.ip("addr", "add", f"172.31.{number}.5/24", "dev", "mgmt0")
        node.ip("link", "set", "mgmt0", "up")
        node.ip("link", "set", "mgmt1", "up")
        node.ip("route", "add", "blackhole", f"172.31.{1 - number}.0/24")
    codes, seen = preflight(doctors, two, GLOO_SOCKET_IFNAME="mgmt0")
    assert (codes[0], failed(seen)) == (1, ["NET005"])
    assert "is bound to mgmt0 (172.31." in finding(seen, "NET005")["message"]


def test_three_hosts_meet_by_the_rendezvous_of_torchrun(three: tuple[Node, ...], doctors: Doctors) -> None:
    for node in three:
        words = (
            f"torchrun --nnodes 3 --nproc-per-node 2 --rdzv-backend c10d --rdzv-id 7 --rdzv-endpoint 10.77.0.1:{PORT}"
        )
        doctors.start(node, "preflight", "--run-dir", "@", "--", *words.split())
    assert doctors.wait() == [0, 0, 0]
    seen = next(r for n in three if "machines" not in (r := report(doctors, n))["run_dir"])
    assert (seen["verdict"], failed(seen)) == ("passed", [])
    evidence = json.loads((doctors.run_dir / "evidence.json").read_text())
    assert sorted(r["rank"] for r in evidence["ranks"]) == list(range(6))
    assert sorted(m["rank"] for m in evidence["machines"]) == [0, 1, 2]


@pytest.mark.parametrize("count", [2, 3])
def test_a_wire_of_80_mbit_is_found_with_its_side_where_that_can_be_told(count: int, tmp_path: Path) -> None:
    with made(count) as nodes:
        nodes[-1].shape(80)
        doctors = Doctors(tmp_path)
        try:
            codes, seen = preflight(doctors, nodes)
        finally:
            doctors.end()
    assert codes[0] == 1
    assert "NET003" in failed(seen)
    found = finding(seen, "NET003")
    assert found["host"] == ("" if count == 2 else "node-c")
    assert found["values"]["gb_s"] < 0.03


def test_a_checkpoint_directory_that_is_another_on_each_host_is_named(two: tuple[Node, ...], doctors: Doctors) -> None:
    shared, other = doctors.tmp_path / "checkpoints", doctors.tmp_path / "own disk"
    shared.mkdir()
    other.mkdir()
    for number, node in enumerate(two):
        words = launch(two[0].address, number)
        options = ("--run-dir", "@", "--checkpoint-dir", str(shared))
        first = f"mount --bind '{other}' '{shared}'" if number else "true"
        doctors.start(node, "preflight", *options, "--", *words, first=first)
    codes = doctors.wait()
    seen = report(doctors, two[0])
    assert (codes[0], failed(seen)) == (1, ["CKP009"])
    assert "is not one place" in finding(seen, "CKP009")["message"]


def test_a_variable_of_one_host_alone_is_a_skew(two: tuple[Node, ...], doctors: Doctors) -> None:
    for number, node in enumerate(two):
        words = launch(two[0].address, number)
        env = {"NCCL_ALGO": "Tree"} if number else {}
        doctors.start(node, "preflight", "--run-dir", "@", "--checkpoint-dir", ".", "--", *words, env=env)
    assert doctors.wait()[0] == 0
    seen = report(doctors, two[0])
    found = finding(seen, "ENV002")
    assert "NCCL_ALGO differs between ranks: unset on rank 0, Tree on rank 1" in found["message"]
    outcomes = {c["id"]: c["outcome"] for c in seen["checks"]}
    assert {outcomes[i] for i in ("ENV001", "ENV007", "CKP009", "NET003", "NET005", "LCH010", "LCH011")} == {"passed"}


def run(doctors: Doctors, nodes: tuple[Node, ...], steps: int) -> None:
    script = doctors.tmp_path / "train.py"
    script.write_text(TRAIN)
    options = ("--run-dir", "@", "--stall-timeout", "6", "--on-stall", "stop", "--deadline", "90")
    for number, node in enumerate(nodes):
        words = (*launch(nodes[0].address, number, len(nodes)), str(script), str(steps))
        doctors.start(node, "run", *options, "--", *words)


def wait_for_steps(run_dir: Path, hosts: int) -> None:
    """Return once a rank of each host has made ten steps."""
    until = time.monotonic() + 60
    while time.monotonic() < until:
        ranks = [r for part in run_dir.glob("machines/*") for r in read_traced_ranks(part)]
        if sum(r.trace is not None and r.trace.steps >= 10 for r in ranks) >= hosts:
            return
        time.sleep(0.5)
    raise AssertionError("no steps within a minute")


def test_a_run_over_two_hosts_has_one_report(two: tuple[Node, ...], doctors: Doctors) -> None:
    run(doctors, two, steps=20)
    assert doctors.wait() == [0, 0]
    seen = report(doctors, two[0])
    assert (seen["verdict"], failed(seen)) == ("passed", [])
    evidence = json.loads((doctors.run_dir / "evidence.json").read_text())
    assert {r["trace"]["steps"] for r in evidence["ranks"]} == {20}


def test_a_drop_in_the_middle_of_a_run_is_told_as_one(two: tuple[Node, ...], doctors: Doctors) -> None:
    run(doctors, two, steps=10_000)
    wait_for_steps(doctors.run_dir, hosts=2)
    two[0].ip("route", "add", "blackhole", f"{two[1].address}/32")
    codes = doctors.wait()
    seen = report(doctors, two[0])
    assert (codes[0], failed(seen)) == (1, ["LCH010"])
    found = finding(seen, "LCH010")
    assert found["message"].endswith("and it answered at the start")
    assert any("HNG001" in said for said in found["evidence"])


def mpirun(tmp_path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Return two doctors that a real mpirun started on this host."""
    if not shutil.which("mpirun"):
        pytest.skip("mpirun is not installed")
    meet = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": str(free_port())}
    env = environment(tmp_path, ACCELERATE_USE_CPU="1", OMP_NUM_THREADS="1", **meet)
    start = "mpirun --allow-run-as-root --oversubscribe -np 2".split()  # noqa: SIM905
    doctor = (sys.executable, "-m", "accel_doctor", "preflight", "--run-dir", str(tmp_path / "run"))
    argv = [*start, *doctor, "--", *words]
    return subprocess.run(argv, cwd=tmp_path, env=env, capture_output=True, text=True, check=False, timeout=140)


def test_ranks_that_mpirun_starts_are_each_under_a_doctor_of_one_job(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text(TRAIN)
    run = mpirun(tmp_path, "python", "train.py")
    assert run.returncode == 0, run.stdout + run.stderr
    evidence = json.loads((tmp_path / "run" / "evidence.json").read_text())
    assert [(m["unit"], m.get("rank")) for m in evidence["machines"]] == [("process", 0), ("process", 1)]
    assert sorted(r["rank"] for r in evidence["ranks"]) == [0, 1]
    assert "PASSED ON CPU:" in run.stdout


def test_mpirun_over_a_launcher_multiplies_and_the_report_comes_before_mpirun_ends_all(tmp_path: Path) -> None:
    run = mpirun(tmp_path, *"accelerate launch --multi_gpu --num_processes 2 --num_machines 1".split())  # noqa: SIM905
    assert run.returncode == 1
    assert "mpirun starts 2 tasks on" in run.stdout
    assert "task 0" in run.stdout
    assert "2 of 2 came" in run.stdout
