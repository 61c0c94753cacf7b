"""What control groups grant: version 1 with real groups, version 2 from its files."""

import subprocess
import sys
from pathlib import Path

import pytest

from accel_doctor.machine.cgroup import Grant, read_grant
from host_reading import MakeGroup, needs_groups

MIB = 2**20
READ = "from accel_doctor.machine.cgroup import read_grant; print(repr(tuple(read_grant())))"


def grant_inside(*folders: Path) -> Grant:
    """Return what a process that has entered the groups reads."""
    enter = (
        "import os, pathlib, sys\nfor f in sys.argv[1:]: pathlib.Path(f, 'cgroup.procs').write_text(str(os.getpid()))\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", enter + READ, *map(str, folders)], capture_output=True, text=True, check=True, timeout=60
    )
    return Grant(*eval(run.stdout))  # noqa: S307 - our own output


@needs_groups
def test_a_real_quota_counts_as_cpus(make_group: MakeGroup) -> None:
    folder = make_group("cpu/@", {"cpu.cfs_period_us": 100000, "cpu.cfs_quota_us": 150000})
    assert grant_inside(folder).cpus == pytest.approx(1.5)


@needs_groups
def test_the_tightest_level_counts(make_group: MakeGroup) -> None:
    make_group("cpu/@", {"cpu.cfs_quota_us": 50000})
    assert grant_inside(make_group("cpu/@/inner", {"cpu.cfs_quota_us": -1})).cpus == pytest.approx(0.5)


@needs_groups
def test_a_real_memory_limit_comes_with_its_use(make_group: MakeGroup) -> None:
    grant = grant_inside(make_group("memory/@", {"memory.limit_in_bytes": 256 * MIB}))
    assert grant.memory_limit_bytes == 256 * MIB
    assert grant.memory_used_bytes is not None
    assert 0 < grant.memory_used_bytes < 256 * MIB


@needs_groups
def test_a_real_limit_of_processes_comes_with_its_use(make_group: MakeGroup) -> None:
    grant = grant_inside(make_group("pids/@", {"pids.max": 77}))
    assert (grant.processes, grant.processes_used) == (77, 1)


def test_without_limits_nothing_is_claimed(tmp_path: Path) -> None:
    assert (
        read_grant(version_2(tmp_path, {"job": {"cpu.max": "max 100000", "memory.max": "max", "pids.max": "max"}}))
        == Grant()
    )
    assert read_grant(tmp_path / "nowhere") == Grant()


def test_version_2_is_read_with_droppable_cache_left_out(tmp_path: Path) -> None:
    job = {
        "cpu.max": "200000 100000",
        "memory.max": str(1000 * MIB),
        "memory.current": str(900 * MIB),
        "memory.stat": f"anon 1\ninactive_file {300 * MIB}\n",
        "pids.max": "4096",
        "pids.current": "12",
    }
    assert read_grant(version_2(tmp_path, {"job": job})) == Grant(2.0, 1000 * MIB, 600 * MIB, 4096, 12)


def test_the_limit_that_leaves_least_is_the_one_reported(tmp_path: Path) -> None:
    tight = {"memory.max": str(500 * MIB), "memory.current": str(400 * MIB)}
    wide = {"memory.max": str(300 * MIB), "memory.current": str(10 * MIB)}
    grant = read_grant(version_2(tmp_path, {"job": tight, "job/step": wide}, path="/job/step"))
    assert (grant.memory_limit_bytes, grant.memory_used_bytes) == (500 * MIB, 400 * MIB)


def test_a_container_that_mounts_its_own_group_alone_is_read(tmp_path: Path) -> None:
    root = version_2(tmp_path, {"": {"cpu.max": "50000 100000"}}, path="/docker/abc", mounted="/docker/abc")
    assert read_grant(root).cpus == pytest.approx(0.5)


def version_2(root: Path, groups: dict[str, dict[str, str]], path: str = "/job", mounted: str = "/") -> Path:
    """Return a root whose /proc and /sys show one version 2 hierarchy."""
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(f"0::{path}\n")
    (root / "proc/self/mountinfo").write_text(f"30 23 0:26 {mounted} /sys/fs/cgroup rw,nosuid - cgroup2 cgroup2 rw\n")
    for name, files in groups.items():
        folder = root / "sys/fs/cgroup" / name
        folder.mkdir(parents=True, exist_ok=True)
        for file, text in files.items():
            (folder / file).write_text(text)
    return root
