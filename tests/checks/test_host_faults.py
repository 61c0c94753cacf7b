"""Faults of a host injected for real, read and judged; each with the same host made well."""

import os
import sys
import venv
from pathlib import Path

import msgspec
import pytest

from accel_checks import (
    env003_small_shared_memory,
    env004_few_open_files,
    env005_oversubscribed_cpu,
    env006_host_memory_short,
    env009_wrong_affinity,
    env010_debug_left_on,
    env012_other_environment,
    env014_unfit_cache,
)
from accel_doctor.check import Check, Finding, Severity
from accel_doctor.evidence import Host
from accel_doctor.machine.interpreter import read_interpreter
from accel_doctor.testing import findings, healthy_launch, healthy_run
from host_reading import MakeGroup, entering, mounted, needs_groups, needs_mounts, read_below

pytestmark = pytest.mark.ranks

MIB = 2**20


def found(check: Check, host: Host) -> tuple[Finding, ...]:
    """Return what a check finds on a host that carries the healthy run's two ranks."""
    run = healthy_run()
    launch = msgspec.structs.replace(healthy_launch(), chosen_by="user")
    ranks = tuple(msgspec.structs.replace(r, host=host.name, cpus=host.cpus, environment={}) for r in run.world)
    return findings(check, msgspec.structs.replace(run, hosts=(host,), launch=launch, ranks=ranks))


@needs_mounts
@pytest.mark.parametrize(("size", "count"), [("64m", 1), ("2g", 0)])
def test_a_small_shared_memory(size: str, count: int) -> None:
    host = read_below(*mounted(f"mount -t tmpfs -o size={size} tmpfs /dev/shm"))
    assert len(found(env003_small_shared_memory.CHECK, host)) == count


@needs_mounts
def test_a_full_shared_memory() -> None:
    fill = "mount -t tmpfs -o size=64m tmpfs /dev/shm; head -c 64m /dev/zero > /dev/shm/stale"
    (finding,) = found(env003_small_shared_memory.CHECK, read_below(*mounted(fill)))
    assert finding.severity is Severity.ERROR
    assert finding.values["shm_free_bytes"] == 0


@pytest.mark.parametrize(("limit", "count"), [(200, 1), (4096, 0)])
def test_few_open_files(limit: int, count: int) -> None:
    host = read_below("prlimit", f"--nofile={limit}:{limit}")
    assert len([f for f in found(env004_few_open_files.CHECK, host) if "open_files" in f.values]) == count


@needs_groups
@pytest.mark.parametrize(("limit", "count"), [(60, 1), (100000, 0)])
def test_few_processes_in_the_cgroup(make_group: MakeGroup, limit: int, count: int) -> None:
    group = make_group("pids/@", {"pids.max": limit})
    host = read_below(*entering(group))
    assert len([f for f in found(env004_few_open_files.CHECK, host) if "processes" in f.values]) == count


@needs_groups
@pytest.mark.parametrize(("quota_us", "count"), [(50000, 1), (-1, 0)])
def test_a_quota_of_cpus(make_group: MakeGroup, quota_us: int, count: int) -> None:
    group = make_group("cpu/@", {"cpu.cfs_quota_us": quota_us})
    host = read_below(*entering(group))
    crowded = [f for f in found(env005_oversubscribed_cpu.CHECK, host) if "wanted_cpus" in f.values]
    assert len(crowded) == (count if (host.cpus_affinity or 0) >= 2 else 1)


@needs_groups
@pytest.mark.parametrize(("limit", "severity"), [(400 * MIB, Severity.ERROR), (1536 * MIB, Severity.WARNING)])
def test_a_short_memory_in_the_cgroup(make_group: MakeGroup, limit: int, severity: Severity) -> None:
    group = make_group("memory/@", {"memory.limit_in_bytes": limit})
    host = read_below(*entering(group))
    (finding,) = found(env006_host_memory_short.CHECK, host)
    assert finding.severity is severity
    assert "of the cgroup's" in finding.message


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two CPUs")
def test_ranks_bound_to_one_core() -> None:
    first = min(os.sched_getaffinity(0))
    host = read_below()
    ranks = tuple(
        msgspec.structs.replace(r, host=host.name, cpus=read_below("taskset", "-c", str(first)).cpus)
        for r in healthy_run().world
    )
    (finding,) = findings(env009_wrong_affinity.CHECK, healthy_run(hosts=(host,), ranks=ranks))
    assert finding.seen == f"CPUs {first} for every rank"
    assert found(env009_wrong_affinity.CHECK, host) == ()


def test_a_setting_of_nccl_in_its_own_file(tmp_path: Path) -> None:
    conf = tmp_path / "nccl.conf"
    conf.write_text("NCCL_SHM_DISABLE=1\n")
    (finding,) = found(env010_debug_left_on.CHECK, read_below(NCCL_CONF_FILE=str(conf)))
    assert finding.location is not None
    assert (finding.location.path, finding.location.line) == (str(conf), 1)
    conf.write_text("NCCL_DEBUG=WARN\n")
    assert found(env010_debug_left_on.CHECK, read_below(NCCL_CONF_FILE=str(conf))) == ()


def test_another_environments_accelerate_on_path(tmp_path: Path) -> None:
    venv.create(tmp_path / "env", with_pip=False, symlinks=True)
    program = tmp_path / "env/bin/accelerate"
    program.write_text(f"#!{tmp_path}/env/bin/python\n")
    program.chmod(0o755)
    (finding,) = found(env012_other_environment.CHECK, with_path(f"{tmp_path}/env/bin:{os.environ['PATH']}"))
    assert str(program.resolve()) in finding.seen
    own = Path(sys.prefix, "bin")
    assert found(env012_other_environment.CHECK, with_path(str(own))) == ()


def with_path(path: str) -> Host:
    return msgspec.structs.replace(read_below(), interpreter=read_interpreter({"PATH": path}))


@needs_mounts
@pytest.mark.parametrize(
    ("options", "trouble"),
    [("size=16m", "has 16 MiB left"), ("size=2g,ro", "Read-only file system"), ("size=2g", "")],
)
def test_a_temporary_folder(tmp_path: Path, options: str, trouble: str) -> None:
    host = read_below(*mounted(f"mount -t tmpfs -o {options} tmpfs {tmp_path}"), TMPDIR=str(tmp_path))
    told = [f.message for f in found(env014_unfit_cache.CHECK, host) if f.message.startswith("TMPDIR")]
    assert [trouble in message for message in told] == [True] * bool(trouble)


def test_offline_with_an_empty_cache(tmp_path: Path) -> None:
    hub = tmp_path / "hub"
    hub.mkdir()
    sick = found(env014_unfit_cache.CHECK, read_below(HF_HOME=str(tmp_path), HF_HUB_OFFLINE="1"))
    assert [f.message for f in sick if "forbids to fill it" in f.message]
    (hub / "models--gpt2").mkdir()
    well = found(env014_unfit_cache.CHECK, read_below(HF_HOME=str(tmp_path), HF_HUB_OFFLINE="1"))
    assert [f.message for f in well if f.message.startswith("HF_")] == []
