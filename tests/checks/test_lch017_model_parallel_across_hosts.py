import pytest
from msgspec.structs import replace

from accel_checks.lch017_model_parallel_across_hosts import CHECK
from accel_doctor.evidence import Device, Evidence, Setting, Value
from accel_doctor.testing import findings, healthy_launch, healthy_run, outcome
from accel_doctor.testing_gpu import gpu_run, healthy_gpu


def asking(world: int, machines: int = 1, *devices: Device, **sizes: int) -> Evidence:
    launch = healthy_launch(world)
    values: dict[str, Value] = {"num_processes": world, "num_machines": machines, "use_parallelism_config": True}
    values |= {f"parallelism_config_{name}_size": size for name, size in sizes.items()}
    settings = {name: Setting(value=value, source="accelerate.yaml") for name, value in values.items()}
    return replace(gpu_run(*devices) if devices else healthy_run(), launch=replace(launch, settings=settings))


def bridged(count: int) -> list[Device]:
    """Return cards that bridges join in pairs."""
    cards = [healthy_gpu(i) for i in range(count)]
    return [replace(card, nvlink_peers={cards[i ^ 1].pci_bus_id: 12}, fabric=None) for i, card in enumerate(cards)]


def test_tensor_parallelism_over_two_hosts() -> None:
    (finding,) = findings(CHECK, asking(16, 2, tp=16))
    assert finding.severity.value == "warning"
    assert finding.message == (
        "accelerate.yaml asks for tensor parallelism over 16 ranks, and with 8 ranks a host the group of ranks "
        "0, 1, 2, 3, 4, 5, 6 … 15 spans 2 hosts"
    )
    assert finding.values == {"group_size": 16, "ranks_a_host": 8, "hosts": 2}


def test_a_size_that_does_not_divide_the_ranks_of_a_host() -> None:
    (finding,) = findings(CHECK, asking(12, 2, tp=4))
    assert "the group of ranks 4, 5, 6, 7 spans 2 hosts" in finding.message


def test_the_outer_dimension_leaves_the_host_first() -> None:
    (finding,) = findings(CHECK, asking(16, 2, tp=4, cp=4))
    assert "context parallelism over 4 ranks" in finding.message
    assert finding.ranks == (0, 4, 8, 12)


def test_hybrid_sharding_over_more_than_a_host() -> None:
    (finding,) = findings(CHECK, asking(32, 4, dp_shard=16, dp_replicate=2))
    assert "sharding over 16 ranks" in finding.message
    assert findings(CHECK, asking(32, 4, dp_shard=8, dp_replicate=4)) == ()


def test_tensor_parallelism_over_two_bridged_pairs() -> None:
    (finding,) = findings(CHECK, asking(4, 1, *bridged(4), tp=4))
    assert finding.message == (
        "accelerate.yaml asks for tensor parallelism over 4 ranks, and no NVLink joins all GPUs of ranks 0, 1, 2, 3: "
        "they exchange over PCIe"
    )
    assert findings(CHECK, asking(4, 1, *bridged(4), tp=2)) == ()


@pytest.mark.parametrize(
    "evidence",
    [
        asking(16, 2, tp=8, dp_shard=2),
        asking(16, 2, tp=2, cp=4, dp_shard=2),
        asking(4, 1, *(healthy_gpu(i) for i in range(4)), tp=4),
        asking(4, 1, *(healthy_gpu(i, nvlink_peers=None, nvlinks_active=None, fabric=None) for i in range(4)), tp=4),
        asking(64, 8, dp_shard=64),
    ],
    ids=["tp-fits", "tp-and-cp-fit", "nvswitch", "no-nvlink-anywhere", "plain-sharding-spans-hosts"],
)
def test_healthy(evidence: Evidence) -> None:
    result = outcome(CHECK, evidence)
    assert (result.outcome.value, result.findings) in (("passed", ()), ("skipped", ()))


def test_without_such_a_group() -> None:
    assert outcome(CHECK, healthy_run()).reason == "no model-parallel or hybrid-sharded group is asked for"
