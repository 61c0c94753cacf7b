"""Buffers of wrapped models, statistics of BatchNorm above all: do the replicas still agree."""

import sys
import zlib
from collections.abc import Iterator
from typing import Any

from . import models

MOST = 48
BYTES = 4 << 20


def note(step: int) -> int | None:
    """Record a checksum of each buffer of every wrapped model; return one of all, ``None`` where there is no buffer.

    Buffers that no checkpoint holds are scratch, and left out, as are those that DDP was told to ignore.
    """
    total = None
    for module, row in list(models._rows.items()):
        sums = _checksums(module)
        if sums:
            row["buffers"] = dict(list(sums.items())[:MOST])
            row["buffer_count"], row["buffers_step"] = len(sums), step
            total = zlib.crc32(repr(sorted(sums.items())).encode(), total or 0)
    return total


def _checksums(module: Any) -> dict[str, int]:  # noqa: ANN401 - a torch module
    ignored = getattr(module, "parameters_to_ignore", ())
    found: dict[str, int] = {}
    room = BYTES
    for name, buffer in _persistent(getattr(module, "module", module)):
        data = buffer.detach()
        data = data[: 1 << 16] if data.dim() else data
        room -= data.numel() * data.element_size()
        if room < 0:
            break
        if name not in ignored and not hasattr(buffer, "_local_tensor") and buffer.device.type != "meta":
            found[name] = zlib.crc32(memoryview(_bytes(data)))
    return found


def _persistent(model: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401
    for prefix, module in model.named_modules():
        for name, buffer in module._buffers.items():
            if buffer is not None and name not in module._non_persistent_buffers_set:
                yield f"{prefix}.{name}".lstrip("."), buffer


def _bytes(data: Any) -> Any:  # noqa: ANN401
    return data.cpu().contiguous().view(-1).view(sys.modules["torch"].uint8).numpy()
