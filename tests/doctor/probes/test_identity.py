import os
import socket
import subprocess
import sys

from accel_doctor.evidence import ProbeOptions
from accel_doctor.probes.__main__ import phases
from accel_doctor.probes.beat import is_over
from accel_doctor.probes.identity import identity


def test_a_rank_knows_itself_from_its_environment() -> None:
    seen = identity({"RANK": "3", "LOCAL_RANK": "1", "WORLD_SIZE": "8", "NCCL_DEBUG": "INFO", "HF_TOKEN": "secret"})
    assert (seen["pid"], seen["rank"], seen["local_rank"], seen["env_world_size"]) == (os.getpid(), 3, 1, 8)
    assert seen["environment"] == {
        "LOCAL_RANK": "1",
        "NCCL_DEBUG": "INFO",
        "RANK": "3",
        "WORLD_SIZE": "8",
    }
    assert seen["executable"] == sys.executable


def test_without_a_rank_or_with_a_senseless_one_there_is_none() -> None:
    assert identity({})["rank"] is None
    assert identity({"RANK": "first"})["rank"] is None


def test_who_a_rank_is_needs_no_torch() -> None:
    code = "import sys; from accel_doctor.probes.__main__ import identity; identity({}); print('torch' in sys.modules)"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert said.stdout == "False\n"


def test_an_exam_is_over_when_its_doctor_is_gone_or_its_deadline_past() -> None:
    here = socket.gethostname()
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    assert not is_over(ProbeOptions(), 1e12)
    assert not is_over(ProbeOptions(deadline_s=100.0), 109.0)
    assert is_over(ProbeOptions(deadline_s=100.0), 111.0)
    assert not is_over(ProbeOptions(doctor_pid=os.getpid(), doctor_host=here), 0.0)
    assert is_over(ProbeOptions(doctor_pid=ended.pid, doctor_host=here), 0.0)
    assert not is_over(ProbeOptions(doctor_pid=ended.pid, doctor_host="another"), 0.0)


def test_megatron_prepares_nothing_and_storage_is_asked_for() -> None:
    model = ("prepare", "data", "training")
    assert phases(ProbeOptions(), "MULTI_CPU") == ("guards", *model, "sweep", "compute", "leave")
    assert phases(ProbeOptions(checkpoint_dir="/data"), "FSDP")[-2:] == ("storage", "leave")
    assert phases(ProbeOptions(checkpoint_dir="/data"), "MEGATRON_LM") == ("guards", "sweep", "compute", "leave")
