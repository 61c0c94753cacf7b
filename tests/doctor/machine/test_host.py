"""What a host is and grants, with real limits and affinity, and a made /proc where the real one has nothing to show."""

import os
import resource
import subprocess
import sys
import time
from pathlib import Path

import pytest

from accel_doctor.evidence import FileSetting, NumaNode
from accel_doctor.machine.batch_job import read_job
from accel_doctor.machine.caches import caches
from accel_doctor.machine.host import _soft, cpu_list, read_host
from accel_doctor.machine.nccl_files import read_nccl_settings
from host_reading import READ, read_below

pytestmark = pytest.mark.ranks


def test_this_machine_is_read() -> None:
    host = read_host({"NCCL_DEBUG": "INFO", "HF_TOKEN": "hidden"})
    assert host.kernel == os.uname().release
    assert host.cpus == tuple(sorted(os.sched_getaffinity(0)))
    assert host.cpus_affinity == len(host.cpus)
    assert host.memory_total_bytes
    assert host.memory_available_bytes
    assert host.shm_total_bytes == os.statvfs("/dev/shm").f_blocks * os.statvfs("/dev/shm").f_frsize
    assert host.environment == {"NCCL_DEBUG": "INFO"}
    assert host.clock_s == pytest.approx(time.time(), abs=60)
    assert host.left_over is not None
    assert {c.name for c in host.caches or ()} >= {"HF_HOME", "TMPDIR", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR"}


def test_torch_is_not_imported() -> None:
    code = READ.rsplit("\n", 2)[0] + "\nread_host(os.environ)\nprint(sorted({'torch'} & set(sys.modules)))\n"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == "[]"


def test_real_limits_are_read() -> None:
    host = read_below("prlimit", "--nofile=512:512", "--nproc=4321:4321", "--memlock=65536:65536")
    assert host.limits.open_files == 512
    assert host.limits.processes == (None if os.getuid() == 0 else 4321)
    assert host.limits.locked_memory_bytes == 65536


def test_no_limit_is_none() -> None:
    host = read_below("sh", "-c", 'ulimit -S -n "$(ulimit -H -n)"; exec "$0" "$@"')
    hard = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    assert host.limits.open_files == (None if hard == resource.RLIM_INFINITY else hard)
    assert _soft(resource.RLIMIT_FSIZE) is None


def test_a_real_affinity_is_read() -> None:
    one = str(min(os.sched_getaffinity(0)))
    host = read_below("taskset", "-c", one)
    assert (host.cpus, host.cpus_affinity) == ((int(one),), 1)
    assert host.cpus_total == os.cpu_count()


def test_numa_nodes_and_rdma_devices_are_read(tmp_path: Path) -> None:
    for index, text in ((0, "0-1,4"), (1, "2-3")):
        folder = tmp_path / f"sys/devices/system/node/node{index}"
        folder.mkdir(parents=True)
        (folder / "cpulist").write_text(text + "\n")
    (tmp_path / "sys/class/infiniband/mlx5_0").mkdir(parents=True)
    host = read_host({}, tmp_path)
    assert host.numa_nodes == (NumaNode(index=0, cpus=(0, 1, 4)), NumaNode(index=1, cpus=(2, 3)))
    assert host.rdma_devices == ("mlx5_0",)


def test_what_cannot_be_read_is_absent(tmp_path: Path) -> None:
    host = read_host({}, tmp_path)
    assert host.numa_nodes is None
    assert host.memory_total_bytes is None
    assert host.shm_total_bytes is None
    assert host.cpus_quota is None
    assert host.left_over is None


@pytest.mark.parametrize(("text", "cpus"), [("0-3,8\n", (0, 1, 2, 3, 8)), ("5", (5,)), ("\n", ())])
def test_lists_of_cpus(text: str, cpus: tuple[int, ...]) -> None:
    assert cpu_list(text) == cpus


def test_caches_lie_where_the_libraries_put_them() -> None:
    lie = {c.name: c.path for c in caches({"HOME": "/home/me"})}
    assert lie["HF_HOME"] == "/home/me/.cache/huggingface"
    assert lie["HF_HUB_CACHE"] == "/home/me/.cache/huggingface/hub"
    assert lie["TRITON_CACHE_DIR"] == "/home/me/.triton/cache"


def test_the_variable_that_moves_a_cache_is_followed() -> None:
    moved = {"HOME": "/home/me", "XDG_CACHE_HOME": "/big", "TMPDIR": "/scratch", "TRITON_CACHE_DIR": "~/triton"}
    lie = {c.name: (c.path, c.source) for c in caches(moved)}
    assert lie["HF_HOME"] == ("/big/huggingface", "default")
    assert lie["TMPDIR"] == ("/scratch", "environment")
    assert lie["TORCHINDUCTOR_CACHE_DIR"][0].startswith("/scratch/torchinductor_")
    assert lie["TRITON_CACHE_DIR"] == ("/home/me/triton", "environment")
    lie = {c.name: (c.path, c.source) for c in caches({"HOME": "/home/me", "HF_HOME": "/data/hf"})}
    assert lie["HF_HUB_CACHE"] == ("/data/hf/hub", "default")


def test_nccls_own_files_are_read_in_its_order(tmp_path: Path) -> None:
    (tmp_path / "etc").mkdir()
    (tmp_path / "etc/nccl.conf").write_text("# site\nNCCL_DEBUG=WARN\nnot a setting\n NCCL_P2P_DISABLE = 1 \n")
    mine = tmp_path / "mine.conf"
    mine.write_text("NCCL_DEBUG=TRACE\n")
    assert read_nccl_settings({"NCCL_CONF_FILE": str(mine)}, tmp_path) == (
        FileSetting(name="NCCL_DEBUG", value="TRACE", path=str(mine), line=1),
        FileSetting(name="NCCL_DEBUG", value="WARN", path=str(tmp_path / "etc/nccl.conf"), line=2),
        FileSetting(name="NCCL_P2P_DISABLE", value="1", path=str(tmp_path / "etc/nccl.conf"), line=4),
    )
    assert read_nccl_settings({}, tmp_path / "etc") == ()


def test_outside_of_a_job_there_is_no_end() -> None:
    assert read_job({}) == ("", None)


def test_slurm_states_the_end_of_its_job() -> None:
    assert read_job({"SLURM_JOB_ID": "4711", "SLURM_JOB_END_TIME": "1800000000"}) == ("Slurm job 4711", 1800000000.0)


@pytest.mark.parametrize(("said", "end_s"), [("2027-01-15T08:00:00", "a time"), ("Unknown", None)])
def test_scontrol_is_asked_where_the_environment_is_silent(tmp_path: Path, said: str, end_s: str | None) -> None:
    program = tmp_path / "scontrol"
    program.write_text(f'#!/bin/sh\necho "JobId=$4 TimeLimit=01:00:00 EndTime={said} Deadline=N/A args=$*"\n')
    program.chmod(0o755)
    job, end = read_job({"SLURM_JOB_ID": "4711", "PATH": f"{tmp_path}:/usr/bin:/bin"})
    assert job == "Slurm job 4711"
    expected = time.mktime(time.strptime(said, "%Y-%m-%dT%H:%M:%S")) if end_s else None
    assert end == expected


def test_a_silent_scontrol_is_not_waited_for(tmp_path: Path) -> None:
    program = tmp_path / "scontrol"
    program.write_text("#!/bin/sh\nexec sleep 30\n")
    program.chmod(0o755)
    assert read_job({"SLURM_JOB_ID": "4711", "PATH": f"{tmp_path}:/usr/bin:/bin"}) == ("Slurm job 4711", None)
