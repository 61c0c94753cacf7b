"""What methods of the Accelerator, optimizers, loaders and others do."""

import ast

from accel_doctor.contracts import operation
from accel_doctor.source.known import Known
from accel_doctor.source.ranks import EVERY, LAST, LOCAL_MAIN, MAIN
from accel_doctor.source.syntax import dotted
from accel_doctor.source.values import LOCAL, RANK, Thing, Value, joined

PREPARES = ("prepare", "prepare_model", "prepare_data_loader", "prepare_optimizer", "prepare_scheduler")
GATHERS = ("gather", "gather_for_metrics", "reduce", "pad_across_processes")
NOTED = frozenset(
    ["load_state", "save_state", "free_memory", "clear", "clip_grad_norm_", "set_trigger", "register_for_checkpointing"]
)
GUARDING = {"on_main_process": MAIN, "on_local_main_process": LOCAL_MAIN, "on_last_process": LAST}
ANSWERS = {
    "split_between_processes": Value("context", ref="split", taint=LOCAL | RANK, why="this rank's own share"),
    "check_trigger": Value(),
    "get_state_dict": Value("state_dict", text="gathered"),
    "print": Value(),
    "log": Value(),
    "wait_for_everyone": Value(),
}


class Owners(Known):
    """Methods of objects whose kind is known."""

    def __init__(self) -> None:
        super().__init__()
        self.state_hooks: list[Value] = []

    def freeze(self, thing: Thing, part: str, flag: Value, node: ast.AST) -> None:
        """Note that parameters are frozen or unfrozen."""
        raise NotImplementedError

    def _moved(self, last: str, node: ast.Call, args: list[Value], kwargs: dict[str, Value]) -> None:
        target = args[0] if args else kwargs.get("device")
        if last == "cuda":
            self.event("cuda_call", node, target)
            if target is not None:
                self.used_device(
                    Value("device", const=target.const, text=target.text, taint=target.taint)
                    if target.kind != "device"
                    else target,
                    node,
                )
        elif target is not None and (target.kind in ("device", "rank") or isinstance(target.const, str)):
            self.used_device(target, node)

    def used_device(self, device: Value, node: ast.AST) -> None:
        """Note the use of a device."""
        if device.kind == "const" and isinstance(device.const, str):
            device = Value("device", const=device.const, line=device.line)
        if device.kind == "rank":
            device = Value("device", text=f"rank:{device.text}", taint=RANK, marks=device.marks)
        self.event("device", node, device)

    def _on_accelerator(
        self, last: str, owner: Value, node: ast.Call, args: list[Value], kwargs: dict[str, Value]
    ) -> Value | None:
        if last in PREPARES:
            return self.prepare(last, owner, node, args, kwargs)
        if last == "backward" and args:
            return self.backward(args[0], node, plain=False)
        if last in GATHERS:
            self.event(last, node, args[0] if args else None, kwargs=kwargs)
            return self._gathered(last, args, kwargs)
        if last in ("accumulate", "no_sync"):
            self.event(last, node, joined(args), things=[a.thing for a in args if a.thing])
            return Value("context", ref=last)
        if last in NOTED:
            return self._noted(last, node, args)
        if last in ANSWERS:
            return ANSWERS[last]
        return self._passed_on(last, args, kwargs)

    def _noted(self, last: str, node: ast.Call, args: list[Value]) -> Value:
        self.event(last, node, args[0] if args else None)
        if last in ("free_memory", "clear"):
            for thing in self.things:
                thing.frozen_when_wrapped = None
        return Value("tensor") if last == "clip_grad_norm_" else Value()

    def _passed_on(self, last: str, args: list[Value], kwargs: dict[str, Value]) -> Value | None:
        """Return what methods give that take something and return it, guarded, unwrapped or shortened."""
        first = args[0] if args else Value()
        if last in ("unwrap_model", "extract_model_from_parallel"):
            return first.but(wrapped="", text="unwrapped")
        if last == "skip_first_batches":
            return first
        if last in GUARDING and first.kind == "func":
            first.func.ranks &= GUARDING[last]
            return first
        if last in ("register_save_state_pre_hook", "register_load_state_pre_hook"):
            self.state_hooks += [a for a in args if a.kind == "func"]
            return Value()
        return joined([*args, *kwargs.values()]) if last == "autocast" else None

    def _on_state(
        self, last: str, owner: Value, node: ast.Call, args: list[Value], kwargs: dict[str, Value]
    ) -> Value | None:
        return self._on_accelerator(last, owner, node, args, kwargs) if last.startswith(("split_", "on_")) else None

    def _gathered(self, last: str, args: list[Value], kwargs: dict[str, Value]) -> Value:
        marks = frozenset(("reduced",))
        if last == "reduce":
            how = args[1].const if len(args) > 1 else kwargs["reduction"].const if "reduction" in kwargs else "sum"
            marks |= {f"reduced_{how}"} if isinstance(how, str) else frozenset()
        if args and args[0].kind == "tuple" and args[0].items and len(args[0].items) > 1:
            return Value("tuple", items=[Value("tensor", marks=marks) for _ in args[0].items])
        if last == "pad_across_processes" and args:
            return args[0]
        return Value("tensor", marks=marks)

    def prepare(self, how: str, owner: Value, node: ast.Call, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Return what prepare gives: its arguments, wrapped."""
        given = [*args, *(v for k, v in kwargs.items() if k in ("model", "data_loader", "optimizer", "scheduler"))]
        texts = [dotted(a) for a in node.args]
        prepared = [self._prepared(v, texts[i] if i < len(texts) else "", how, node) for i, v in enumerate(given)]
        things = [v.thing for v in prepared]
        self.event("prepare", node, owner, things=things, texts=texts, how=how, given=given)
        if any(v is not None and v.role == "model" for v in things):
            self.collectives += 1
        return prepared[0] if len(prepared) == 1 else joined(prepared, "tuple", items=prepared)

    def _prepared(self, value: Value, text: str, how: str, node: ast.Call) -> Value:
        if value.kind == "tuple" and value.items:
            return value.but(items=[self._prepared(v, text, how, node) for v in value.items])
        if value.kind == "const":
            return value
        if value.thing is None:
            role = {"prepare_model": "model", "prepare_data_loader": "loader"}.get(how) or self.guess(
                value, text.rpartition(".")[2]
            )
            value.thing = self.thing(role, None)
            value.thing.name = text
        thing = value.thing
        if thing.role == "loader" and thing.prepared is None:
            self.event("shard", node, value)
        thing.prepared, thing.prepared_order = node, self.order
        self.freeze_parts(value, thing)
        kind = thing.role if thing.role in ("model", "loader", "optimizer", "scheduler") else value.kind
        return value.but(kind=kind, thing=thing, wrapped="accelerate", items=None)

    def backward(self, loss: Value, node: ast.Call, *, plain: bool) -> Value:
        """Note a backward pass; with a wrapped model it is a collective."""
        scaled = isinstance(node.func, ast.Attribute) and isinstance(node.func.value, ast.Call)
        self.event(
            "backward",
            node,
            loss,
            plain=plain,
            scaled=scaled and "scale" in dotted(getattr(node.func.value, "func", node))
            if isinstance(node.func, ast.Attribute)
            else False,
        )
        for loop in self.loops:
            loop.backward = True
        if plain and any(f.via == "wrapper" for f in loss.flow):
            self.collectives += 1
        return Value()

    def _on_optimizer(
        self, last: str, owner: Value, node: ast.Call, args: list[Value], _kwargs: dict[str, Value]
    ) -> Value | None:
        if last in ("step", "zero_grad", "add_param_group"):
            self.event(f"optimizer.{last}", node, owner)
        if last == "state_dict":
            return Value("state_dict", thing=owner.thing, text="wrapped" if owner.wrapped else "raw")
        return Value()

    def _on_scheduler(
        self, last: str, owner: Value, node: ast.Call, _args: list[Value], _kwargs: dict[str, Value]
    ) -> Value:
        if last == "step":
            self.event("scheduler.step", node, owner)
        return Value()

    def _on_sampler(
        self, last: str, owner: Value, node: ast.Call, _args: list[Value], _kwargs: dict[str, Value]
    ) -> Value:
        return Value()

    def _on_engine(self, last: str, owner: Value, node: ast.Call, args: list[Value], kwargs: dict[str, Value]) -> Value:
        known = operation(f"deepspeed.DeepSpeedEngine.{last}")
        if known is not None:
            self.operate(known, node, args, kwargs, owner)
        return Value()

    def _on_bar(self, last: str, owner: Value, node: ast.Call, _args: list[Value], _kwargs: dict[str, Value]) -> Value:
        return Value()

    def _on_logger(self, last: str, owner: Value, node: ast.Call, args: list[Value], kwargs: dict[str, Value]) -> Value:
        if last in ("setLevel", "addHandler") and (self.ranks != EVERY or joined(args).taint & RANK):
            self.flags.add("quiet_logging")
        known = operation(f"logging.Logger.{last}")
        if known is not None and owner.ref == "standard":
            self.operate(known, node, args, kwargs, None)
        return Value()

    def _on_tracker(
        self, last: str, owner: Value, node: ast.Call, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        return Value("tracker", ref=owner.ref, cond=owner.cond)

    def _on_loader(self, last: str, owner: Value, node: ast.Call, args: list[Value], kwargs: dict[str, Value]) -> Value:
        return Value(text=f"loader.{last}")

    def _on_param(self, name: str, base: Value, node: ast.Call, args: list[Value]) -> Value:
        if name == "requires_grad_" and base.thing is not None:
            self.freeze(base.thing, base.part, args[0] if args else Value("const", const=True), node)
        elif args and args[0].kind == "func":
            self.event("hook", node, base, function=args[0].func, name=name)
        return base
