"""NET002: all-reduce is slower than this machine's links should make it."""

from collections.abc import Iterator

from accel_doctor.bandwidth import size_text, world_timings
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, Threshold
from accel_doctor.evidence import Evidence, Timing
from accel_doctor.expectation import expected

FAIL_PCT = Threshold("NET002.fail_below_pct", 40, "healthy machines of one kind are at 75 to 140 % of the expectation")
WARN_PCT = Threshold("NET002.warn_below_pct", 70, "the same, with room for the noise of one exam")

LEAST_BYTES = 2**20
"""Below it a collective tells of latency, and not of bandwidth, unless it takes far longer than a smaller one."""
BYTES_RATIO = 3


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Hold the bus bandwidth at the largest payload against what was asked for, or what the links give."""
    timings = world_timings(evidence.world, "all_reduce")
    if not timings:
        raise NotApplicable("all_reduce was not timed")
    largest = max(timings.values(), key=lambda t: t.size_bytes)
    asked = evidence.asked.min_bus_bandwidth_gb_s
    if asked is None:
        yield from _by_links(evidence, timings)
    elif largest.size_bytes < LEAST_BYTES and not _by_bytes(timings):
        raise NotApplicable(f"nothing of {size_text(LEAST_BYTES)} or more was timed; {_reached(evidence, largest)}")
    elif largest.busbw_gb_s < asked:
        source = evidence.asked.sources.get("min_bus_bandwidth_gb_s", "--min-bus-bandwidth")
        yield _finding(evidence, largest, asked, source, Severity.ERROR)


def _by_bytes(timings: dict[int, Timing]) -> bool:
    """Return whether the largest payload took its time for its bytes, and not for the latency of any payload."""
    return timings[max(timings)].time_ms > BYTES_RATIO * timings[min(timings)].time_ms


def _by_links(evidence: Evidence, timings: dict[int, Timing]) -> Iterator[Finding]:
    """Judge the largest payload for which something can be expected of these links."""
    largest = timings[max(timings)]
    if _backend(evidence) == "gloo":
        raise NotApplicable(f"nothing says what gloo should reach; {_reached(evidence, largest)}")
    wanted = expected(evidence, "all_reduce", largest.size_bytes)
    if wanted.busbw_gb_s is None:
        yield _note(evidence, largest, wanted.source)
        return
    share_pct = 100 * largest.busbw_gb_s / wanted.busbw_gb_s
    if share_pct < WARN_PCT.of(evidence):
        severe = share_pct < FAIL_PCT.of(evidence) and not wanted.derived
        yield _finding(
            evidence, largest, wanted.busbw_gb_s, wanted.source, Severity.ERROR if severe else Severity.WARNING
        )


def _backend(evidence: Evidence) -> str:
    return next((r.sweep.backend for r in evidence.world if r.sweep), "")


def _reached(evidence: Evidence, largest: Timing) -> str:
    ranks = sum(r.sweep is not None for r in evidence.world)
    return f"{largest.busbw_gb_s:.3g} GB/s busbw at {size_text(largest.size_bytes)} over {ranks} ranks"


def _finding(evidence: Evidence, largest: Timing, wanted_gb_s: float, source: str, severity: Severity) -> Finding:
    share_pct = 100 * largest.busbw_gb_s / wanted_gb_s
    return Finding(
        message=f"all_reduce reaches {_reached(evidence, largest)}, {share_pct:.0f} % of the "
        f"{wanted_gb_s:.3g} GB/s to be expected ({source})",
        severity=severity,
        seen=f"{largest.busbw_gb_s:.3g} GB/s",
        wanted=f"{wanted_gb_s:.3g} GB/s ({source})",
        values=_values(largest) | {"expected_busbw_gb_s": wanted_gb_s},
    )


def _note(evidence: Evidence, largest: Timing, why: str) -> Finding:
    return Finding(
        message=f"all_reduce reaches {_reached(evidence, largest)}; nothing here says what it should be: {why}",
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
