"""What single functions of libraries give, by their names."""

import ast
from typing import Any

from accel_doctor.contracts import Operation, operation
from accel_doctor.source.calls import Calls
from accel_doctor.source.ranks import ALWAYS, EVERY, UNKNOWN
from accel_doctor.source.syntax import dotted
from accel_doctor.source.values import (
    LOCAL,
    MISSING,
    RANK,
    SHAPE,
    Thing,
    Value,
    joined,
)

SPAWNERS = ("notebook_launcher", "debug_launcher", "spawn", "start_processes")


class Library(Calls):
    """Handlers of library functions, each by the last part of its name."""

    def used_device(self, device: Value, node: ast.AST) -> None:
        """Note the use of a device."""
        raise NotImplementedError

    def made(self, role: str, kind: str, node: ast.Call, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Return a new object of a role."""
        raise NotImplementedError

    def operate(
        self, known: Operation, node: ast.Call, args: list[Value], kwargs: dict[str, Value], base: Value | None
    ) -> None:
        """Note that a known operation is reached, with what its kind makes worth knowing."""
        raise NotImplementedError

    def _call_Accelerator(self, name: str, node: ast.Call, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        if not name.startswith("accelerate"):
            return None
        thing = self.thing("accelerator", node)
        thing.kwargs, thing.args = kwargs, args
        thing.prepared_order = self.order
        self.flags.add("accelerate")
        self.event("accelerator", node, Value("accelerator", thing=thing))
        return Value("accelerator", thing=thing)

    def _call_PartialState(
        self, name: str, node: ast.Call, _args: list[Value], _kwargs: dict[str, Value]
    ) -> Value | None:
        self.flags.add("accelerate")
        self.event("state", node)
        return Value("state") if name.startswith("accelerate") else None

    _call_AcceleratorState = _call_PartialState

    def _call_get_logger(
        self, name: str, node: ast.Call, _args: list[Value], _kwargs: dict[str, Value]
    ) -> Value | None:
        return Value("logger", ref="quiet") if name.startswith("accelerate") else None

    def _call_getLogger(
        self, name: str, _node: ast.Call, _args: list[Value], _kwargs: dict[str, Value]
    ) -> Value | None:
        return Value("logger", ref="standard") if name.startswith("logging") else None

    def _call_get_rank(self, _name: str, _node: ast.Call, _args: list[Value], _kwargs: dict[str, Value]) -> Value:
        return Value("rank", text="global", taint=RANK)

    def _call_get_node_local_rank(self, *_: Any) -> Value:
        return Value("rank", text="local", taint=RANK)

    _call_get_local_rank = _call_get_node_local_rank

    def _call_get_world_size(self, *_: Any) -> Value:
        return Value("world", marks=frozenset(("world",)))

    def _call_is_initialized(self, *_: Any) -> Value:
        return Value(cond=ALWAYS)

    def _call_is_available(self, name: str, *_: Any) -> Value:
        return Value(cond=ALWAYS if "distributed" in name else UNKNOWN, text="available")

    def _call_device_count(self, *_: Any) -> Value:
        return Value("devices")

    def _call_get(self, name: str, _node: ast.Call, args: list[Value], _kwargs: dict[str, Value]) -> Value | None:
        if name == "os.environ.get" and args and isinstance(args[0].const, str):
            return self.environment(args[0].const)
        return None

    def _call_getenv(self, name: str, node: ast.Call, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        return self._call_get("os.environ.get", node, args, kwargs) if name == "os.getenv" else None

    def _call_setdefault(self, name: str, node: ast.Call, args: list[Value], _kwargs: dict[str, Value]) -> Value | None:
        if name == "os.environ.setdefault" and len(args) > 1:
            self.setting_item(Value("ref", ref="os.environ"), args[0], args[1], node)
        return None

    def _call_int(self, _name: str, _node: ast.Call, args: list[Value], _kwargs: dict[str, Value]) -> Value:
        return args[0].but(divisions=(), marks=args[0].marks - {"item"}) if args else Value()

    _call_bool = _call_float = _call_list = _call_tuple = _call_int

    def _call_str(self, _name: str, _node: ast.Call, args: list[Value], _kwargs: dict[str, Value]) -> Value:
        return args[0] if args and args[0].kind in ("rank", "const") else joined(args)

    def _call_len(self, _name: str, _node: ast.Call, args: list[Value], _kwargs: dict[str, Value]) -> Value:
        held = args[0] if args else Value()
        if held.kind == "loader":
            mark = "len_prepared" if held.wrapped or (held.thing and held.thing.sampler) else "len_raw"
            return Value(marks=frozenset((mark,)), thing=held.thing, text="length")
        if held.kind in ("tensor", "batch"):
            return Value(taint=SHAPE if held.taint & LOCAL else 0, why="the size of this rank's batch")
        return Value(taint=held.taint & ~RANK, text="length", why=held.why, marks=held.marks | {"len_data"})

    def _call_range(self, _name: str, _node: ast.Call, args: list[Value], _kwargs: dict[str, Value]) -> Value:
        return joined(args).but(text="range", kind="")

    def _call_zip(self, _name: str, _node: ast.Call, args: list[Value], _kwargs: dict[str, Value]) -> Value:
        return Value(
            "pairs",
            items=[self.element(a) for a in args],
            thing=next((a.thing for a in args if a.kind == "loader"), None),
            wrapped=next((a.wrapped for a in args if a.kind == "loader"), ""),
        )

    def _call_next(self, _name: str, _node: ast.Call, args: list[Value], _kwargs: dict[str, Value]) -> Value:
        return self.element(args[0]) if args else Value()

    def _call_BytesIO(self, *_: Any) -> Value:
        return Value("memory")

    _call_StringIO = _call_BytesIO

    def _call_isinstance(self, *_: Any) -> Value:
        return Value()

    _call_hasattr = _call_type = _call_callable = _call_id = _call_isinstance

    def _call_getattr(self, _name: str, node: ast.Call, args: list[Value], _kwargs: dict[str, Value]) -> Value:
        if len(args) > 1 and isinstance(args[1].const, str):
            return self.attribute(args[0], args[1].const, node)
        return joined(args)

    def _call_exit(self, name: str, node: ast.Call, args: list[Value], _kwargs: dict[str, Value]) -> Value | None:
        if name not in ("sys.exit", "builtins.exit", "os._exit"):
            return None
        if self.ranks != EVERY:
            self.event("exit", node, args[0] if args else None)
        self.ranks = 0
        return Value()

    _call_quit = _call__exit = _call_exit

    def _call_deepcopy(self, _name: str, node: ast.Call, args: list[Value], _kwargs: dict[str, Value]) -> Value | None:
        if not args:
            return None
        value = args[0]
        if value.thing is None:
            value.thing = self.thing(self.guess(value, dotted(node.args[0]) or "x"), None)
            value.thing.name = dotted(node.args[0])
        copy = self.thing(value.thing.role, node)
        copy.copy_of, copy.kind, copy.sampler = value.thing, value.thing.kind, value.thing.sampler
        return value.but(thing=copy, wrapped="")

    def _call_DistributedDataParallel(
        self, name: str, node: ast.Call, args: list[Value], kwargs: dict[str, Value]
    ) -> Value | None:
        return self._wrap("ddp", node, args, kwargs)

    def _call_FullyShardedDataParallel(
        self, name: str, node: ast.Call, args: list[Value], kwargs: dict[str, Value]
    ) -> Value | None:
        return self._wrap("fsdp", node, args, kwargs)

    def _call_fully_shard(self, name: str, node: ast.Call, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        wrapped = self._wrap("fsdp2", node, args, kwargs)
        if wrapped is not None and node.args and isinstance(node.args[0], ast.Name):
            self.bind(ast.Name(node.args[0].id, ast.Store()), wrapped)
        return wrapped

    def _call_DataParallel(
        self, name: str, node: ast.Call, args: list[Value], kwargs: dict[str, Value]
    ) -> Value | None:
        if name.startswith("torch"):
            self.event("data_parallel", node, args[0] if args else None)
        return self._wrap("dp", node, args, kwargs)

    def _wrap(self, how: str, node: ast.Call, args: list[Value], kwargs: dict[str, Value]) -> Value:
        value = args[0] if args else kwargs.get("module", Value())
        if value.thing is None:
            value.thing = self.thing("model", None)
        if how != "dp":
            self.flags.add("torch.distributed")
        value.thing.wrapped_by = how
        self.freeze_parts(value, value.thing)
        self.event("wrap", node, value, how=how, kwargs=kwargs)
        ids = kwargs.get("device_ids")
        if ids is not None and ids.items:
            self.used_device(ids.items[0].but(text=ids.items[0].text), node)
        return value.but(kind="model", wrapped=how)

    def freeze_parts(self, value: Value, outer: Thing, depth: int = 0) -> None:
        """Keep which parameters are frozen at the moment a model is wrapped, its parts' too."""
        if value.thing is not None:
            value.thing.frozen_when_wrapped, value.thing.prepared_order = set(value.thing.frozen), self.order
            value.thing.parent = None if value.thing is outer else outer
        for part in (value.attrs or {}).values() if depth < 3 else ():
            if part.kind == "model" and part.thing is not outer:
                self.freeze_parts(part, outer, depth + 1)

    def _call_get_peft_model(self, _name: str, node: ast.Call, args: list[Value], _kwargs: dict[str, Value]) -> Value:
        if args and args[0].wrapped:
            self.event("rewrapped", node, args[0])
        return self.made("model", "peft", node, [], {})

    def _call_compile(self, name: str, _node: ast.Call, args: list[Value], _kwargs: dict[str, Value]) -> Value | None:
        return args[0] if name == "torch.compile" and args else None

    def _call_device(self, name: str, node: ast.Call, args: list[Value], _kwargs: dict[str, Value]) -> Value | None:
        if name != "torch.device" or not args:
            return None
        return self.device(args, node)

    def device(self, args: list[Value], node: ast.AST) -> Value:
        """Return the device that is named."""
        first, line = args[0], getattr(node, "lineno", 0)
        if first.kind == "device":
            return first
        ranked = (
            first
            if first.kind == "rank" or first.taint & RANK
            else args[1]
            if len(args) > 1 and args[1].taint & RANK
            else None
        )
        if ranked is not None:
            return Value("device", text=f"rank:{ranked.text}", taint=RANK, line=line, marks=ranked.marks)
        text = str(first.const) if isinstance(first.const, str) else ""
        if len(args) > 1 and isinstance(args[1].const, int):
            text = f"{text}:{args[1].const}"
        return Value("device", const=text or MISSING, line=line, text=first.text)

    def _call_split_dataset_by_node(
        self, _name: str, _node: ast.Call, args: list[Value], _kwargs: dict[str, Value]
    ) -> Value:
        return (args[0] if args else Value()).but(taint=RANK, marks=frozenset(("sharded",)))

    def _call_load_dataset(self, name: str, node: ast.Call, args: list[Value], kwargs: dict[str, Value]) -> Value:
        known = operation(name)
        if known is not None:
            self.operate(known, node, args, kwargs, None)
        streaming = kwargs.get("streaming")
        return Value(
            marks=frozenset(("streaming",)) if streaming is not None and streaming.const is not False else frozenset()
        )

    def _spawner(self, _name: str, node: ast.Call, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        target = args[0] if args else kwargs.get("function") or kwargs.get("fn")
        if target is None or target.kind != "func":
            self.flags.add("spawns")
            return None
        self.event("spawn", node, target)
        self.flags.add("spawns")
        given = kwargs.get("args") or (args[1] if len(args) > 1 else Value())
        inner = list(given.items or [])
        if "spawn" in dotted(node.func) or "processes" in dotted(node.func):
            inner.insert(0, Value("rank", text="spawned", taint=RANK))
        self.children += 1
        self.run(target.func, inner, {}, node, target.owner)
        self.children -= 1
        return Value()

    _call_notebook_launcher = _call_debug_launcher = _call_spawn = _call_start_processes = _spawner

    def _call_initialize(self, name: str, node: ast.Call, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        if not name.startswith("deepspeed"):
            return None
        self.flags.add("deepspeed")
        model = kwargs.get("model") or (args[0] if args else Value())
        if model.thing is None:
            model.thing = self.thing("model", None)
        model.thing.wrapped_by = "deepspeed"
        parts = [
            Value("engine", thing=model.thing, wrapped="deepspeed"),
            kwargs.get("optimizer", Value()),
            Value(),
            kwargs.get("lr_scheduler", Value()),
        ]
        return Value("tuple", items=parts)

    def _call_init_process_group(self, _name: str, node: ast.Call, args: list[Value], kwargs: dict[str, Value]) -> None:
        backend = args[0] if args else kwargs.get("backend", Value())
        if backend.const != "fake":  # torch's own stand-in of one process
            self.flags.add("torch.distributed")

    _call_init_distributed = _call_init_process_group
