"""Backward calls: from where, through whom, and by what the loss was divided before."""

from types import ModuleType
from typing import Any

from . import imports, models, sites, tokens
from .core import Row, core, find
from .wrap import around

MOST = 32
OWN = ("start", "data", "forward", "step", "loop", "save")
_state: Row = {"through": False, "depth": 0}


def install() -> None:
    """Watch ``torch.autograd.backward``, which every backward comes to."""
    imports.on_import("torch.autograd", _watch)


def _watch(module: ModuleType) -> None:
    around(module, "backward", _begin, _end)


def begin_accelerated(args: tuple[Any, ...], kwargs: Row) -> Any:  # noqa: ANN401
    """Before ``Accelerator.backward``: the loss is still as the script made it."""
    loss = args[1] if len(args) > 1 else kwargs.get("loss")
    _state["through"] = True
    return _note(loss, "accelerator")


def end_accelerated(token: Any, args: object, kwargs: object, result: object, error: BaseException | None) -> None:  # noqa: ANN401
    """After ``Accelerator.backward``."""
    del args, kwargs, result
    _state["through"] = False
    _leave(token, error)


def _begin(args: tuple[Any, ...], kwargs: Row) -> Any:  # noqa: ANN401
    _state["depth"] += 1
    if _state["through"] or _state["depth"] > 1:
        return None
    return _note(args[0] if args else kwargs.get("tensors"), "plain")


def _end(token: Any, args: object, kwargs: object, result: object, error: BaseException | None) -> None:  # noqa: ANN401
    del args, kwargs, result
    _state["depth"] -= 1
    if token is not None:
        _leave(token, error)


def _note(loss: Any, through: str) -> Any:  # noqa: ANN401
    core.backwards += 1
    where = sites.site()
    row = find(core.rows("backwards"), MOST, site=where, through=through)
    fresh = [w for w in core.rows("wrapped") if w.get("_fresh")]
    flows = [(w, w["_fresh"], models.gradients(w)) for w in fresh] if len(fresh) > 1 else []
    for wrapped in fresh:
        _count(wrapped, 1)
        wrapped["_fresh"] = 0
    if row is not None:
        row["count"] = row.get("count", 0) + 1
        row["wrapped"] = row.get("wrapped", 0) + bool(fresh)
        row["in_accumulate"] = row.get("in_accumulate", 0) + bool(core.fields.get("_accumulating"))
        first = loss[0] if isinstance(loss, (list, tuple)) and loss else loss
        if row["count"] <= 4:
            row.update(_division(first))
        tokens.note(row, first)
    loader = core.fields.get("_epoch")
    if loader is not None:
        loader["backwards"] = loader.get("backwards", 0) + 1
    token = core.enter("backward", site=where)
    _note_own_time()
    return token, flows


def _count(wrapped: Row, by: int) -> None:
    wrapped["_syncs"] = wrapped.get("_syncs", 0) + by * wrapped.get("_armed", False)
    wrapped["_backs"] = wrapped.get("_backs", 0) + by
    wrapped["_since_step"] = max(0, wrapped.get("_since_step", 0) + by)


def _leave(token: Any, error: BaseException | None) -> None:  # noqa: ANN401
    if token is not None:
        before, flows = token
        core.leave(before)
        reached = [models.gradients(w) != gradients for w, _, gradients in flows]
        for (wrapped, forwards, _), flowed in zip(flows, reached, strict=True):
            if any(reached) and not flowed:  # its graph is of a later backward, as a generator's under detach
                _count(wrapped, -1)
                wrapped["_fresh"] = forwards
    if error is None:
        core.fields["_after_backward"] = core.since


def _note_own_time() -> None:
    """Note what this rank did by itself since its last backward: everything but backward and collectives."""
    now = sum(core.spent.get(phase, 0.0) for phase in OWN)
    before = core.fields.get("_own")
    core.fields["_own"] = now
    if before is None:
        core.fields["_queued_ns"] = core.queued_ns()
    else:
        own = core.fields.setdefault("own_ms", [])
        own.append(round(1000 * (now - before), 3))
        if len(own) > 128:
            del own[:64]


def _division(loss: Any) -> Row:  # noqa: ANN401
    """Return the plain number that the loss was divided by last, read from its graph."""
    node = getattr(loss, "grad_fn", None)
    kind = node.name() if node is not None else ""
    if node is None or kind not in ("DivBackward0", "MulBackward0"):
        return {}
    other = tokens.constant(node)
    if other is None:
        return {}
    divisor = other if kind == "DivBackward0" else (1 / other if other else 0.0)
    inputs = [n.name() for n, _ in node.next_functions if n is not None]
    return {"divided_by": round(divisor, 6), "summed": inputs[:1] == ["AddBackward0"]}
