import msgspec

from accel_checks.env009_wrong_affinity import CHECK
from accel_doctor.evidence import Device, Devices, Evidence
from accel_doctor.testing import changed, findings, healthy_host, healthy_rank, healthy_run, outcome


def bound(*masks: range | tuple[int, ...], **host: object) -> Evidence:
    ranks = tuple(
        msgspec.structs.replace(healthy_rank(r, len(masks)), cpus=tuple(mask)) for r, mask in enumerate(masks)
    )
    return healthy_run(ranks=ranks, hosts=(msgspec.structs.replace(healthy_host(), **host),))


def on_devices(evidence: Evidence, *nodes: int | None) -> Evidence:
    devices = tuple(
        Device(index=i, host="ws1", uuid=f"GPU-{i}", name="H100", numa_node=node) for i, node in enumerate(nodes)
    )
    ranks = tuple(changed(r, "group", device_uuid=f"GPU-{r.rank}") for r in evidence.world)
    return msgspec.structs.replace(evidence, devices=Devices(devices=devices), ranks=ranks)


def test_ranks_bound_to_the_same_cores() -> None:
    (finding,) = findings(CHECK, bound(range(4), range(4)))
    assert finding.message == "all 2 ranks are bound to the same 4 of 16 CPUs"
    assert finding.seen == "CPUs 0-3 for every rank"
    assert finding.ranks == (0, 1)


def test_an_unbound_full_mask_is_no_binding() -> None:
    assert findings(CHECK, bound(range(16), range(16))) == ()


def test_a_job_that_was_given_few_cpus_binds_nobody() -> None:
    assert findings(CHECK, bound(range(4), range(4), cpus=tuple(range(4)))) == ()


def test_ranks_whose_devices_are_beside_one_node_rightly_share_it() -> None:
    assert findings(CHECK, on_devices(bound(range(8), range(8)), 0, 0)) == ()


def test_cores_of_its_own_for_each_rank_are_right() -> None:
    assert findings(CHECK, bound(range(4), range(4, 8))) == ()


def test_a_rank_on_the_other_node_than_its_device() -> None:
    (finding,) = findings(CHECK, on_devices(bound(range(8), (0, 1, 2, 5)), 0, 1))
    assert finding.message == "rank 1 runs on CPUs 0-2,5; GPU 1 is beside those of NUMA node 1"
    assert finding.wanted == "CPUs 8-15 of NUMA node 1"
    assert finding.ranks == (1,)


def test_a_mask_that_holds_some_of_the_near_cpus_is_no_fault() -> None:
    assert findings(CHECK, on_devices(bound(range(16), range(16)), 0, 1)) == ()


def test_a_device_whose_node_is_unknown_is_not_judged() -> None:
    assert findings(CHECK, on_devices(bound(range(8), range(8, 16)), None, None)) == ()


def test_without_masks_nothing_is_judged() -> None:
    assert outcome(CHECK, bound((), ())).reason == "the ranks did not record the CPUs they may use"


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"
