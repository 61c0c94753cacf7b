"""The checkpoint directory from every rank at once: seen by all, how fast, and whether a state comes back whole."""

import os
import shutil
from contextlib import suppress
from pathlib import Path

import msgspec
import torch
from accelerate.utils import DistributedType

from accel_doctor.evidence import RoundTrip, StorageProbe
from accel_doctor.machine.storage import probe_folder
from accel_doctor.probes.round_trip import round_trip
from accel_doctor.probes.seat import Seat, grouped
from accel_doctor.probes.write_speed import Speed, write_speed

SHARDED = (DistributedType.FSDP, DistributedType.DEEPSPEED, DistributedType.MEGATRON_LM)
MOST_BYTES = 2**30
"""Written on one machine, by all of its ranks together."""
SHARE_OF_FREE = 4
"""No more than a quarter of the free space is written."""


def probe(seat: Seat) -> StorageProbe:
    """Return what this rank saw of the directory; what was written is removed again."""
    folder = _agreed_folder(seat)
    try:
        seen = _look(folder, seat.accelerator.process_index)
        seen = _markers(seat, folder, seen)
        seen = _speed(seat, folder, seen)
        return _round_trip(seat, folder, seen)
    finally:
        _leave(seat, folder)


def _agreed_folder(seat: Seat) -> Path:
    """Return rank 0's name of the folder, below this rank's own idea of the directory."""
    names = [str(probe_folder(seat.options))]
    if grouped():
        with seat.record.collective("broadcast"):
            torch.distributed.broadcast_object_list(names, src=0, device=seat.device)
    return Path(names[0])


def _look(folder: Path, rank: int) -> StorageProbe:
    """Leave a marker for the peers and return what the file system says of itself."""
    seen = StorageProbe(path=str(folder.parent))
    try:
        folder.mkdir(exist_ok=True)
        space, place = os.statvfs(folder), folder.stat()
        seen = msgspec.structs.replace(
            seen,
            file_system_id=place.st_dev,
            free_bytes=space.f_bavail * space.f_frsize,
            free_inodes=space.f_favail if space.f_files else None,
        )
        _marker(folder, rank).write_text(folder.name)
    except OSError as error:
        return msgspec.structs.replace(seen, error=error.strerror or str(error))
    return seen


def _marker(folder: Path, rank: int) -> Path:
    return folder / f"rank-{rank}"


def _markers(seat: Seat, folder: Path, seen: StorageProbe) -> StorageProbe:
    """Return the evidence with the ranks whose markers can be read here, once all have left theirs."""
    _all(seat, ok=True)
    ranks = tuple(r for r in range(seat.accelerator.num_processes) if _has_marker(folder, r))
    return msgspec.structs.replace(seen, markers_seen=ranks)


def _has_marker(folder: Path, rank: int) -> bool:
    try:
        return _marker(folder, rank).read_text() == folder.name
    except OSError:
        return False


def _speed(seat: Seat, folder: Path, seen: StorageProbe) -> StorageProbe:
    """Return the evidence with what this rank could write while its peers wrote too."""
    if not _all(seat, ok=not seen.error):
        return seen
    local = int(os.environ.get("LOCAL_WORLD_SIZE", seat.accelerator.num_processes))
    most = min(MOST_BYTES, (seen.free_bytes or 0) // SHARE_OF_FREE) // max(local, 1)
    speed: Speed = write_speed(folder / f"speed-{seat.accelerator.process_index}", most)
    return msgspec.structs.replace(
        seen,
        written_bytes=speed.written_bytes,
        write_s=speed.write_s,
        fsync_s=speed.fsync_s,
        write_gb_s=speed.gb_s,
        error=speed.error,
    )


def _round_trip(seat: Seat, folder: Path, seen: StorageProbe) -> StorageProbe:
    """Return the evidence with a state saved and loaded, where all ranks write to one place."""
    everyone = seen.markers_seen == tuple(range(seat.accelerator.num_processes))
    if not _all(seat, ok=everyone and not seen.error):
        return msgspec.structs.replace(seen, why_no_round_trip="the ranks do not all write to one place")
    if seat.accelerator.distributed_type in SHARDED:
        kind = str(seat.accelerator.distributed_type.value)
        return msgspec.structs.replace(seen, why_no_round_trip=f"{kind} saves shards, which are not compared")
    trip: RoundTrip = round_trip(seat, folder / "state", lambda ok: _all(seat, ok=ok))
    return msgspec.structs.replace(seen, round_trip=trip)


def _all(seat: Seat, *, ok: bool) -> bool:
    """Return whether it is so on every rank; no rank goes on before all have come."""
    if not grouped():
        return ok
    answer = torch.tensor([float(ok)], device=seat.device)
    with seat.record.collective("all_reduce"):
        torch.distributed.all_reduce(answer, torch.distributed.ReduceOp.MIN)
        return bool(answer.item())


def _leave(seat: Seat, folder: Path) -> None:
    """Remove what was written, when nobody needs it any more."""
    _all(seat, ok=True)
    with suppress(OSError):
        shutil.rmtree(folder)
