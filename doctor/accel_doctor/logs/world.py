"""Which ranks a run had, as far as its log tells, and which of them the log would have if they spoke. Pure."""

from accel_doctor.evidence.log import Log

MOST = 65536


def numbers(ranks: list[int] | tuple[int, ...]) -> str:
    """Return ``rank 1`` or ``ranks 0, 1 and 5``, with runs folded."""
    runs: list[list[int]] = []
    for rank in sorted(set(ranks)):
        if runs and rank == runs[-1][-1] + 1:
            runs[-1] = [runs[-1][0], rank]
        else:
            runs.append([rank])
    words = ["-".join(map(str, run)) for run in runs]
    shown = [*words[:6], f"{len(words) - 6} more runs"] if len(words) > 7 else words
    listed = shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} and {shown[-1]}"
    return f"rank {listed}" if len(set(ranks)) == 1 else f"ranks {listed}"


def world_of(log: Log) -> set[int]:
    """Return the ranks that the log knows of: those it names, and every rank below them."""
    known = heard(log)
    below = max(max(known, default=-1) + 1, log.world_size or 0, log.processes)
    return known | set(range(min(below, MOST)))


def heard(log: Log) -> set[int]:
    """Return the ranks of which a line of the log is, or speaks."""
    return {
        *log.ranks,
        *(d.rank for d in log.deaths if d.rank is not None and d.by != "srun"),
        *(w.rank for w in log.waits),
    }


def is_whole(log: Log) -> bool:
    """Return whether the log says how many ranks there were; else one above the highest may be missing."""
    return bool(log.world_size) or log.processes > max(heard(log), default=0)


def at_large(missing: list[int], inside: list[int], log: Log) -> bool:
    """Return whether ranks that did not say that they waited did so of their own: this log would have it.

    A log of one host does not have the ranks of another one, and they are no culprits for that.
    """
    unheard = [rank for rank in missing if rank not in heard(log)]
    if len(missing) > len(inside):
        return False
    if not unheard or log.processes >= len(world_of(log)):
        return True
    a_host = unheard == list(range(unheard[0], unheard[-1] + 1)) and len(world_of(log)) % len(unheard) == 0
    at_edge = unheard[0] > inside[-1] or unheard[-1] < inside[0]
    return len(unheard) < len(inside) and not (len(unheard) > 1 and a_host and at_edge)
