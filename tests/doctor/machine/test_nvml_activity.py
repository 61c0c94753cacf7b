"""Activity beyond utilization, and links, through the real pynvml and a fake library."""

import json

import pytest

from accel_doctor.evidence import Device, Sample
from accel_doctor.machine.nvml_activity import Activity
from accel_doctor.machine.nvml_links import nominal_gb_s
from fake_nvml.fixture import FakeNvml
from fake_nvml.machine import Machine

pytestmark = pytest.mark.ranks

LOOKS = """
import json, sys, time
from accel_doctor.machine.nvml import Nvml
from accel_doctor.machine.nvml_activity import ActivityMeter
door = Nvml()
door.open()
(_, first), *_ = door.handles()
meter = ActivityMeter(door, first.value)
told = []
for _ in range(3):
    told.append(meter.look()._asdict())
    time.sleep(0.05)
meter.close()
print(json.dumps([told, meter.absent]))
"""


def looks(machine: Machine) -> tuple[list[Activity], dict[str, str]]:
    told, absent = json.loads(machine.python(LOOKS))
    return [Activity(**look) for look in told], absent


def measured(device: Device) -> list[Sample]:
    return [s for s in device.samples if s.pcie_rx_gb_s is not None]


def test_a_device_that_measures_itself_tells_its_units_and_links(fake_nvml: FakeNvml) -> None:
    (first, *later), absent = looks(fake_nvml("healthy", now="load"))
    assert first == Activity()
    assert later == [Activity(91.0, 58.0, 44.0, 0.944, 0.367, 100.663, 100.663)] * 2
    assert absent == {}


def test_a_metric_that_one_device_lacks_leaves_the_rest(fake_nvml: FakeNvml) -> None:
    machine = fake_nvml("healthy", now="load")
    machine.remove("all.gpm5", "load:all.gpm5")
    (_, second, _), absent = looks(machine)
    assert (second.sm_pct, second.tensor_pct, second.dram_pct) == (91.0, None, 44.0)
    assert absent == {"tensor_pct": "Not Supported"}


def test_an_older_device_counts_its_traffic_and_says_why_not_its_units(fake_nvml: FakeNvml) -> None:
    changes = {"now": "load", "all.field139": "1000000 | 1500000 | 2000000", "all.field138": "0 | 500000 | 500000"}
    (first, second, third), absent = looks(fake_nvml("a100_pcie_pair", **changes))
    assert (first.pcie_rx_gb_s, first.pcie_tx_gb_s, first.nvlink_rx_gb_s) == (8.1, 7.9, None)
    assert second.nvlink_rx_gb_s is not None
    assert 1 < second.nvlink_rx_gb_s <= 500000 * 1024 / 0.05e9
    assert third.nvlink_tx_gb_s == 0.0
    assert absent == dict.fromkeys(("sm_pct", "tensor_pct", "dram_pct"), "Not Supported")


def test_a_device_that_tells_nothing_has_reasons_and_no_zeros(fake_nvml: FakeNvml) -> None:
    machine = fake_nvml("h200_mig")
    told, absent = looks(machine)
    assert told == [Activity()] * 3
    assert set(absent) == set(Activity._fields)


def test_a_monitor_that_fails_in_mid_run_leaves_the_looks(fake_nvml: FakeNvml) -> None:
    machine = fake_nvml("healthy", **{"load:gpu0.fail.nvmlGpmSampleGet": "0 | 0 | 999"})
    first, second = machine.watch(seconds=2.3).devices
    assert len([s for s in first.samples if s.busy_pct == 97.0]) > 20
    assert first.absent["sm_pct"] == "Unknown Error"
    assert [s.sm_pct for s in measured(second)] == [91.0] * len(measured(second)) != []


def test_the_sampler_looks_at_activity_once_a_second(fake_nvml: FakeNvml) -> None:
    device = fake_nvml("healthy").watch(seconds=2.3).devices[0]
    assert 1 <= len(measured(device)) <= 2
    assert all((s.sm_pct, s.tensor_pct, s.nvlink_rx_gb_s) == (91.0, 58.0, 100.663) for s in measured(device))


def test_counters_that_grow_meanwhile_are_told_apart(fake_nvml: FakeNvml) -> None:
    changes = {"gpu0.pcie_replays": "3 | 9", "gpu0.ecc_uncorrected": "1 | 2", "gpu1.remapped_rows": 4}
    first, second = fake_nvml("healthy", **changes).watch().devices
    assert (first.pcie_replays, first.pcie_replays_during) == (3, 6)
    assert (first.ecc_uncorrected, first.ecc_uncorrected_during) == (1, 1)
    assert (second.pcie_replays_during, second.ecc_uncorrected_during, second.remapped_rows) == (0, 0, 4)


@pytest.mark.parametrize(
    ("told", "nominal"), [(25.0, 25.0), (25.781, 25.0), (26.562, 25.0), (53.125, 50.0), (20.0, 20.0), (14.062, 14.06)]
)
def test_link_rates_are_what_the_link_carries(told: float, nominal: float) -> None:
    assert nominal_gb_s(told) == nominal


def test_links_tell_where_they_end(fake_nvml: FakeNvml) -> None:
    bridged = fake_nvml("a100_nvlink_bridge").read().devices
    assert [(d.nvlinks_active, d.nvlink_gb_s, d.nvlink_peers) for d in bridged] == [
        (12, 25.0, {"0000:11:00.0": 12}),
        (12, 25.0, {"0000:01:00.0": 12}),
    ]
    unknown = fake_nvml("nvlink_half_down", **{"all.fail.nvmlDeviceGetNvLinkRemoteDeviceType": 3}).read().devices[0]
    assert (unknown.nvlinks_active, unknown.nvlink_peers) == (9, None)
    assert unknown.absent["nvlink_peers"] == "Not Supported"
