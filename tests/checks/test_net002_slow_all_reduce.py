import pytest
from msgspec.structs import replace

from accel_checks.net002_slow_all_reduce import CHECK
from accel_doctor.evidence import Asked, CopyProbe, Device, Devices, Evidence, SweepProbe, Timing
from accel_doctor.testing import changed, findings, healthy_rank, healthy_run, outcome

H100 = {"name": "NVIDIA H100 80GB HBM3", "nvlinks_active": 18, "fabric": "completed"}
RTX = {"name": "NVIDIA GeForce RTX 4090", "nvlinks_active": 0}


def reaching(busbw_gb_s: float, backend: str, size_bytes: int = 2**29, world: int = 2, **changes: object) -> Evidence:
    timing = Timing(
        op="all_reduce", size_bytes=size_bytes, time_ms=1.0, calls=5, algbw_gb_s=busbw_gb_s, busbw_gb_s=busbw_gb_s
    )
    small = replace(timing, size_bytes=1024, busbw_gb_s=0.001)
    sweep = SweepProbe(backend=backend, world_size=world, timings=(small, timing))
    return healthy_run(ranks=tuple(replace(healthy_rank(n, world), sweep=sweep) for n in range(world)), **changes)


def devices(count: int, **fields: object) -> Devices:
    base = Device(index=0, host="ws1", uuid="", name="")
    return Devices(devices=tuple(replace(base, index=n, uuid=f"GPU-{n}", **fields) for n in range(count)))


def test_below_what_was_asked_for_is_an_error_on_any_backend() -> None:
    asked = Asked(min_bus_bandwidth_gb_s=10.0, sources={"min_bus_bandwidth_gb_s": "flag --min-bus-bandwidth"})
    (finding,) = findings(CHECK, reaching(2.5, "gloo", asked=asked))
    assert finding.message == (
        "all_reduce reaches 2.5 GB/s busbw at 512 MiB over 2 ranks, 25 % of the 10 GB/s to be expected "
        "(flag --min-bus-bandwidth)"
    )
    assert finding.severity.value == "error"
    assert finding.values["expected_busbw_gb_s"] == 10.0


def test_above_what_was_asked_for_passes() -> None:
    assert outcome(CHECK, reaching(12.0, "nccl", asked=Asked(min_bus_bandwidth_gb_s=10.0))).outcome.value == "passed"


def test_gloo_never_fails_unasked() -> None:
    result = outcome(CHECK, reaching(0.001, "gloo"))
    assert result.outcome.value == "skipped"
    assert result.reason == "nothing says what gloo should reach; 0.001 GB/s busbw at 512 MiB over 2 ranks"


def test_nvlink_gives_an_expectation_with_its_source() -> None:
    (finding,) = findings(CHECK, reaching(216.0, "nccl", devices=devices(2, **H100)))
    assert finding.severity.value == "warning"
    assert finding.wanted == (
        "330 GB/s (73% of 18 NVLinks of 25 GB/s a direction to NVSwitch, as a ring over NVLink reaches with this "
        "payload)"
    )
    (finding,) = findings(CHECK, reaching(100.0, "nccl", devices=devices(2, **H100)))
    assert finding.severity.value == "error"
    assert findings(CHECK, reaching(345.0, "nccl", devices=devices(2, **H100))) == ()


def test_thresholds_can_be_set() -> None:
    asked = Asked(thresholds={"NET002.warn_below_pct": 50.0})
    assert findings(CHECK, reaching(216.0, "nccl", asked=asked, devices=devices(2, **H100))) == ()


def test_a_small_payload_is_not_held_against_the_rate_of_the_links() -> None:
    (finding,) = findings(CHECK, reaching(40.0, "nccl", size_bytes=2**17, devices=devices(2, **H100)))
    assert finding.severity.value == "note"
    assert "nothing was measured of a ring over NVLink with so small a payload" in finding.message
    assert findings(CHECK, reaching(60.0, "nccl", size_bytes=2**20, devices=devices(2, **H100))) == ()


def test_consumer_cards_have_no_reference_and_get_a_note() -> None:
    result = outcome(CHECK, reaching(6.0, "nccl", devices=devices(2, **RTX)))
    (finding,) = result.findings
    assert result.outcome.value == "passed"
    assert finding.message == (
        "all_reduce reaches 6 GB/s busbw at 512 MiB over 2 ranks; nothing here says what it should be: PCIe whose rate "
        "is not told, through host memory: no peer access, and how fast all ranks copy at once was not measured"
    )
    assert finding.fix == "give what you expect with --min-bus-bandwidth"


def test_four_cards_bridged_in_pairs_are_not_held_against_the_bridge() -> None:
    bridged = devices(4, name="NVIDIA A100 80GB PCIe", nvlinks_active=12)
    (finding,) = findings(CHECK, reaching(20.0, "nccl", world=4, devices=bridged))
    assert finding.severity.value == "note"


def test_a_rank_that_arrives_late_does_not_make_the_wire_slow() -> None:
    evidence = reaching(345.0, "nccl", devices=devices(2, **H100))
    waiting = evidence.world[0].sweep
    assert waiting
    slow = replace(waiting, timings=tuple(replace(t, time_ms=50.0, busbw_gb_s=7.0) for t in waiting.timings))
    ranks = (replace(evidence.world[0], sweep=slow), evidence.world[1])
    assert findings(CHECK, replace(evidence, ranks=ranks)) == ()


def copying(evidence: Evidence, each_way_gb_s: float) -> Evidence:
    copies = CopyProbe(size_bytes=2**26, each_way_gb_s=each_way_gb_s)
    return replace(evidence, ranks=tuple(replace(r, copies=copies) for r in evidence.world))


def test_consumer_cards_are_held_against_what_all_ranks_copy_at_once_and_never_fail_by_it() -> None:
    (finding,) = findings(CHECK, copying(reaching(1.0, "nccl", devices=devices(2, **RTX)), 12.0))
    assert finding.severity.value == "warning"
    assert finding.wanted.startswith("6 GB/s (50% of the 12 GB/s at which all ranks copied to and from the host")
    assert findings(CHECK, copying(reaching(5.0, "nccl", devices=devices(2, **RTX)), 12.0)) == ()


@pytest.mark.parametrize(
    ("times_ms", "said"),
    [
        ({2**10: 7.0}, "not examined"),
        ({2**10: 7.0, 2**15: 9.0}, "not examined"),
        ({2**10: 0.4, 2**15: 6.0}, "failed"),
        ({2**10: 7.0, 2**20: 60.0}, "failed"),
    ],
)
def test_small_payloads_tell_of_bandwidth_only_where_their_bytes_take_the_time(
    times_ms: dict[int, float], said: str
) -> None:
    timings = tuple(
        Timing(
            op="all_reduce",
            size_bytes=size,
            time_ms=time_ms,
            calls=5,
            algbw_gb_s=size / time_ms / 1e6,
            busbw_gb_s=size / time_ms / 1e6,
        )
        for size, time_ms in times_ms.items()
    )
    ranks = tuple(changed(healthy_rank(r), "sweep", backend="gloo", timings=timings) for r in range(2))
    got = outcome(CHECK, healthy_run(ranks=ranks, asked=Asked(min_bus_bandwidth_gb_s=0.03)))
    assert {"skipped": "not examined"}.get(got.outcome.value, got.outcome.value) == said
