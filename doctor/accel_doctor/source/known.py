"""What functions of libraries do, as far as it matters here."""

import ast
from typing import Any

from accel_doctor.contracts import Kind, Operation, canonical, operation
from accel_doctor.source import names
from accel_doctor.source.calls import Calls
from accel_doctor.source.ranks import ALWAYS, EVERY, NEVER, UNKNOWN, Cond, negate, only
from accel_doctor.source.syntax import dotted, short
from accel_doctor.source.values import (
    CLOCK,
    LOCAL,
    MISSING,
    PID,
    RANDOM,
    RANK,
    SHAPE,
    Thing,
    Value,
    joined,
    truth,
)

OPTIMIZERS = (
    "Adam",
    "AdamW",
    "SGD",
    "Adafactor",
    "Lion",
    "RMSprop",
    "Adagrad",
    "AdamW8bit",
    "Adam8bit",
    "Prodigy",
    "LAMB",
    "Lamb",
)
NOT_MODELS = (
    "Tokenizer",
    "Processor",
    "Config",
    "Scheduler",
    "Extractor",
    "Pipeline",
    "TokenizerFast",
    "Dataset",
    "GenerationConfig",
)
SCHEDULERS = (
    "get_scheduler",
    "get_linear_schedule_with_warmup",
    "get_cosine_schedule_with_warmup",
    "get_polynomial_decay_schedule_with_warmup",
    "get_constant_schedule_with_warmup",
    "get_constant_schedule",
    "get_cosine_with_hard_restarts_schedule_with_warmup",
    "get_wsd_schedule",
    "get_inverse_sqrt_schedule",
)
PASSING = (
    "enumerate",
    "tqdm",
    "iter",
    "list",
    "sorted",
    "reversed",
    "tuple",
    "islice",
    "cycle",
    "chain",
    "filter",
    "track",
    "progress",
)
CLOCKS = (
    "time.time",
    "time.perf_counter",
    "time.monotonic",
    "time.strftime",
    "time.localtime",
    "time.time_ns",
    "time.ctime",
    "time.gmtime",
)
IDS = (
    "os.getpid",
    "uuid.uuid4",
    "uuid.uuid1",
    "tempfile.mkdtemp",
    "tempfile.gettempdir",
    "secrets.token_hex",
    "socket.gethostname",
)
FILES = ("exists", "isfile", "isdir", "is_file", "is_dir", "lexists")
SPAWNERS = ("notebook_launcher", "debug_launcher", "spawn", "start_processes")
QUIETERS = ("setLevel", "basicConfig", "disable", "addHandler", "set_verbosity", "remove", "configure", "add")
NAMESPACES = ("Namespace", "SimpleNamespace", "EasyDict", "dict", "DotMap", "AttrDict", "Munch")
IN_PLACE = ("all_reduce", "broadcast", "broadcast_object_list", "all_gather", "all_gather_object")
CUDA_TOUCH = frozenset(
    [
        "get_device_name",
        "get_device_properties",
        "get_device_capability",
        "mem_get_info",
        "memory_allocated",
        "synchronize",
        "set_device",
        "current_device",
        "init",
        "is_bf16_supported",
        "memory_summary",
        "max_memory_allocated",
        "current_stream",
        "Stream",
        "Event",
        "device_of",
        "reset_peak_memory_stats",
    ]
)
DRAWS = (
    "random.shuffle",
    "random.sample",
    "random.choice",
    "numpy.random.permutation",
    "numpy.random.shuffle",
    "numpy.random.choice",
    "sklearn.model_selection.train_test_split",
    "torch.utils.data.random_split",
    "torch.utils.data.dataset.random_split",
)
SEEDS = ("set_seed", "manual_seed", "manual_seed_all", "seed", "seed_everything", "enable_full_determinism")


class Known(Calls):
    """Calls of library functions."""

    def foreign(self, name: str, node: ast.Call, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Return what a function of a library gives, and note what it does."""
        name = canonical(name)
        last = name.rpartition(".")[2]
        if last in ("init_distributed_mode", "setup_for_distributed"):
            self.flags |= {"quiet_print", "torch.distributed"}
        self.touch(name, last, node, args, kwargs)
        special = getattr(self, f"_call_{last}", None)
        if special is not None:
            found: Value | None = special(name, node, args, kwargs)
            if found is not None:
                return found
        known = operation(name)
        if known is None and (cond := names.predicate(last)) is not None:
            return Value(cond=cond, taint=RANK)
        if known is not None:
            self.operate(known, node, args, kwargs, None)
            if known.kind is Kind.TRACKER:
                return Value("tracker", ref=name, cond=only(self.ranks) if self.ranks != EVERY else None)
            if known.kind is Kind.BAR:
                return self.bar(node, args, kwargs)
            if known.kind in (Kind.COLLECTIVE, Kind.BARRIER):
                return self.reduced(known, args, node)
        found = self._constructed(name, last, node, args, kwargs)
        if found is not None:
            return found
        return self._plain(name, last, args, kwargs)

    def _plain(self, name: str, last: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        values = [*args, *kwargs.values()]
        self.escape(values)
        if last in PASSING and args:
            passed = args[1] if last == "filter" and len(args) > 1 else args[0]
            return passed.but(items=[Value(), self.element(passed)], kind="pairs") if last == "enumerate" else passed
        found = self._own_answer(name, last, values)
        return found if found is not None else self._computed(name, last, args, kwargs)

    def _own_answer(self, name: str, last: str, values: list[Value]) -> Value | None:
        """Return what each rank's own clock, process, disk or dice answer; ``None`` of any other function."""
        if name in CLOCKS or name.startswith("datetime.") or last in ("now", "utcnow", "today"):
            return joined(values).but(taint=CLOCK, why="this rank's clock")
        if name in IDS:
            return Value(taint=PID if "gethost" not in name else RANK, why="this process's own id")
        if last in FILES:
            return self.files(*values)
        if not name.startswith(("random.", "numpy.random.")):
            return None
        taint = 0 if "seeded" in self.flags else RANDOM | joined(values).taint
        return Value(taint=taint, why="a random number that is not seeded alike" if taint else "")

    def _computed(self, name: str, last: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        values = [*args, *kwargs.values()]
        kind = "tensor" if any(v.kind in ("tensor", "batch") or v.flow for v in values) else ""
        result = joined(values, kind)
        if not name.startswith(("math.", "builtins.", "numpy.", "torch.")):
            result.marks |= {"opaque"}
        result.divisions = next((v.divisions for v in values if v.divisions), ()) if kind else ()
        if last in NAMESPACES:
            return result.but(kind="namespace" if last != "dict" else "dict", attrs=dict(kwargs))
        if last in ("cat", "stack", "concat", "concatenate") and args and args[0].items:
            return joined(args[0].items, "tensor", text="cat").but(taint=result.taint)
        if last in ("cat", "concat", "concatenate"):
            result.text = "cat"
        return result

    def touch(self, name: str, last: str, node: ast.Call, args: list[Value], kwargs: dict[str, Value]) -> None:
        """Note what a call does beside its contract: devices, seeds, draws, levels of loggers."""
        if name.startswith("torch.cuda.") and last in CUDA_TOUCH:
            self.event("cuda", node, args[0] if args else None, call=last)
        if last in SEEDS and (
            name.startswith(("torch.", "random.", "numpy.", "accelerate.", "transformers.", "lightning."))
            or last != "seed"
        ):
            self.event(
                "seed",
                node,
                args[0] if args else None,
                device_specific=truth(kwargs["device_specific"]).true if "device_specific" in kwargs else 0,
            )
        if name in DRAWS:
            self.event(
                "draw",
                node,
                args[0] if args else None,
                name=name,
                seeded=bool(kwargs.keys() & {"generator", "random_state"}),
            )
        if last in QUIETERS and (self.ranks != EVERY or any(v.taint & RANK for v in (*args, *kwargs.values()))):
            self.flags.add("quiet_logging")
        if name == "logging.basicConfig" or last == "setLevel":
            self.flags.add("logging")
        if last in ("clip_grad_norm_", "clip_grad_value_") and name.startswith("torch"):
            self.event("torch_clip", node, args[0] if args else None)
        download = kwargs.get("download")
        if (
            name.startswith(("torchvision.datasets", "torchaudio.datasets"))
            and download is not None
            and download.const is True
        ):
            self.event("download", node)
        device = kwargs.get("device")
        if device is not None and device.kind in ("device", "const"):
            self.used_device(device, node)

    def used_device(self, device: Value, node: ast.AST) -> None:
        """Note the use of a device."""
        raise NotImplementedError

    def reduced(self, known: Operation, args: list[Value], node: ast.Call) -> Value:
        """Return what a collective gives, the same on every rank; so is from here on what it is given in place."""
        plain = known.name.startswith("torch.distributed") and known.short in IN_PLACE
        target = node.args[0] if node.args else None
        if (plain or known.short == "broadcast_object_list") and args and isinstance(target, ast.Name):
            same = args[0].but(taint=0, flow=frozenset(), cond=None, why="", items=None)
            self.bind(ast.Name(target.id, ast.Store()), same)
        return Value("tensor", marks=frozenset(("reduced",)))

    def bar(self, node: ast.Call, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Return a progress bar, which iterates as what it shows."""
        disable = kwargs.get("disable")
        ranked = "disabled" if disable is not None and truth(disable).ranked else ""
        passed = args[0] if args else kwargs.get("iterable")
        if passed is None:
            return Value("bar", text=ranked)
        if passed.kind in ("pairs", "loader"):
            return passed
        return passed if passed.kind else Value("bar", text=ranked or passed.text, taint=passed.taint)

    def _constructed(
        self, name: str, last: str, node: ast.Call, args: list[Value], kwargs: dict[str, Value]
    ) -> Value | None:
        if ".lr_scheduler." in name or last in SCHEDULERS:
            return self._made("scheduler", last, node, args, kwargs)
        if last in OPTIMIZERS or (".optim." in name and last[:1].isupper()):
            return self._made("optimizer", last, node, args, kwargs)
        if last in ("DataLoader", "StatefulDataLoader"):
            return self._loader(node, args, kwargs)
        if last.endswith("Sampler") and last[:1].isupper():
            return self._made("sampler", last, node, args, kwargs)
        if last in ("from_pretrained", "from_config"):
            maker = name.split(".")[-2] if name.count(".") else ""
            if not maker.endswith(NOT_MODELS):
                return self._made("model", maker, node, args, kwargs)
            return Value(text="tokenizer" if "Token" in maker or "Processor" in maker else "")
        if name.startswith("torch.nn.") and last[:1].isupper() and "Loss" not in last and last != "Parameter":
            return self._made("model", last, node, args, kwargs)
        if name.startswith(("torchvision.models.", "timm.create_model")) and "Weights" not in name:
            return self._made("model", last, node, args, kwargs)
        return None

    def _made(self, role: str, kind: str, node: ast.Call, args: list[Value], kwargs: dict[str, Value]) -> Value:
        thing = self.thing(role, node)
        thing.kind, thing.args, thing.kwargs = kind, args, kwargs
        if role == "optimizer":
            thing.models = _models_in([*args, *kwargs.values()])
        if role == "scheduler":
            thing.models = [v.thing for v in (*args, *kwargs.values()) if v.kind == "optimizer" and v.thing]
        if role == "model":
            self.device_map(node, kwargs)
        self.escape([v for v in (*args, *kwargs.values()) if v.kind == "func"] if role != "scheduler" else [])
        return Value(role, thing=thing, taint=0)

    def device_map(self, node: ast.Call, kwargs: dict[str, Value]) -> None:
        """Note a model that is spread over devices."""
        spread = kwargs.get("device_map")
        if spread is not None and spread.const in ("auto", "balanced", "balanced_low_0", "sequential"):
            self.event("device_map", node, spread)

    def _loader(self, node: ast.Call, args: list[Value], kwargs: dict[str, Value]) -> Value:
        thing = self.thing("loader", node)
        thing.args, thing.kwargs = args, kwargs
        self.escape([v for v in kwargs.values() if v.kind == "func"])
        dataset = args[0] if args else kwargs.get("dataset", Value())
        if dataset.taint & RANK or "sharded" in dataset.marks:
            thing.kind = "rank_aware"
        elif dataset.thing is not None and dataset.thing.kind == "iterable":
            thing.kind = "iterable"
        elif "streaming" in dataset.marks:
            thing.kind = "streaming"
        for name in ("sampler", "batch_sampler"):
            given = kwargs.get(name)
            if given is None or (given.const is None and given.kind == "const"):
                continue
            thing.sampler = given.thing or Thing("sampler", node, self.scope.path)
            thing.sampler.kind = thing.sampler.kind or "unknown"
            if given.thing is not None and given.thing.kind == "BatchSampler":
                inner = [
                    v.thing
                    for v in (*given.thing.args, *given.thing.kwargs.values())
                    if v.kind == "sampler" and v.thing
                ]
                thing.sampler = inner[0] if inner else thing.sampler
        return Value("loader", thing=thing)

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
        return self._made("model", "peft", node, [], {})

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
        self.flags.add("torch.distributed")

    _call_init_distributed = _call_init_process_group

    def operate(
        self, known: Operation, node: ast.Call, args: list[Value], kwargs: dict[str, Value], base: Value | None
    ) -> None:
        """Note that a known operation is reached, with what its kind makes worth knowing."""
        raise NotImplementedError


def _models_in(values: list[Value], depth: int = 0) -> list[Thing]:
    found: list[Thing] = []
    for value in values:
        if value.kind in ("params", "param") and value.thing is not None:
            found.append(value.thing)
        if depth < 5:
            found += (
                _models_in([*(value.items or ()), *(value.attrs or {}).values()], depth + 1)
                if value.kind in ("tuple", "dict", "pairs")
                else []
            )
    return list(dict.fromkeys(found))


__all__ = ["NEVER", "Cond", "Known", "negate", "short"]
