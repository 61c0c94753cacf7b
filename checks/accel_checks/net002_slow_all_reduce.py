"""NET002: all-reduce is slower than this machine's links should make it."""

import re
from collections.abc import Iterator
from typing import NamedTuple

from accel_doctor.bandwidth import size_text, world_timings
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, Threshold
from accel_doctor.evidence import Device, Evidence, Timing

FAIL_PCT = Threshold("NET002.fail_below_pct", 40, "a healthy ring is at 65 to 110 % of the expectation from 256 MiB on")
WARN_PCT = Threshold("NET002.warn_below_pct", 70, "the same, with room for the noise of one exam")
RING_SHARE = 0.8
"""Bus bandwidth of a large ring all-reduce over the link rate: 80 to 82 % on H200 and B200 (ml-engineering)."""
LARGE_BYTES = 256 * 2**20
GB_S_A_LINK = ((r"B[123]00|GB[123]00", 50.0), (r"P100", 20.0), (r"3090|A6000|A5000|A4500", 14.0))
"""NVLink rate a link and direction where it is not 25 GB/s (NVLink 2 to 4)."""


class Expectation(NamedTuple):
    """What all-reduce should reach here."""

    busbw_gb_s: float
    source: str


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Hold the bus bandwidth at the largest payload against what was asked for, or what the links give."""
    timings = world_timings(evidence.world, "all_reduce")
    if not timings:
        raise NotApplicable("all_reduce was not timed")
    largest = max(timings.values(), key=lambda t: t.size_bytes)
    asked = evidence.asked.min_bus_bandwidth_gb_s
    if asked is not None:
        source = evidence.asked.sources.get("min_bus_bandwidth_gb_s", "--min-bus-bandwidth")
        if largest.busbw_gb_s < asked:
            yield _finding(evidence, largest, Expectation(asked, source), Severity.ERROR)
    else:
        yield from _by_links(evidence, largest)


def _by_links(evidence: Evidence, largest: Timing) -> Iterator[Finding]:
    if _backend(evidence) == "gloo":
        raise NotApplicable(f"nothing says what gloo should reach; {_reached(evidence, largest)}")
    expected = link_expectation(evidence)
    if expected is None or largest.size_bytes < LARGE_BYTES:
        yield _note(evidence, largest)
        return
    share_pct = 100 * largest.busbw_gb_s / expected.busbw_gb_s
    if share_pct < WARN_PCT.of(evidence):
        severity = Severity.ERROR if share_pct < FAIL_PCT.of(evidence) else Severity.WARNING
        yield _finding(evidence, largest, expected, severity)


def link_expectation(evidence: Evidence) -> Expectation | None:
    """Return what a ring over the NVLinks of one host gives; ``None`` where ranks or links are of another kind."""
    devices = [d for d in evidence.devices.devices if d.visible] if evidence.devices else []
    rates = {_nvlink_gb_s(d) for d in devices}
    one_host = len({r.host for r in evidence.world}) == 1
    if not one_host or len(devices) < 2 or len(rates) != 1 or 0.0 in rates or not _all_linked(devices):
        return None
    rate, links = rates.pop(), devices[0].nvlinks_active
    return Expectation(rate * RING_SHARE, f"{RING_SHARE:.0%} of {links} NVLinks with {rate:g} GB/s a direction")


def _all_linked(devices: list[Device]) -> bool:
    """Return whether NVLink joins all devices: a bridge joins two, only boards with switches join more."""
    return len(devices) == 2 or all("SXM" in d.name or d.fabric == "completed" for d in devices)


def _nvlink_gb_s(device: Device) -> float:
    """Return the rate of the links that are up, in one direction; links that are down are another check's finding."""
    a_link = next((rate for pattern, rate in GB_S_A_LINK if re.search(pattern, device.name)), 25.0)
    return a_link * (device.nvlinks_active or 0)


def _backend(evidence: Evidence) -> str:
    return next((r.sweep.backend for r in evidence.world if r.sweep), "")


def _reached(evidence: Evidence, largest: Timing) -> str:
    ranks = sum(r.sweep is not None for r in evidence.world)
    return f"{largest.busbw_gb_s:.3g} GB/s busbw at {size_text(largest.size_bytes)} over {ranks} ranks"


def _finding(evidence: Evidence, largest: Timing, expected: Expectation, severity: Severity) -> Finding:
    share_pct = 100 * largest.busbw_gb_s / expected.busbw_gb_s
    return Finding(
        message=f"all_reduce reaches {_reached(evidence, largest)}, {share_pct:.0f} % of the "
        f"{expected.busbw_gb_s:.3g} GB/s that {expected.source} asks for",
        severity=severity,
        seen=f"{largest.busbw_gb_s:.3g} GB/s",
        wanted=f"{expected.busbw_gb_s:.3g} GB/s ({expected.source})",
        values=_values(largest) | {"expected_busbw_gb_s": expected.busbw_gb_s},
    )


def _note(evidence: Evidence, largest: Timing) -> Finding:
    return Finding(
        message=f"all_reduce reaches {_reached(evidence, largest)}; nothing here says what it should be",
        severity=Severity.NOTE,
        seen=f"{largest.busbw_gb_s:.3g} GB/s",
        wanted="a reference for these links and this payload",
        values=_values(largest),
        fix="give what you expect with --min-bus-bandwidth",
        command=f"accel-doctor --min-bus-bandwidth {0.9 * largest.busbw_gb_s:.3g}",
    )


def _values(largest: Timing) -> dict[str, float]:
    return {"busbw_gb_s": largest.busbw_gb_s, "size_bytes": largest.size_bytes, "time_ms": largest.time_ms}


CHECK = Check(
    id="NET002",
    name="slow-all-reduce",
    invariant=Invariant.FITS,
    title="The bus bandwidth of all-reduce is below what these links should give",
    why="Every step waits until the gradients are averaged; a link at half its rate doubles that wait.",
    fix="look for a link that is down or narrow (GPU006, GPU007), peer access switched off (GPU012, NCCL_P2P_DISABLE), "
    "or traffic over TCP (NCCL_DEBUG=INFO names the transport)",
    judges=(Judge(needs=("ranks.sweep",), judge=judge),),
    consequence_of=("GPU005", "GPU006", "GPU007", "GPU012", "NET004"),
    thresholds=(FAIL_PCT, WARN_PCT),
)
