"""What the ranks' timings say about one collective of the whole world. Pure."""

from collections.abc import Sequence

from accel_doctor.evidence import Rank, Timing


def world_timings(ranks: Sequence[Rank], op: str) -> dict[int, Timing]:
    """Return one timing a size, smallest size first: that of the rank that arrived last and so did not wait.

    What the other ranks measured is the collective and their wait for that rank, which is not the wire's fault.
    """
    fastest: dict[int, Timing] = {}
    for timing in (t for r in ranks if r.sweep for t in r.sweep.timings if t.op == op):
        best = fastest.get(timing.size_bytes)
        if best is None or timing.time_ms < best.time_ms:
            fastest[timing.size_bytes] = timing
    return dict(sorted(fastest.items()))


def size_text(size_bytes: int) -> str:
    """Return ``512 B``, ``1 KiB``, ``4 MiB`` or ``2 GiB``."""
    for unit, power in (("GiB", 30), ("MiB", 20), ("KiB", 10)):
        if size_bytes >= 2**power:
            return f"{size_bytes / 2**power:.3g} {unit}"
    return f"{size_bytes} B"
