"""Collectives that the script calls, itself or through accelerate, in order and with their call sites."""

import time
from types import ModuleType
from typing import Any

from . import accelerator, imports, order, sites
from .core import Row, core, find
from .wrap import around

OPS = (
    "all_reduce", "all_gather", "all_gather_into_tensor", "reduce_scatter", "reduce_scatter_tensor", "broadcast",
    "barrier", "monitored_barrier", "all_to_all", "all_to_all_single", "gather", "scatter", "reduce",
    "all_gather_object", "gather_object", "broadcast_object_list", "scatter_object_list", "all_gather_coalesced",
)  # fmt: skip
RING = 64
COPIES = ("torch.distributed",)
SITES = 64
_state: Row = {"depth": 0}


def install() -> None:
    """Watch torch.distributed where its functions are defined, before anybody copies their names."""
    imports.on_import("torch.distributed.distributed_c10d", _watch)


def _watch(module: ModuleType) -> None:
    for op in OPS:
        around(module, op, _begin(op), _end, COPIES)
    around(module, "init_process_group", _begin("init_process_group"), _joined, COPIES)


def _begin(op: str) -> Any:  # noqa: ANN401 - a watcher
    def begin(args: tuple[Any, ...], kwargs: Row) -> Any:  # noqa: ANN401
        _state["depth"] += 1
        if _state["depth"] > 1:
            return None
        where = sites.site()
        via = core.via[0] if core.via else ""
        core.collectives += 1
        order.note(op, via, where, args, kwargs)
        ring = core.rows("collectives")
        ring.append({"number": core.collectives, "op": op, "via": via, "site": where})
        if len(ring) > RING:
            del ring[0]
        row = find(core.rows("collective_sites"), SITES, op=op, via=via, site=where)
        if row is not None:
            row["count"] = row.get("count", 0) + 1
        return time.perf_counter(), row, core.enter("collective", op, where)

    return begin


def _end(token: Any, args: object, kwargs: object, result: object, error: object) -> None:  # noqa: ANN401
    del args, kwargs, result, error
    _state["depth"] -= 1
    if token is None:
        return
    began, row, before = token
    if row is not None:
        row["wait_s"] = row.get("wait_s", 0.0) + time.perf_counter() - began
    core.leave(before)


def _joined(token: Any, args: object, kwargs: object, result: object, error: BaseException | None) -> None:  # noqa: ANN401
    _end(token, args, kwargs, result, error)
    if error is None:
        core.fields["_writer"].line({"group": accelerator.raw_group()})
