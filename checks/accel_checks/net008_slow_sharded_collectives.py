"""NET008: all_gather or reduce_scatter far below all_reduce."""

from collections.abc import Iterator

from accel_doctor.bandwidth import size_text, world_timings
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity, Threshold
from accel_doctor.evidence import Evidence
from accel_doctor.expectation import expected

SHARE_PCT = Threshold(
    "NET008.warn_below_pct", 50, "a healthy all_gather is at 76 % of all_reduce with NVLS, else 100 %"
)
GLOO_SHARE_PCT = Threshold("NET008.gloo_warn_below_pct", 5, "gloo on busy cores was seen between 14 and 200 %")
LARGE_BYTES = 2**20
NATIVE = {"gloo": ("all_gather",)}
"""gloo makes reduce_scatter out of all_reduce: what is lost there is the backend's, not the machine's."""


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Compare bus bandwidths at the largest payload that was timed for both."""
    sweep = next(r.sweep for r in evidence.world if r.sweep)
    reference = world_timings(evidence.world, "all_reduce")
    compared = False
    for op in NATIVE.get(sweep.backend, ("all_gather", "reduce_scatter")):
        timings = world_timings(evidence.world, op)
        sizes = [size for size in timings.keys() & reference.keys() if size >= LARGE_BYTES]
        if not sizes:
            continue
        compared = True
        size = max(sizes)
        limit_pct = (GLOO_SHARE_PCT if sweep.backend == "gloo" else SHARE_PCT).of(evidence)
        if timings[size].busbw_gb_s < limit_pct / 100 * reference[size].busbw_gb_s:
            yield _finding(op, size, timings[size].busbw_gb_s, reference[size].busbw_gb_s, limit_pct)
        elif sweep.backend != "gloo":
            yield from _by_links(evidence, op, size, timings[size].busbw_gb_s, limit_pct)
    if not compared:
        raise NotApplicable(f"nothing of {size_text(LARGE_BYTES)} or more was timed for both")


def _by_links(evidence: Evidence, op: str, size_bytes: int, got_gb_s: float, limit_pct: float) -> Iterator[Finding]:
    """Find what keeps step with a slow all_reduce and is far below what these links give."""
    wanted = expected(evidence, op, size_bytes)
    if wanted.busbw_gb_s is not None and not wanted.derived and got_gb_s < limit_pct / 100 * wanted.busbw_gb_s:
        share_pct = 100 * got_gb_s / wanted.busbw_gb_s
        yield Finding(
            message=f"{op} reaches {got_gb_s:.3g} GB/s busbw at {size_text(size_bytes)}, {share_pct:.0f} % of the "
            f"{wanted.busbw_gb_s:.3g} GB/s to be expected ({wanted.source})",
            severity=Severity.WARNING,
            seen=f"{got_gb_s:.3g} GB/s",
            wanted=f"at least {limit_pct:.0f} % of {wanted.busbw_gb_s:.3g} GB/s",
            values={
                "busbw_gb_s": got_gb_s,
                "expected_busbw_gb_s": wanted.busbw_gb_s,
                "share_pct": share_pct,
                "size_bytes": size_bytes,
            },
        )


def _finding(op: str, size_bytes: int, got_gb_s: float, reference_gb_s: float, limit_pct: float) -> Finding:
    share_pct = 100 * got_gb_s / reference_gb_s
    return Finding(
        message=f"{op} reaches {got_gb_s:.3g} GB/s busbw at {size_text(size_bytes)}, {share_pct:.0f} % of the "
        f"{reference_gb_s:.3g} GB/s of all_reduce",
        severity=Severity.WARNING,
        seen=f"{share_pct:.0f} % of all_reduce",
        wanted=f"at least {limit_pct:.0f} % of all_reduce",
        values={
            "busbw_gb_s": got_gb_s,
            "all_reduce_busbw_gb_s": reference_gb_s,
            "share_pct": share_pct,
            "size_bytes": size_bytes,
        },
    )


CHECK = Check(
    id="NET008",
    name="slow-sharded-collectives",
    invariant=Invariant.FITS,
    title="all_gather or reduce_scatter is far slower than all_reduce",
    why="FSDP and ZeRO-3 gather every parameter twice a step and scatter every gradient: they live on these two.",
    fix="compare NCCL_ALGO and NCCL_PROTO with their defaults, and shard within a host only (HYBRID_SHARD)",
    severity=Severity.WARNING,
    judges=(Judge(needs=("ranks.sweep",), judge=judge),),
    consequence_of=("NET001", "NET002", "GPU005", "GPU006", "GPU007", "GPU012"),
    thresholds=(SHARE_PCT, GLOO_SHARE_PCT),
)
