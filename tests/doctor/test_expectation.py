"""What collectives should reach: held against what healthy machines were measured at, and against known faults."""

from typing import NamedTuple

import pytest
from msgspec.structs import replace

from accel_doctor.evidence import Adapter, CopyProbe, Device, DevicePair, Devices, Evidence, Links, Machine, Port, Rank
from accel_doctor.expectation import NVLS, RING, expected, share
from accel_doctor.testing import healthy_rank, healthy_run
from accel_doctor.topology import islands, ring_over

MIB, GIB = 2**20, 2**30


class Kind(NamedTuple):
    """One kind of machine."""

    name: str
    capability: str
    links: int = 0
    link_gb_s: float | None = None
    ends: str = ""
    """``switch``, ``pairs`` (bridges), ``mesh`` or nothing."""
    generation: int = 5
    path: str = "node"
    peer: str = "ok"


A100 = Kind("NVIDIA A100-SXM4-80GB", "8.0", 12, 25.0, "switch", 4)
A100_MESH = Kind("NVIDIA A100-SXM4-40GB", "8.0", 12, 25.0, "mesh", 4)
A100_BRIDGE = Kind("NVIDIA A100 80GB PCIe", "8.0", 12, 25.0, "pairs", 4, path="host bridge")
A100_PCIE = Kind("NVIDIA A100 80GB PCIe", "8.0", generation=4, path="host bridge")
H100_NVL = Kind("NVIDIA H100 NVL", "9.0", 12, 25.0, "pairs")
H200 = Kind("NVIDIA H200", "9.0", 18, 25.0, "switch")
B200 = Kind("NVIDIA B200", "10.0", 18, 50.0, "switch")
H100_PCIE = Kind("NVIDIA H100 PCIe", "9.0")
RTX_PRO = Kind("NVIDIA RTX PRO 6000", "12.0")
RTX4090_PATCHED = Kind("NVIDIA GeForce RTX 4090", "8.9", generation=4, path="switch")
RTX4090 = Kind("NVIDIA GeForce RTX 4090", "8.9", generation=4, peer="unsupported")


def machine(kind: Kind, count: int, host: str = "ws1") -> Devices:
    addresses = [f"0000:{n + 1:02x}:00.0" for n in range(count)]
    devices = tuple(
        Device(
            index=n,
            cuda_index=n,
            host=host,
            uuid=f"GPU-{host}-{n}",
            name=kind.name,
            pci_bus_id=addresses[n],
            compute_capability=kind.capability,
            nvlinks_active=kind.links or None,
            nvlink_gb_s=kind.link_gb_s,
            nvlink_peers=_ends(kind, n, addresses) if kind.links else None,
            pcie_generation_max=kind.generation,
            pcie_width_max=16,
        )
        for n in range(count)
    )
    pairs = tuple(
        DevicePair(host=host, first=a, second=b, path=kind.path, read=kind.peer, write=kind.peer)
        for a in range(count)
        for b in range(a + 1, count)
    )
    return Devices(devices=devices, pairs=pairs)


def _ends(kind: Kind, number: int, addresses: list[str]) -> dict[str, int]:
    if kind.ends == "switch":
        return {"switch": kind.links}
    if kind.ends == "mesh":
        others = [a for a in addresses if a != addresses[number]]
        return {a: kind.links // len(others) for a in others}
    mate = number ^ 1
    return {addresses[mate]: kind.links} if mate < len(addresses) else {}


def on(devices: Devices, *, network_gb_s: float | None = None, **environment: str) -> Evidence:
    hosts = list(dict.fromkeys(d.host for d in devices.devices))
    ranks = tuple(_rank(n, d, len(devices.devices), environment) for n, d in enumerate(devices.devices))
    nics = tuple(Adapter(host=h, name="mlx5_0", kind="rdma", rate_gb_s=network_gb_s) for h in hosts if network_gb_s)
    return healthy_run(ranks=ranks, devices=replace(devices, links=Links(adapters=nics)))


def _rank(number: int, device: Device, world: int, environment: dict[str, str]) -> Rank:
    rank = healthy_rank(number, world)
    group = rank.group and replace(rank.group, device_uuid=device.uuid.removeprefix("GPU-"))
    return replace(rank, host=device.host, group=group, environment=environment)


def several(kind: Kind, count: int, hosts: int) -> Devices:
    each = [machine(kind, count, f"node{n}") for n in range(hosts)]
    return Devices(devices=tuple(d for m in each for d in m.devices), pairs=tuple(p for m in each for p in m.pairs))


def wanted(evidence: Evidence, size_bytes: int, op: str = "all_reduce") -> float:
    found = expected(evidence, op, size_bytes)
    assert found.busbw_gb_s is not None, found.source
    assert found.source
    return found.busbw_gb_s


# Measured on healthy machines; the sources stand beside the curves.
HEALTHY = (
    (A100, 8, {MIB: 36, 16 * MIB: 109, 134 * 10**6: 174, GIB: 228, 8 * GIB: 231.6}),
    (H200, 8, {MIB: 40, 16 * MIB: 220, 134 * 10**6: 412, 512 * MIB: 450, GIB: 464, 8 * GIB: 473}),
    (H200, 4, {8 * GIB: 363}),
    (B200, 8, {16 * GIB: 839}),
    (B200, 4, {MIB: 80, 16 * MIB: 331, GIB: 647, 8 * GIB: 673}),
    (A100_BRIDGE, 2, {GIB: 208}),
    (H100_NVL, 2, {16 * GIB: 208}),
    (A100_BRIDGE, 3, {GIB: 20}),
    (A100_BRIDGE, 4, {16 * GIB: 25}),
    (H100_PCIE, 8, {GIB: 35}),
    (RTX_PRO, 8, {32 * MIB: 22, GIB: 41}),
    (RTX4090_PATCHED, 4, {256 * MIB: 25.7, 2 * GIB: 26}),
    (RTX4090_PATCHED, 5, {32 * MIB: 24.7}),
)


@pytest.mark.parametrize(("kind", "count", "measured"), HEALTHY, ids=lambda value: str(getattr(value, "name", value)))
def test_a_healthy_machine_is_never_warned_and_a_tenth_of_it_always_fails(
    kind: Kind, count: int, measured: dict[int, float]
) -> None:
    evidence = on(machine(kind, count))
    for size_bytes, reached in measured.items():
        should = wanted(evidence, size_bytes)
        assert 0.85 <= reached / should <= 1.7, (size_bytes, reached, should)
        assert reached / 10 < 0.4 * should


@pytest.mark.parametrize(
    ("kind", "hosts", "network_gb_s", "measured"),
    [(B200, 4, 400.0, {MIB: 12, 16 * MIB: 72, GIB: 366, 16 * GIB: 377}), (A100, 3, 100.0, {8 * GIB: 85})],
    ids=["b200-efa", "a100-ib"],
)
def test_between_hosts_the_network_decides(
    kind: Kind, hosts: int, network_gb_s: float, measured: dict[int, float]
) -> None:
    evidence = on(several(kind, 8, hosts), network_gb_s=network_gb_s)
    for size_bytes, reached in measured.items():
        assert 0.85 <= reached / wanted(evidence, size_bytes) <= 1.7


def test_the_devices_of_every_machine_of_a_job_count() -> None:
    whole = on(several(A100, 8, 2), network_gb_s=100.0)
    assert whole.devices is not None
    assert whole.devices.links is not None
    parts = tuple(
        Machine(
            id=host,
            host=host,
            devices=replace(
                whole.devices,
                devices=tuple(d for d in whole.devices.devices if d.host == host),
                links=Links(adapters=tuple(a for a in whole.devices.links.adapters if a.host == host)),
            ),
        )
        for host in ("node0", "node1")
    )
    met = replace(whole, devices=parts[0].devices, machines=parts)
    assert wanted(met, GIB) == wanted(whole, GIB)
    assert expected(replace(met, machines=None), "all_reduce", GIB).busbw_gb_s is None


def test_the_network_over_tcp_is_not_guessed_at() -> None:
    found = expected(on(several(A100, 8, 2)), "all_reduce", GIB)
    assert found == (None, "the RDMA adapters of some host are not known", False)


def test_what_is_expected_grows_with_payload_and_differs_by_algorithm() -> None:
    eight = on(machine(H200, 8))
    assert wanted(eight, MIB) < wanted(eight, 16 * MIB) < wanted(eight, GIB) < wanted(eight, 16 * GIB)
    ring = wanted(on(machine(H200, 8), NCCL_NVLS_ENABLE="0"), 16 * GIB)
    assert ring == wanted(on(machine(H200, 8), NCCL_ALGO="Ring"), 16 * GIB) == wanted(eight, 16 * GIB, "all_gather")
    assert 0.85 < 367.6 / ring < 1.15
    assert 0.85 < 361 / wanted(eight, 16 * GIB, "reduce_scatter") < 1.15
    assert wanted(eight, 16 * GIB) > 1.2 * ring


def test_in_switch_reduction_needs_enough_ranks_of_a_new_enough_device() -> None:
    link_gb_s = {4: 450.0, 5: 450.0, 8: 450.0}
    shares = {n: wanted(on(machine(H200, n)), 16 * GIB) / rate for n, rate in link_gb_s.items()}
    assert shares == {4: RING.points[-1][1], 5: NVLS.points[-1][1], 8: NVLS.points[-1][1]}
    assert wanted(on(machine(B200, 5)), 64 * GIB) == pytest.approx(900 * RING.points[-1][1])


def test_links_that_are_down_lower_what_is_expected() -> None:
    half = machine(H200, 2)
    devices = tuple(replace(d, nvlink_peers={"switch": 9}, nvlinks_active=9) for d in half.devices)
    assert wanted(on(replace(half, devices=devices)), GIB) == wanted(on(half), GIB) / 2


def test_ranks_that_share_a_device_or_say_nothing_give_no_expectation() -> None:
    evidence = on(machine(H200, 2))
    twice = tuple(replace(r, group=r.group and replace(r.group, device_uuid="ws1-0")) for r in evidence.world)
    silent = (evidence.world[0], replace(evidence.world[1], group=None))
    for ranks in (twice, silent):
        found = expected(replace(evidence, ranks=ranks), "all_reduce", GIB)
        assert (found.busbw_gb_s, found.source) == (None, "which devices the ranks compute on is not known")


def test_without_peer_access_the_measured_copies_are_the_ceiling() -> None:
    evidence = on(machine(RTX4090, 4))
    assert expected(evidence, "all_reduce", GIB).busbw_gb_s is None
    slowest = (11.0, 12.0, 9.0, 12.0)
    copies = [CopyProbe(size_bytes=2**26, each_way_gb_s=rate) for rate in slowest]
    ranks = tuple(replace(r, copies=c) for r, c in zip(evidence.world, copies, strict=True))
    found = expected(replace(evidence, ranks=ranks), "all_reduce", GIB)
    assert (found.busbw_gb_s, found.derived) == (4.5, True)
    one_missing = (replace(ranks[0], copies=None), *ranks[1:])
    assert expected(replace(evidence, ranks=one_missing), "all_reduce", GIB).busbw_gb_s is None


@pytest.mark.parametrize(("size_bytes", "part"), [(MIB - 1, None), (MIB, 0.09), (4 * MIB, 0.225), (64 * GIB, 0.76)])
def test_shares_are_interpolated_over_the_payloads_logarithm(size_bytes: int, part: float | None) -> None:
    assert share(RING, size_bytes) == (None if part is None else pytest.approx(part))


def test_rings_are_told_with_their_source() -> None:
    told = {
        kind: ring_over(found := machine(kind, count), found.devices)
        for kind, count in ((H200, 8), (A100_BRIDGE, 2), (A100_BRIDGE, 4), (A100_MESH, 4), (RTX4090, 4))
    }
    assert [(r.kind, r.gb_s) for r in told.values()] == [
        ("nvswitch", 450.0),
        ("pcie host", 31.5),
        ("nvlink", 300.0),
        ("host memory", 31.5),
    ]
    assert told[H200].source == "18 NVLinks of 25 GB/s a direction to NVSwitch"


def test_a_narrow_uplink_of_some_devices_is_the_rings_narrowest_place() -> None:
    plain = machine(A100_PCIE, 2)
    ports = (
        Port(host="ws1", bus_id="0000:01:00.0", parent="0000:00:01.0", link_gb_s=31.5),
        Port(host="ws1", bus_id="0000:02:00.0", parent="0000:00:02.0", link_gb_s=7.88),
    )
    assert ring_over(plain, plain.devices).gb_s == 31.5
    assert ring_over(replace(plain, links=Links(ports=ports)), plain.devices).gb_s == 7.88


def test_islands_are_what_nvlink_joins() -> None:
    sizes = {
        kind: sorted(len(group) for group in islands(machine(kind, 4)))
        for kind in (H200, A100_BRIDGE, A100_MESH, RTX4090)
    }
    assert list(sizes.values()) == [[4], [2, 2], [4], [1, 1, 1, 1]]
    assert [len(group) for group in islands(several(H200, 8, 2))] == [8, 8]
