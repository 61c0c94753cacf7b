"""Reads what the tracer writes beside a rank's own file: ``<host>-<pid>.trace``, one summary that is replaced."""

from pathlib import Path

import msgspec

from accel_doctor.evidence.rank import Rank
from accel_doctor.evidence.rank_file import rank_paths, read_rank
from accel_doctor.evidence.run import Trace


def trace_path(path: Path) -> Path:
    """Return where the rank that writes ``path`` keeps its summary."""
    return path.with_name(f"{path.name.removesuffix('.jsonl')}.trace")


def read_trace(path: Path) -> Trace | None:
    """Return the summary of the rank that writes ``path``; ``None`` when there is none yet."""
    try:
        return msgspec.json.decode(trace_path(path).read_bytes(), type=Trace)
    except (OSError, msgspec.DecodeError):
        return None


def read_traced_ranks(run_dir: Path) -> tuple[Rank, ...]:
    """Return every rank that has written who it is, with what its tracer saw."""
    seen = ((path, read_rank(path)) for path, _ in rank_paths(run_dir))
    return tuple(msgspec.structs.replace(rank, trace=read_trace(path)) for path, rank in seen if rank is not None)
