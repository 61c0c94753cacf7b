"""From a fake driver through the real pynvml, reader and sampler to the verdicts of every check on devices."""

import os
import socket
from collections.abc import Mapping, Sequence
from typing import NamedTuple

import pytest
from msgspec.structs import replace

from accel_doctor.catalogue import load_checks
from accel_doctor.diagnose import Diagnosis, Options, diagnose
from accel_doctor.evidence import Asked, Devices, Evidence, Rank, Watch
from accel_doctor.testing_gpu import gpu_launch, gpu_rank, gpu_run
from fake_nvml.fixture import FakeNvml
from fake_nvml.machine import Machine, add_pci_function, names, set_pid_namespace

pytestmark = pytest.mark.ranks

CHECKS = load_checks()
ABOUT_DEVICES = Options(select=("GPU", "RNK002", "ENV013"), ignore=("GPU009",))
QUICK = Asked(thresholds={"GPU001.load_s": 0.2, "GPU001.watch_s": 0.1, "GPU002.load_s": 0.2, "GPU003.load_s": 0.2})
PIDS = (os.getpid(), os.getppid())


class Case(NamedTuple):
    """A machine, the devices its ranks are on, and the checks that must speak."""

    profile: str
    places: Sequence[int] = (0, 1)
    speak: Mapping[str, str] = {}
    changes: Mapping[str, object] = {}


CASES = (
    Case("healthy"),
    Case("spin_in_nccl"),
    Case("a100_pcie_pair"),
    Case("h100_nvswitch_eight", tuple(range(8))),
    Case("rtx4090_four", tuple(range(4))),
    Case("h200_mig", (0,)),
    Case("second_gpu_idle", speak={"GPU001": "error"}),
    Case("one_straggles_other_spins", speak={"GPU001": "error"}),
    Case("healthy", (0, 0), {"GPU001": "error"}, {"load:gpu1.busy": 0}),
    Case("h100_nvswitch_eight", (0,), {"GPU001": "error"}, {f"load:gpu{i}.busy": 0 for i in range(1, 8)}),
    Case("healthy", speak={"GPU002": "warning"}, changes={"load:gpu1.busy": 55}),
    Case("thermal_throttle", speak={"GPU004": "error"}),
    Case("power_brake", speak={"GPU004": "error"}),
    Case("power_cap_low", speak={"GPU004": "warning"}),
    Case("gpu_lost", (0,), {"GPU005": "error"}),
    Case("ecc_uncorrected", speak={"GPU005": "error"}),
    Case("healthy", speak={"GPU005": "error"}, changes={"gpu0.field230": 1}),
    Case("healthy", speak={"GPU005": "error"}, changes={"gpu0.xids": "31,79"}),
    Case("healthy", speak={"GPU005": "note"}, changes={"gpu0.xids": "31"}),
    Case("remap_pending", speak={"GPU005": "error"}),
    Case("a100_nvlink_bridge"),
    Case("a100_nvlink_bridge", speak={"GPU007": "error"}, changes={"gpu1.nvlinks_up": "0xff"}),
    Case("pcie_x4", speak={"GPU006": "warning"}),
    Case("rtx4090_four", tuple(range(4)), {"GPU006": "warning"}, {"load:all.pcie_generation": 3}),
    Case("nvlink_half_down", speak={"GPU007": "error"}),
    Case("healthy", speak={"GPU007": "error"}, changes={"gpu1.fabric_state": 2}),
    Case("healthy", speak={"GPU007": "error"}, changes={"gpu0.nvlink_errors": "0 | 4"}),
    Case("ghost_memory", speak={"GPU008": "warning"}),
    Case("other_users_job", (0,), {"GPU001": "note", "GPU008": "warning"}),
    Case("display_card", (1,), {"GPU001": "note", "GPU008": "note"}),
    Case("exclusive_mode", speak={"GPU011": "warning"}),
    Case("exclusive_mode", speak={"GPU008": "error", "GPU011": "warning"}, changes={"gpu1.compute": "1:100"}),
    Case("a100_pcie_pair", speak={"GPU011": "warning"}, changes={"gpu1.memory_total": 42949672960}),
    Case("a100_pcie_pair", speak={"GPU012": "warning"}, changes={"pairs.read": 1, "pairs.write": 1}),
)


ON_THEIR_OWN = {"container_without_pids"}
"""Profiles with a test of their own below."""


def test_every_profile_is_judged() -> None:
    assert {case.profile for case in CASES} | ON_THEIR_OWN == set(names())


@pytest.mark.parametrize("case", CASES, ids=lambda case: "-".join((case.profile, *case.speak, *case.changes)))
def test_a_machine(fake_nvml: FakeNvml, case: Case) -> None:
    assert speaking(judged(watched(fake_nvml, case))) == dict(case.speak)


def watched(fake_nvml: FakeNvml, case: Case) -> Evidence:
    """Return the evidence of ranks at work on this machine, each with a context on its device."""
    machine = fake_nvml(case.profile)
    pids = [PIDS[place % 2] for place in case.places]
    for pid, place in zip(pids, case.places, strict=True):
        machine.change(**{f"load:gpu{place}.compute": f"{pid}:50000000000"})
    machine.change(**case.changes)
    ranks = placed(machine, case.places)
    return gathered(machine.watch(0.35, 0.03, ranks), ranks)


def placed(machine: Machine, places: Sequence[int]) -> tuple[Rank, ...]:
    return tuple(
        replace(
            gpu_rank(number, len(places), device=f"cuda:{place}", device_uuid=machine.uuid_and_bus(place)[0]),
            pid=PIDS[place % 2],
            host=socket.gethostname(),
        )
        for number, place in enumerate(places)
    )


def gathered(devices: Devices, ranks: tuple[Rank, ...]) -> Evidence:
    return gpu_run(devices=devices, ranks=ranks, asked=QUICK, launch=gpu_launch(max(len(devices.devices), 1)))


def judged(evidence: Evidence) -> Diagnosis:
    return diagnose(evidence, CHECKS, ABOUT_DEVICES)


def speaking(diagnosis: Diagnosis) -> dict[str, str]:
    """Return the worst severity of each check that found something; a broken check fails here."""
    assert not [r for r in diagnosis.results if r.outcome.value == "broken"]
    order = ["error", "warning", "note"]
    return {r.id: min((f.severity.value for f in r.findings), key=order.index) for r in diagnosis.results if r.findings}


def result(diagnosis: Diagnosis, check: str) -> tuple[str, str]:
    (found,) = [r for r in diagnosis.results if r.id == check]
    return found.outcome.value, found.reason


def test_gpu001_carries_that_both_ranks_are_on_one_device(fake_nvml: FakeNvml) -> None:
    diagnosis = judged(watched(fake_nvml, Case("healthy", (0, 0), changes={"load:gpu1.busy": 0})))
    (idle,) = [r for r in diagnosis.results if r.id == "GPU001"]
    assert any("RNK002 shared-device: ranks 0 and 1 on " in text for text in idle.findings[0].evidence)
    assert result(diagnosis, "RNK002") == ("skipped", "a consequence of GPU001")


def test_gpus_that_spin_while_nobody_moves(fake_nvml: FakeNvml) -> None:
    for profile, expected in (("spin_in_nccl", {"GPU003": "error"}), ("healthy", {})):
        evidence = watched(fake_nvml, Case(profile))
        watch = Watch(state="S", silent_for_s=30, phase="sweep", waiting=True, judged="stalled")
        ranks = tuple(replace(rank, watch=watch) for rank in evidence.world)
        assert speaking(judged(replace(evidence, ranks=ranks))) == expected


def test_one_gpu_spins_for_a_peer_that_is_slow(fake_nvml: FakeNvml) -> None:
    changes = {"load:gpu1.busy": 80, "load:gpu1.power_mw": 380000, "load:gpu1.memory_busy": 30}
    evidence = watched(fake_nvml, Case("one_straggles_other_spins", changes=changes))
    assert speaking(judged(evidence)) == {"GPU003": "warning"}


def test_two_ranks_on_one_mig_instance(fake_nvml: FakeNvml) -> None:
    machine = fake_nvml("h200_mig")
    devices = machine.watch(0.2, 0.03)
    uuid = devices.devices[0].mig_devices[0].uuid
    ranks = tuple(gpu_rank(i, device="cuda:0", device_uuid=uuid, torch_device_count=1) for i in range(2))
    assert speaking(judged(gathered(devices, ranks))) == {"RNK002": "error"}


def test_in_a_container_without_pids_ranks_tell_where_they_are(fake_nvml: FakeNvml) -> None:
    machine = fake_nvml("container_without_pids")
    set_pid_namespace(machine.root, "pid:[4026532201]")
    (machine.root / ".dockerenv").touch()
    for places, expected in (((0, 1), {}), ((0, 0), {"GPU001": "error"})):
        machine.change(**{"load:gpu1.busy": 97 if 1 in places else 0})
        ranks = placed(machine, places)
        assert speaking(judged(gathered(machine.watch(0.35, 0.03, ranks), ranks))) == expected


def test_utilization_that_the_driver_does_not_tell_is_no_pass(fake_nvml: FakeNvml) -> None:
    changes = {"all.fail.nvmlDeviceGetUtilizationRates": 3}
    diagnosis = judged(watched(fake_nvml, Case("healthy", changes=changes)))
    assert result(diagnosis, "GPU001") == ("passed", "")
    assert result(diagnosis, "GPU002") == ("skipped", "fewer than two GPUs with a rank tell how busy they are")


def test_a_driver_that_hangs(fake_nvml: FakeNvml) -> None:
    devices, _ = fake_nvml("healthy", **{"hang.nvmlInitWithFlags": 1}).answer(limit_s=0.3)
    assert devices is not None
    diagnosis = judged(gathered(devices, ()))
    assert speaking(diagnosis) == {"GPU005": "error"}
    assert result(diagnosis, "GPU010") == ("skipped", "the driver did not answer nvmlInit")


def test_no_driver_under_two_devices(fake_nvml: FakeNvml) -> None:
    machine = fake_nvml("healthy")
    machine.state.unlink()
    assert speaking(judged(gathered(machine.read(), ()))) == {"GPU010": "error"}


def test_a_device_that_the_driver_does_not_answer_for(fake_nvml: FakeNvml) -> None:
    machine = fake_nvml("healthy")
    add_pci_function(machine.root, "0000:c1:00.0")
    ranks = placed(machine, (0, 1))
    assert speaking(judged(gathered(machine.read(), ranks))) == {"GPU010": "error"}
    assert speaking(judged(gathered(machine.read({"SLURM_GPUS_ON_NODE": "2"}), ranks))) == {"GPU010": "note"}


def test_devices_picked_that_are_not_there(fake_nvml: FakeNvml) -> None:
    machine = fake_nvml("healthy")
    devices = machine.read({"CUDA_VISIBLE_DEVICES": "0,1,2,3"})
    assert speaking(judged(gathered(devices, placed(machine, (0, 1))))) == {"GPU010": "error"}


def test_a_cpu_build_of_torch_beside_devices(fake_nvml: FakeNvml) -> None:
    machine = fake_nvml("rtx4090_four")
    evidence = gathered(machine.read(), ())
    (host,) = evidence.hosts or ()
    assert host.interpreter is not None
    cpu_build = replace(host.interpreter, torch_version="2.13.0+cpu", torch_cuda=None)
    with_cpu_build = replace(evidence, hosts=(replace(host, interpreter=cpu_build),))
    assert speaking(judged(with_cpu_build)) == {"ENV013": "error"}


def test_a_driver_too_old_for_the_build(fake_nvml: FakeNvml) -> None:
    evidence = gathered(fake_nvml("rtx4090_four", cuda_driver=11040).read(), ())
    assert speaking(judged(evidence)) == {"ENV013": "error"}


def test_a_card_that_this_torch_was_not_built_for(fake_nvml: FakeNvml) -> None:
    machine = fake_nvml("healthy", **{"all.capability": "12.0"})
    capability = machine.read().devices[0].compute_capability
    ranks = tuple(
        replace(r, group=r.group and replace(r.group, compute_capability=capability)) for r in placed(machine, (0, 1))
    )
    ranks = tuple(replace(r, group=r.group and replace(r.group, arch_list=("sm_80", "sm_90"))) for r in ranks)
    assert speaking(judged(gathered(machine.read(), ranks))) == {"GPU013": "error"}


def test_no_device_at_all(fake_nvml: FakeNvml, tmp_path_factory: pytest.TempPathFactory) -> None:
    machine = fake_nvml("healthy")
    machine.state.unlink()
    machine.root = tmp_path_factory.mktemp("root")
    (machine.root / "sys/bus/pci/devices").mkdir(parents=True)
    (machine.root / "dev").mkdir()
    diagnosis = judged(gathered(machine.read(), ()))
    assert {r.reason for r in diagnosis.results if r.id.startswith("GPU") and r.id != "GPU013"} == {
        "no GPU on this machine"
    }


def test_the_literal_healthy_run_on_gpus_raises_nothing_from_any_check() -> None:
    assert speaking(diagnose(gpu_run(), CHECKS)) == {}
