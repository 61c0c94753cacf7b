"""Rehearses the user's command at several process counts: was the other card worth it?"""

import msgspec

from accel_doctor.evidence import Evidence, ScalePoint, Trace
from accel_doctor.exams.run import Request, examine
from accel_doctor.launch.process_count import with_processes
from accel_doctor.run_directory import make_run_directory

PHASES = ("data", "forward", "backward", "step", "loop", "save", "collective")


def examine_scaling(request: Request, counts: tuple[int, ...]) -> Evidence:
    """Return the evidence of the largest count, with a point for each.

    Raises:
        UsageError: the command names no process count, or cannot be started.
    """
    commands = [with_processes(request.words, count) for count in counts]
    points = []
    for count, words in zip(counts[:-1], commands[:-1], strict=True):
        folder = make_run_directory(request.run_dir / f"scaling-{count}", request.cwd)
        points.append(_point(count, examine(request._replace(words=words, run_dir=folder))))
    last = examine(request._replace(words=commands[-1]))
    points.append(_point(counts[-1], last))
    return msgspec.structs.replace(last, scaling=tuple(p for p in points if p is not None))


def _point(processes: int, evidence: Evidence) -> ScalePoint | None:
    """Return the throughput of one rehearsal; ``None`` when it took fewer than two steps."""
    traces = [rank.trace for rank in evidence.world if rank.trace is not None]
    first = traces[0] if traces else None
    if first is None or first.steps < 2 or first.first_step_s is None or first.last_step_s is None:
        return None
    batch = sum(_rows_per_step(trace) for trace in traces)
    seconds = max(first.last_step_s - first.first_step_s, 1e-6)
    return ScalePoint(
        processes=processes,
        steps=first.steps,
        rows_per_s=round((first.steps - 1) * batch / seconds, 2),
        effective_batch=round(batch),
        shares_pct=_shares(traces),
    )


def _rows_per_step(trace: Trace) -> float:
    rows = sum(e.rows for loader in trace.loaders for e in loader.epochs if e.backwards)
    batches = sum(e.batches for loader in trace.loaders for e in loader.epochs if e.backwards)
    backwards = sum(b.count for b in trace.backwards)
    return rows / max(1, batches) * backwards / max(1, trace.steps)


def _shares(traces: list[Trace]) -> dict[str, float]:
    spent = {phase: sum(getattr(t.times, f"{phase}_s") for t in traces) for phase in PHASES}
    total = sum(spent.values()) or 1.0
    return {phase: round(100 * seconds / total, 1) for phase, seconds in spent.items()}
