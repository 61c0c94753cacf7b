"""Why ranks gave no evidence of a probe, for ``Evidence.absent``. Pure."""

from collections.abc import Sequence

from accel_doctor.evidence import Rank

PROBES = ("group", "guards", "data", "training", "sweep", "compute")


def why_unseen(ranks: Sequence[Rank]) -> dict[str, str]:
    """Return the reason for each probe that no rank has, by its need: ``{"ranks.sweep": "…"}``."""
    unseen = [name for name in PROBES if all(getattr(r, name) is None for r in ranks)]
    return {f"ranks.{name}": why for name in unseen if (why := _why(name, ranks))}


def _why(name: str, ranks: Sequence[Rank]) -> str:
    if name == "sweep" and any(r.compute for r in ranks):
        return "one rank has nobody to exchange data with" if len(ranks) == 1 else "each rank is alone"
    last = [f"{r.name} ended in its phase {r.phases[-1].name}" for r in ranks if r.phases]
    return last[0] if last else ""
