"""Which variables are recorded."""

import subprocess
import sys

import pytest

from accel_doctor.machine.environment import allowed


@pytest.mark.parametrize(
    "name",
    [
        "RANK",
        "WORLD_SIZE",
        "LOCAL_RANK",
        "MASTER_ADDR",
        "NCCL_DEBUG",
        "TORCH_DISTRIBUTED_DEBUG",
        "TORCHELASTIC_RUN_ID",
        "TORCHINDUCTOR_CACHE_DIR",
        "OMP_NUM_THREADS",
        "FI_PROVIDER",
        "GLOO_SOCKET_IFNAME",
        "HF_HOME",
        "CUDA_VISIBLE_DEVICES",
        "ACCELERATE_USE_CPU",
        "FSDP_AUTO_WRAP_POLICY",
        "PARALLELISM_CONFIG_TP_SIZE",
        "SLURM_JOB_END_TIME",
        "TOKENIZERS_PARALLELISM",
        "PYTHONPATH",
        "TMPDIR",
    ],
)
def test_what_decides_how_a_run_behaves_is_recorded(name: str) -> None:
    assert allowed({name: "x"}) == {name: "x"}


@pytest.mark.parametrize(
    "name",
    [
        "HF_TOKEN",
        "HUGGING_FACE_HUB_TOKEN",
        "WANDB_API_KEY",
        "AWS_SECRET_ACCESS_KEY",
        "ACCELERATE_HUB_TOKEN",
        "NCCL_SECRET",
        "TORCH_HUB_PASSWORD",
        "NVIDIA_API_KEY",
        "SLURM_JWT",
        "HOME",
        "HTTPS_PROXY",
        "PATH",
    ],
)
def test_secrets_and_strangers_are_not(name: str) -> None:
    assert allowed({name: "x"}) == {}


def test_the_module_needs_the_standard_library_alone() -> None:
    heavy = "{'torch', 'psutil', 'msgspec'} & set(sys.modules)"
    code = f"import sys; import accel_doctor.machine.environment; print(sorted({heavy}))"
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert run.stdout.strip() == "[]"
