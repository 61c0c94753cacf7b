"""Devices sampled while ranks work, through the real pynvml and a fake library."""

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise

import pytest

from accel_doctor.evidence import Device, Phase, Rank, RankEnd, Sample
from accel_doctor.machine.device_sampler import KEPT_SAMPLES, Thinned, phase_at
from fake_nvml.fixture import FakeNvml
from fake_nvml.machine import set_pid_namespace

pytestmark = pytest.mark.ranks

HOST = socket.gethostname()


def rank(number: int, pid: int, phases: tuple[Phase, ...] = (), **changes: object) -> Rank:
    return Rank(pid=pid, host=HOST, rank=number, phases=phases, **changes)  # type: ignore[arg-type]


def during(device: Device) -> tuple[Sample, ...]:
    return tuple(s for s in device.samples if s.phase == "training")


@contextmanager
def sleeper(code: str = "import time; time.sleep(60)") -> Iterator[subprocess.Popen[str]]:
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as process:
        try:
            yield process
        finally:
            process.kill()


def test_samples_and_processes_of_two_devices(fake_nvml: FakeNvml) -> None:
    with sleeper() as busy:
        machine = fake_nvml("second_gpu_idle", **{"load:gpu0.compute": f"{busy.pid}:60000000000"})
        first, second = machine.watch(ranks=[rank(0, busy.pid)]).devices
    assert {s.busy_pct for s in during(first)} == {97.0}
    assert {(s.power_w, s.sm_clock_mhz, s.temperature_c, s.event_reasons) for s in during(first)} == {
        (640.0, 1755, 62, 0)
    }
    assert {(s.pcie_generation, s.pcie_width, s.memory_used_bytes) for s in during(first)} == {(5, 16, 60000000000)}
    assert {(s.busy_pct, s.power_w) for s in during(second)} == {(0.0, 71.0)}
    assert [s.phase for s in first.samples[:2]] == ["before", "training"]
    (process,) = first.processes_during or ()
    assert (process.pid, process.ours, process.rank, process.memory_bytes) == (busy.pid, True, 0, 60000000000)
    assert process.last_seen_s is not None
    assert process.first_seen_s is not None
    assert process.last_seen_s >= process.first_seen_s
    assert (second.processes_during, first.nvlink_errors_during) == ((), 0)


def test_a_child_of_a_rank_is_ours_and_a_stranger_is_not(fake_nvml: FakeNvml) -> None:
    code = """
import subprocess, sys
child = subprocess.Popen([sys.executable, "-c", "import sys; sys.stdin.read()"], stdin=subprocess.PIPE)
print(child.pid, flush=True)
child.wait(60)
"""
    with sleeper(code) as parent, sleeper() as stranger:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        machine = fake_nvml("healthy", **{"load:gpu0.compute": f"{child}:1,{stranger.pid}:2"})
        (ours, theirs) = machine.watch(ranks=[rank(3, parent.pid)]).devices[0].processes_during or ()
    assert (ours.pid, ours.ours, ours.rank) == (child, True, 3)
    assert (theirs.pid, theirs.ours, theirs.rank) == (stranger.pid, False, None)


def test_phases_come_from_what_the_ranks_wrote() -> None:
    end = RankEnd(how="finished", at_s=20)
    join = Phase(name="join", at_s=10)
    ranks = [rank(i, i, (join, Phase(name="training", at_s=12 + i)), end=end) for i in range(2)]
    assert [phase_at(ranks, t) for t in (9, 11, 12.5, 13, 21)] == ["before", "join", "", "training", "after"]


def test_samples_carry_the_ranks_phases(fake_nvml: FakeNvml) -> None:
    writing = [rank(i, 4000000 + i, (Phase(name="sweep", at_s=time.time() - 60),)) for i in range(2)]
    device = fake_nvml("healthy").watch(seconds=0.3, ranks=writing).devices[0]
    assert {s.phase for s in device.samples} == {"before", "sweep"}


def test_a_device_lost_in_mid_run_keeps_what_was_seen(fake_nvml: FakeNvml) -> None:
    machine = fake_nvml("healthy", **{"load:gpu1.fail.nvmlDeviceGetPowerUsage": "0 | 0 | 15", "gpu1.xids": "79"})
    devices = machine.watch()
    well, lost = devices.devices
    assert (well.lost, lost.lost, len(during(lost))) == (False, True, 3)
    assert (lost.absent["power_w"], lost.name) == ("GPU is lost", "NVIDIA H100 80GB HBM3")
    assert len(during(well)) > 3
    assert [(x.index, x.code) for x in devices.xids] == [(1, 79)]


def test_a_function_that_fails_in_mid_run_leaves_the_rest(fake_nvml: FakeNvml) -> None:
    machine = fake_nvml("healthy", **{"load:gpu0.fail.nvmlDeviceGetTemperature": "0 | 999"})
    looks = during(machine.watch().devices[0])
    assert looks[0].temperature_c == 62
    assert {s.temperature_c for s in looks[1:]} == {None}
    assert {s.busy_pct for s in looks} == {97.0}


def test_values_that_change_in_time_are_seen_change(fake_nvml: FakeNvml) -> None:
    machine = fake_nvml("healthy", **{"load:gpu0.busy": "97 | 97 | 0"})
    assert [s.busy_pct for s in during(machine.watch().devices[0])][:4] == [97.0, 97.0, 0.0, 0.0]


def test_link_errors_that_come_meanwhile_are_counted_apart(fake_nvml: FakeNvml) -> None:
    device = fake_nvml("healthy", **{"gpu0.nvlink_errors": "2 | 7"}).watch().devices[0]
    assert (device.nvlink_errors, device.nvlink_errors_during) == (2, 5)


def test_pids_of_another_namespace_are_not_taken_for_absence(fake_nvml: FakeNvml) -> None:
    machine = fake_nvml("container_without_pids", **{"load:gpu0.compute": "4312:1024"})
    set_pid_namespace(machine.root, "pid:[4026532201]")
    devices = machine.watch(ranks=[rank(0, os.getpid())])
    assert [d.processes_during for d in devices.devices] == [None, None]
    assert "host's pids" in devices.devices[1].absent["processes_during"]


def test_a_rank_found_among_the_pids_proves_that_they_are_ours(fake_nvml: FakeNvml) -> None:
    machine = fake_nvml("container_without_pids", **{"load:gpu0.compute": f"{os.getpid()}:1024"})
    set_pid_namespace(machine.root, "pid:[4026532201]")
    devices = machine.watch(ranks=[rank(0, os.getpid())])
    assert devices.host_pids
    assert [p.rank for p in devices.devices[0].processes_during or ()] == [0]


def test_a_driver_that_hangs_in_mid_run_does_not_keep_the_exam(fake_nvml: FakeNvml) -> None:
    machine = fake_nvml("healthy")
    code = f"""
import time
from pathlib import Path
from accel_doctor.machine.devices import DeviceSampler, read_devices
devices, _ = read_devices({{}}, root=Path({str(machine.root)!r}))
sampler = DeviceSampler(devices, 0.05)
sampler.start()
time.sleep(0.3)
with open({str(machine.state)!r}, "a") as lines:
    lines.write("hang.nvmlDeviceGetPowerUsage 1\\n")
time.sleep(0.2)
seen = sampler.stop({{}})
print(seen.stuck, len(seen.devices[0].samples) > 2)
"""
    assert machine.python(code).split() == ["nvmlDeviceGetPowerUsage", "True"]


def test_a_sampler_never_started_gives_back_what_was_read(fake_nvml: FakeNvml) -> None:
    machine = fake_nvml("healthy")
    code = f"""
from pathlib import Path
from accel_doctor.machine.devices import DeviceSampler, read_devices
devices, _ = read_devices({{}}, root=Path({str(machine.root)!r}))
seen = DeviceSampler(devices).stop({{}})
print(len(seen.devices[0].samples), seen.devices[0].processes_during)
"""
    assert machine.python(code).split() == ["1", "None"]


@pytest.mark.parametrize("came", [1, KEPT_SAMPLES, KEPT_SAMPLES + 1, 1000, 12345])
def test_however_many_samples_come_few_are_kept_evenly(came: int) -> None:
    thinned = Thinned(KEPT_SAMPLES)
    for second in range(came):
        thinned.add(Sample(at_s=second))
    times = [s.at_s for s in thinned.kept()]
    gaps = {after - before for before, after in pairwise(times)}
    assert times[0] == 0
    assert len(gaps) <= 1
    assert len(times) == came if came <= KEPT_SAMPLES else KEPT_SAMPLES / 2 <= len(times) <= KEPT_SAMPLES
    assert came - 1 - times[-1] < max(gaps, default=1)


def test_ranks_of_other_hosts_claim_nothing_here(fake_nvml: FakeNvml) -> None:
    machine = fake_nvml("healthy", **{"load:gpu0.compute": f"{os.getpid()}:1024"})
    devices = machine.watch(ranks=[Rank(pid=os.getpid(), host="node-b", rank=0)])
    (process,) = devices.devices[0].processes_during or ()
    assert not process.ours
