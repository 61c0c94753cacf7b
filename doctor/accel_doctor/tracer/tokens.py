"""Mean losses over tokens: how many tokens each micro-batch had, read from the loss's own graph."""

import sys
from typing import Any

from .core import Row, core

STEPS = 16
MICRO_BATCHES = 64
DEEPEST = 12
LOSSES = ("NllLossBackward0", "NllLoss2DBackward0")
MEAN = 1
"""torch's number for ``reduction="mean"``."""
THROUGH = (
    "ToCopyBackward0", "AliasBackward0", "ViewBackward0", "ReshapeAliasBackward0", "SqueezeBackward0",
    "SqueezeBackward1", "UnsqueezeBackward0", "CloneBackward0", "_DDPSinkBackward",
)  # fmt: skip


def note(row: Row, loss: Any) -> None:  # noqa: ANN401 - the argument of backward
    """Add a micro-batch to the record of its optimizer step, for the first steps."""
    if core.steps >= STEPS:
        return
    losses = row.setdefault("token_losses", [])
    if not losses or losses[-1]["step"] != core.steps + 1:
        losses.append({"step": core.steps + 1, "tokens": [], "targets": [], "rows": [], "factors": []})
    seen = _mean_loss(loss) if len(losses[-1]["tokens"]) < MICRO_BATCHES else None
    if seen is not None:
        tokens, targets, factor = seen
        losses[-1]["tokens"].append(tokens)
        losses[-1]["targets"].append(targets)
        losses[-1]["rows"].append((core.fields.get("_epoch") or {}).get("_size", 0))
        losses[-1]["factors"].append(factor)


def _mean_loss(loss: Any) -> tuple[int, int, float] | None:  # noqa: ANN401
    """Return the tokens and targets of a mean cross entropy, and the number that the script multiplied it by.

    ``None`` where the graph shows anything else: a sum, class weights, a second loss, or a factor that is no number.
    """
    node, factor = getattr(loss, "grad_fn", None), 1.0
    for _ in range(DEEPEST):
        if node is None:
            return None
        name = node.name()
        if name in LOSSES:
            return _counted(node, factor)
        if name in ("DivBackward0", "MulBackward0"):
            number = constant(node)
            if not number:
                return None
            factor = factor / number if name == "DivBackward0" else factor * number
        elif name not in THROUGH:
            return None
        node = next((n for n, _ in node.next_functions if n is not None), None)
    return None


def _counted(node: Any, factor: float) -> tuple[int, int, float] | None:  # noqa: ANN401
    if node._saved_reduction != MEAN or node._saved_weight is not None:
        return None
    weight = node._saved_total_weight
    if weight.is_cuda and sys.modules["torch"].cuda.is_current_stream_capturing():
        return None
    return int(weight.item()), int(node._saved_target.numel()), float(f"{factor:.6g}")


def constant(node: Any) -> float | None:  # noqa: ANN401
    """Return the plain number on the other side of a division or product; ``None`` where it is not one."""
    other = getattr(node, "_saved_other", None)
    if other is None or getattr(other, "requires_grad", False):
        return None
    if hasattr(other, "numel"):
        if other.numel() != 1 or other.device.type != "cpu" or other.dim():
            return None
        other = other.item()
    return float(other)
