"""Literal evidence of a healthy exam on GPUs, and helpers to make one device of it sick."""

import msgspec

from accel_doctor.evidence import (
    Device,
    DevicePair,
    DeviceProcess,
    Devices,
    Evidence,
    Group,
    Interpreter,
    Launch,
    PciFunction,
    Rank,
    Sample,
    Setting,
)
from accel_doctor.testing import GIB, healthy_host, healthy_launch, healthy_rank, healthy_run

LOAD_AT_S = 103.0
INTERVAL_S = 0.2


def load(seconds: float = 6.0, phase: str = "training", **changes: object) -> tuple[Sample, ...]:
    """Return the samples of a device that trains for some time, with some fields of each replaced."""
    sample = Sample(
        at_s=LOAD_AT_S,
        busy_pct=97.0,
        memory_busy_pct=41.0,
        power_w=640.0,
        memory_used_bytes=50 * GIB,
        sm_clock_mhz=1755,
        temperature_c=62,
        event_reasons=0,
        pcie_generation=5,
        pcie_width=16,
        phase=phase,
    )
    sample = msgspec.structs.replace(sample, **changes)
    times = (LOAD_AT_S + INTERVAL_S * i for i in range(round(seconds / INTERVAL_S) + 1))
    return tuple(msgspec.structs.replace(sample, at_s=round(at_s, 3)) for at_s in times)


def idle(seconds: float = 6.0, phase: str = "training") -> tuple[Sample, ...]:
    """Return the samples of a device that does nothing meanwhile."""
    return load(
        seconds,
        phase,
        busy_pct=0.0,
        memory_busy_pct=0.0,
        power_w=71.0,
        memory_used_bytes=4 * 2**20,
        sm_clock_mhz=345,
        temperature_c=34,
        event_reasons=1,
        pcie_generation=1,
    )


def healthy_gpu(index: int = 0, **changes: object) -> Device:
    """Return an H100 on which the rank of its number trains."""
    device = Device(
        index=index,
        cuda_index=index,
        host="ws1",
        uuid=gpu_uuid(index),
        name="NVIDIA H100 80GB HBM3",
        pci_bus_id=f"0000:{0x01 + 0x10 * index:02x}:00.0",
        numa_node=0,
        memory_total_bytes=80 * GIB,
        compute_capability="9.0",
        display=False,
        mig=False,
        compute_mode="default",
        power_limit_w=700.0,
        sm_clock_max_mhz=1980,
        pcie_generation_max=5,
        pcie_width_max=16,
        pcie_slot_width=16,
        nvlinks_active=18,
        nvlinks_total=18,
        nvlink_gb_s=25.0,
        nvlink_peers={"switch": 18},
        nvlink_errors=0,
        nvlink_errors_during=0,
        fabric="completed",
        fabric_error=0,
        fabric_degraded=False,
        pcie_replays=0,
        pcie_replays_during=0,
        ecc_uncorrected=0,
        ecc_uncorrected_during=0,
        remap_pending=False,
        remap_failed=False,
        recovery_action="none",
        processes=(),
        processes_during=(on_gpu(1000 + index, ours=True, rank=index, memory_bytes=49 * GIB),),
        samples=(*idle(0.0, "before"), *load()),
    )
    return msgspec.structs.replace(device, **changes)


def gpu_uuid(index: int) -> str:
    """Return the UUID of one of the devices."""
    return f"GPU-{index:08x}-1c0d-4e6a-9f2b-7d3c5a1b{index:04x}"


def on_gpu(pid: int, **changes: object) -> DeviceProcess:
    """Return a process that computes on a device."""
    process = DeviceProcess(
        pid=pid, name="python", user="me", started_s=90.0, memory_bytes=GIB, first_seen_s=103.0, last_seen_s=109.0
    )
    return msgspec.structs.replace(process, **changes)


def healthy_gpus(*devices: Device, **changes: object) -> Devices:
    """Return the devices of a machine, two H100 when none are given."""
    present = devices or (healthy_gpu(0), healthy_gpu(1))
    numbers = [d.index for d in present]
    found = Devices(
        vendor="nvidia",
        driver_version="570.86.15",
        cuda_driver="12.8",
        devices=present,
        counts={"driver": len(present), "pci": len(present), "dev": len(present)},
        pci=tuple(PciFunction(bus_id=d.pci_bus_id, driver="nvidia") for d in present),
        pairs=tuple(
            DevicePair(host="ws1", first=a, second=b, path="system", read="ok", write="ok")
            for a in numbers
            for b in numbers
            if a < b
        ),
    )
    return msgspec.structs.replace(found, **changes)


def gpu_rank(number: int = 0, world: int = 2, **changes: object) -> Rank:
    """Return a rank that did everything right on the device of its number; changes are of its group."""
    rank = healthy_rank(number, world)
    group = Group(
        world_size=world,
        rank=number,
        local_rank=number,
        is_main=number == 0,
        is_local_main=number == 0,
        distributed_type="MULTI_GPU",
        backend="nccl",
        device=f"cuda:{number}",
        device_uuid=gpu_uuid(number),
        torch_device_count=world,
        compute_capability="9.0",
        arch_list=("sm_80", "sm_86", "sm_90", "sm_100", "compute_120"),
        joined_s=102.0,
    )
    return msgspec.structs.replace(
        rank,
        group=msgspec.structs.replace(group, **changes),
        compute=rank.compute and msgspec.structs.replace(rank.compute, device=f"cuda:{number}"),
        versions={**rank.versions, "torch": "2.13.0+cu128", "cuda": "12.8", "nccl": "2.27.3", "driver": "570.86.15"},
    )


def gpu_launch(processes: int = 2, chosen_by: str = "accelerate") -> Launch:
    """Return what ``accelerate launch`` takes by itself here, or what the user asked for by flag."""
    launch = healthy_launch(processes)
    source = "flag --num_processes" if chosen_by == "user" else "default"
    return msgspec.structs.replace(
        launch,
        settings=launch.settings | {"num_processes": Setting(value=processes, source=source)},
        chosen_by=chosen_by,
    )


def gpu_run(*devices: Device, **changes: object) -> Evidence:
    """Return the evidence of a healthy two-rank preflight on two H100, with devices or fields replaced."""
    host = healthy_host()
    build = msgspec.structs.replace(
        host.interpreter or Interpreter(executable="", version=""), torch_version="2.13.0+cu128", torch_cuda="12.8"
    )
    fields: dict[str, object] = {
        "launch": gpu_launch(),
        "devices": healthy_gpus(*devices),
        "hosts": (msgspec.structs.replace(host, interpreter=build),),
        "ranks": (gpu_rank(0), gpu_rank(1)),
    }
    return healthy_run(**{**fields, **changes})
