"""The order of collectives in each process group, with what every rank of the group must bring alike."""

import sys
import zlib
from typing import Any

from .core import Row, Site, core

KEPT = 64
KINDS = 48
GROUPS = 16
ARGUMENTS = {
    "all_reduce": ("tensor", "op", "group"),
    "reduce": ("tensor", "dst", "op", "group"),
    "broadcast": ("tensor", "src", "group"),
    "all_gather": ("tensor_list", "tensor", "group"),
    "all_gather_into_tensor": ("output_tensor", "input_tensor", "group"),
    "reduce_scatter_tensor": ("output", "input", "op", "group"),
    "reduce_scatter": ("output", "input_list", "op", "group"),
    "gather": ("tensor", "gather_list", "dst", "group"),
    "scatter": ("tensor", "scatter_list", "src", "group"),
    "barrier": ("group",),
    "monitored_barrier": ("group",),
    "all_to_all": ("output_tensor_list", "input_tensor_list", "group"),
    "all_to_all_single": ("output", "input", "output_split_sizes", "input_split_sizes", "group"),
    "all_gather_object": ("object_list", "obj", "group"),
    "gather_object": ("obj", "object_gather_list", "dst", "group"),
    "broadcast_object_list": ("object_list", "src", "group"),
    "scatter_object_list": ("output", "input", "src", "group"),
}
PAYLOAD = {
    "all_reduce": "tensor",
    "reduce": "tensor",
    "broadcast": "tensor",
    "all_gather": "tensor",
    "all_gather_into_tensor": "input_tensor",
    "reduce_scatter_tensor": "input",
}
"""What must have the same number of elements and the same type on every rank."""
_groups: dict[int, Row] = {}


def note(op: str, via: str, where: Site | None, args: tuple[Any, ...], kwargs: Row) -> None:
    """Take down one call that the script made."""
    names = ARGUMENTS.get(op)
    if names is None:
        return
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    sequence = _sequence(given.get("group"))
    if sequence is None:
        return
    what = _what(op, given)
    index = _kind(sequence, op, what, via, where)
    sequence["count"] += 1
    sequence["_sum"] = zlib.crc32(f"{op} {what}".encode(), sequence["_sum"])
    if len(sequence["head"]) < KEPT:
        sequence["head"].append(index)
    sequence["tail"].append(index)
    if len(sequence["tail"]) > KEPT:
        del sequence["tail"][0]
    if not sequence["count"] & (sequence["count"] - 1):
        sequence["marks"].append((sequence["count"], sequence["_sum"]))


def _sequence(group: Any) -> Row | None:  # noqa: ANN401 - a process group
    """Return the record of a group; ``None`` where this rank is not in it, or there is no room."""
    found = _groups.get(id(group))
    if found is None and len(_groups) < GROUPS:
        c10d = sys.modules["torch.distributed.distributed_c10d"]
        ranks = c10d.get_process_group_ranks(group or c10d._get_default_group())
        if core.fields.get("_rank") is None:
            core.fields["_rank"] = c10d.get_rank()
        if core.fields["_rank"] not in ranks:
            return None
        name = "default" if group is None or group is c10d.GroupMember.WORLD else str(group.group_name)
        found = next((s for s in core.rows("order") if name == "default" == s["group"].partition(" ")[0]), None)
        if found is None:
            label = f"{name} {zlib.crc32(repr(sorted(ranks)).encode()):08x}"
            found = {"group": label, "size": len(ranks), "count": 0, "kinds": [], "head": [], "tail": [], "marks": []}
            found.update(_sum=0, _kept=group)
            core.rows("order").append(found)
        _groups[id(group)] = found
    return found


def _kind(sequence: Row, op: str, what: str, via: str, where: Site | None) -> int:
    key = (op, what, via, where)
    index: int = sequence.setdefault("_index", {}).get(key, -1)
    if index < 0 and len(sequence["kinds"]) < KINDS:
        index = sequence["_index"][key] = len(sequence["kinds"])
        sequence["kinds"].append({"op": op, "what": what, "via": via, "site": where, "count": 0})
    if index >= 0:
        sequence["kinds"][index]["count"] += 1
    return index


def _what(op: str, given: Row) -> str:
    """Return what a call carries and whom it concerns, as far as all ranks must agree in it."""
    tensor = given.get(PAYLOAD.get(op, ""))
    parts = []
    if tensor is not None and not _uneven(given.get("tensor_list"), tensor):
        parts.append(f"{int(tensor.numel())} {str(tensor.dtype).removeprefix('torch.')}")
    if "op" in ARGUMENTS[op]:
        reduction = given.get("op")
        parts.append("SUM" if reduction is None else str(reduction).rpartition(".")[2])
    for name, word in (("src", "from"), ("dst", "to")):
        if name in ARGUMENTS[op]:
            own = given.get(f"group_{name}")
            root = given.get(name)
            parts.append(f"{word} rank {own} of the group" if own is not None else f"{word} rank {root or 0}")
    return ", ".join(parts)


def _uneven(outputs: Any, tensor: Any) -> bool:  # noqa: ANN401 - tensors
    """Return whether a gather is told that the ranks bring different amounts."""
    return any(o.numel() != tensor.numel() for o in outputs or ())
