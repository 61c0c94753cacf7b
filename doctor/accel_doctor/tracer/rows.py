"""What a batch is: how many rows, and a checksum of each."""

import zlib
from collections.abc import Iterator
from typing import Any

LEAVES = 3
ROWS = 64
BYTES = 1024


def leaves(batch: Any, depth: int = 0) -> Iterator[Any]:  # noqa: ANN401
    """Yield the tensors of a batch, at most four levels deep."""
    if hasattr(batch, "shape") and hasattr(batch, "dtype"):
        yield batch
    elif depth < 4 and hasattr(batch, "values") and callable(batch.values):
        for value in list(batch.values()):
            yield from leaves(value, depth + 1)
    elif depth < 4 and isinstance(batch, (list, tuple)):
        for value in batch[:16]:
            yield from leaves(value, depth + 1)


def count(batch: Any) -> int:  # noqa: ANN401
    """Return the rows of a batch: the first dimension of its first tensor, or its length."""
    for leaf in leaves(batch):
        return int(leaf.shape[0]) if len(leaf.shape) else 1
    return len(batch) if hasattr(batch, "__len__") else 0


def checksums(batch: Any) -> list[int]:  # noqa: ANN401
    """Return a checksum of each row over the first CPU tensors; empty where there is none."""
    found = [leaf for leaf in leaves(batch) if len(leaf.shape) and str(getattr(leaf, "device", "cpu")) == "cpu"][
        :LEAVES
    ]
    if not found:
        return []
    length = min(ROWS, *(int(leaf.shape[0]) for leaf in found))
    sums = [0] * length
    for leaf in found:
        array = leaf.detach() if hasattr(leaf, "detach") else leaf
        array = array.numpy() if hasattr(array, "numpy") and array.dtype not in _without_numpy(array) else array
        if not hasattr(array, "tobytes"):
            continue
        for i in range(length):
            sums[i] = zlib.crc32(array[i].tobytes()[:BYTES], sums[i])
    return sums


def _without_numpy(tensor: Any) -> tuple[Any, ...]:  # noqa: ANN401
    return (tensor.dtype,) if str(tensor.dtype) in ("torch.bfloat16", "torch.float8_e4m3fn") else ()
