"""What becomes of the Accelerator, models, optimizers, loaders and losses."""

import ast
from typing import Any

from accel_doctor.contracts import Contract, Kind, Operation, operation
from accel_doctor.source import names
from accel_doctor.source.library import SPAWNERS
from accel_doctor.source.owners import Owners
from accel_doctor.source.ranks import EVERY, Cond, only
from accel_doctor.source.syntax import dotted, short
from accel_doctor.source.values import LOCAL, MISSING, RANK, SHAPE, Forward, Thing, Value, joined, truth
from accel_doctor.source.vocabulary import (
    NAMED_CALLS,
    ON_PATH,
    PARAMETERS,
    PATH_AT,
    PATH_WORDS,
    QUIET_METHODS,
    QUIETING,
    WRITES,
)


class Roles(Owners):
    """Methods of objects with a role, and calls of which nothing else is known."""

    def __init__(self) -> None:
        super().__init__()
        self._assumed: Thing | None = None

    def assumed(self) -> Thing:
        """Return the Accelerator of which only the name is seen."""
        if self._assumed is None:
            self._assumed = self.thing("accelerator", None)
            self._assumed.name = "accelerator"
        return self._assumed

    def method(self, owner: Value, name: str, node: ast.Call, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Return what a method of a known kind of object gives, and note what it does."""
        last = name.rpartition(".")[2]
        special = getattr(self, f"_on_{owner.kind}", None)
        known = operation(name) if owner.kind in ("accelerator", "state") else None
        if known is not None:
            self.operate(known, node, args, kwargs, owner)
        if special is not None:
            found: Value | None = special(last, owner, node, args, kwargs)
            if found is not None:
                return found
        if known is not None and known.contract is Contract.ALL:
            return Value("tensor", marks=frozenset(("reduced",)))
        return self._other(owner, last, node, args, kwargs)

    def _other(self, owner: Value, last: str, node: ast.Call, args: list[Value], kwargs: dict[str, Value]) -> Value:
        values = [owner, *args, *kwargs.values()]
        self.escape([*args, *kwargs.values()])
        if last == "backward":
            handed = bool(args) and not owner.flow and (bool(args[0].flow) or "loss" in short(node.args[0]).lower())
            return self.backward(args[0] if handed else owner, node, plain=not handed)
        if last in ("append", "extend", "add", "update", "add_batch") and owner.kind in ("tuple", ""):
            owner.taint |= joined(args).taint & ~RANK
            owner.flow |= joined(args).flow
            owner.marks |= joined(args).marks
            self.collecting(dotted(node.func.value) if isinstance(node.func, ast.Attribute) else "", owner)
        if last in ("to", "cuda") and owner.kind in ("tensor", "batch", "", "param"):
            self._moved(last, node, args, kwargs)
            return owner
        kind = "tensor" if owner.kind in ("tensor", "batch") or any(v.kind == "tensor" for v in args) else ""
        if owner.kind in ("tensor", "batch") and last in ("size", "numel", "dim", "shape"):
            return Value(taint=SHAPE if owner.taint & LOCAL else 0, why="the size of this rank's batch")
        result = joined(values, kind)
        if last not in ("item", "get", "float", "cpu", "detach", "mean", "sum", "repeat", "to"):
            result.marks |= {"opaque"}
        result.divisions = owner.divisions
        result.text = f"{owner.text}.{last}" if last in ("repeat", "mean", "sum") else owner.text
        return result

    def forward(
        self, model: Value, base: Value | None, node: ast.Call, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """Return what a model, or a method of it, gives."""
        last = model.part.rpartition(".")[2]
        values = [*args, *kwargs.values()]
        thing = model.thing
        assert thing is not None  # noqa: S101 - the caller saw to it
        owner = base if base is not None and base.kind == "model" and base.part != model.part else model
        if last in PARAMETERS:
            params = Value("params", thing=thing, part=model.part.rpartition(".")[0])
            return params if last == "parameters" else Value("pairs", items=[Value(), self.element(params)])
        if last in ("requires_grad_", "requires_grad"):
            self.freeze(thing, model.part.rpartition(".")[0], args[0] if args else Value("const", const=True), node)
            return owner
        if model.kind == "engine" and last in ("backward", "step", "save_checkpoint", "load_checkpoint"):
            return self._on_engine(last, model, node, args, kwargs)
        if last == "state_dict":
            return Value("state_dict", thing=thing, text=owner.wrapped or "raw")
        if last in ("to", "cuda"):
            self._moved(last, node, args, kwargs)
            return owner
        if last in QUIET_METHODS:
            return self._housekeeping(last, owner, node, args, kwargs)
        via = (
            "wrapper"
            if owner.wrapped or model.wrapped
            else "unwrapped"
            if "unwrapped" in (owner.text, model.text)
            else "raw"
        )
        graded = "no_grad" not in self.contexts
        result = joined(values, "tensor")
        if last and last in ("generate", "sample"):
            graded = False
        flow = Forward(thing, via, node.lineno, graded)
        self.event("forward", node, owner, via=via, graded=graded, part=last)
        return result.but(flow=(result.flow if graded else frozenset()) | ({flow} if graded else set()))

    def _housekeeping(
        self, last: str, owner: Value, node: ast.Call, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        known = operation(f"*.{last}")
        if known is not None:
            self.operate(known, node, args, kwargs, owner)
        if last in ("resize_token_embeddings", "add_module", "add_adapter"):
            self.event("grown", node, owner)
        if last in ("train", "eval", "float", "half", "bfloat16", "double", "cpu", "apply", "merge_and_unload"):
            return owner
        return Value(text=f"model.{last}")

    def freeze(self, thing: Thing, part: str, flag: Value, node: ast.AST) -> None:
        """Note that parameters are frozen or unfrozen."""
        part = part or "*"
        if flag.const is False:
            thing.frozen.add(part)
        elif flag.const is True:
            wrapped = thing.frozen_when_wrapped or set()
            if part in wrapped or (part == "*" and wrapped) or any(w.startswith(part) for w in wrapped):
                self.event("unfreeze", node, Value("model", thing=thing, part=part))
            thing.frozen.discard(part)
            if part == "*":
                thing.frozen.clear()

    def collecting(self, name: str, owner: Value) -> None:
        """Look at a list that grows; the subclass does."""

    def setting(self, base: Value, target: ast.Attribute, value: Value) -> None:
        """Look at an attribute that is set: a frozen parameter, another print, a handler's level."""
        if target.attr == "requires_grad" and base.kind in ("param", "model", "params") and base.thing is not None:
            inner = any(
                g.scope is self.scope and getattr(g.test, "lineno", 0) >= self.loops[-1].line
                for g in self.guards[-1:]
                if self.loops
            )
            self.freeze(base.thing, base.part or ("some" if inner else "*"), value, target)
        if target.attr == "print" and (
            base.ref in ("builtins", "__builtin__", "__builtins__") or "builtin" in base.text
        ):
            self.flags.add("quiet_print")
        if target.attr in ("stdout", "stderr") and base.ref == "sys" and (self.ranks != EVERY or value.taint & RANK):
            self.flags.add("quiet_print")
        if target.attr == "gradient_accumulation_steps" and base.kind == "accelerator" and base.thing is not None:
            base.thing.kwargs["gradient_accumulation_steps"] = value

    def setting_item(self, base: Value, index: Value, value: Value, node: ast.AST) -> None:
        """Look at an item that is set: a variable of the environment."""
        if base.ref == "os.environ" and isinstance(index.const, str):
            self.event("environ", node, value, name=index.const)
        if base.ref in ("builtins", "__builtins__") and index.const == "print":
            self.flags.add("quiet_print")

    def unknown(
        self, callee: Value, base: Value | None, node: ast.Call, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """Return what a call gives of which only the name is known."""
        name = (
            node.func.attr
            if isinstance(node.func, ast.Attribute)
            else node.func.id
            if isinstance(node.func, ast.Name)
            else ""
        )
        if callee.cond is not None and callee.cond.ranked and not callee.kind:
            return callee
        if name in QUIETING:
            self.flags |= {"quiet_print", "torch.distributed"}
        if name in NAMED_CALLS:
            return self.foreign(
                f"torch.distributed.{'get_rank' if name in ('get_global_rank', 'get_process_index') else name}",
                node,
                [],
                {},
            )
        if (
            base is not None
            and base.kind == "param"
            and name in ("requires_grad_", "register_hook", "register_post_accumulate_grad_hook")
        ):
            return self._on_param(name, base, node, args)
        if name in SPAWNERS and args and args[0].kind == "func":
            return self._spawner(name, node, args, kwargs) or Value()
        if name.startswith(("is_main", "is_master", "is_rank", "is_global", "is_local_m", "is_local_r")) and (
            cond := names.predicate(name)
        ):
            return Value(cond=cond, taint=RANK)
        return self._nameless(name, callee, base, node, args, kwargs)

    def _nameless(
        self, name: str, callee: Value, base: Value | None, node: ast.Call, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        owner = base if base is not None else Value()
        if name == "state_dict":
            return Value("state_dict", thing=owner.thing, text=owner.wrapped or "unknown")
        if name == "prepare" and owner.kind == "" and names.is_accelerator(owner.text.rpartition(".")[2]):
            return self.prepare("prepare", owner, node, args, kwargs)
        if base is not None and (known := operation(f"*.{name}")) and owner.kind != "namespace":
            self.operate(known, node, args, kwargs, owner)
        if name in ("exists", "is_file", "is_dir"):
            return self.files(owner, *args)
        if name == "step" and base is not None:
            role = names.role_of(owner.text.rpartition(".")[2] or dotted(node.func))
            if role in ("optimizer", "scheduler"):
                self.event(f"{role}.step", node, owner)
        if callee.thing is not None and callee.kind == "" and base is None:
            return self.forward(callee.but(kind="model"), base, node, args, kwargs)
        if owner.thing is not None and not owner.kind and name in ("parameters", "named_parameters"):
            return self.forward(owner.but(kind="model", part=name), owner, node, args, kwargs)
        if base is not None and name in ("parameters", "named_parameters", "requires_grad_") and not owner.kind:
            owner.thing = owner.thing or self._met(owner, node)
            return self.forward(owner.but(kind="model", part=name), owner.but(kind="model"), node, args, kwargs)
        return self._other(owner, name, node, args, kwargs)

    def _met(self, owner: Value, node: ast.Call) -> Thing:
        thing = self.thing("model", None)
        thing.name = owner.text or (dotted(node.func.value) if isinstance(node.func, ast.Attribute) else "")
        return thing

    def operate(
        self, known: Operation, node: ast.Call, args: list[Value], kwargs: dict[str, Value], base: Value | None
    ) -> None:
        """Note that a known operation is reached, with what its kind makes worth knowing."""
        details: dict[str, Any] = {"args": args, "kwargs": kwargs, "base": base}
        if known.kind in WRITES or known.kind is Kind.LOAD:
            path, text = self._path(known, node, args, kwargs, base)
            if path.kind == "memory":
                return
            details.update(path=path, path_text=text)
            if known.name == "builtins.open" and not self._writes(args, kwargs):
                self.event("read", node, path, text=text)
                return
        self.visit(node, known, **details)

    def _writes(self, args: list[Value], kwargs: dict[str, Value]) -> bool:
        mode = args[1] if len(args) > 1 else kwargs.get("mode")
        return mode is not None and isinstance(mode.const, str) and any(c in mode.const for c in "wax+")

    def _path(
        self, known: Operation, node: ast.Call, args: list[Value], kwargs: dict[str, Value], base: Value | None
    ) -> tuple[Value, str]:
        if known.short in ON_PATH and base is not None and isinstance(node.func, ast.Attribute):
            return base, short(node.func.value)
        position = PATH_AT.get(known.name, 0)
        if len(args) > position:
            return args[position], short(node.args[position]) if len(node.args) > position else ""
        for word in PATH_WORDS:
            if word in kwargs:
                return kwargs[word], short(next(k.value for k in node.keywords if k.arg == word)) if any(
                    k.arg == word for k in node.keywords
                ) else ""
        return Value(text="unknown"), ""


__all__ = ["MISSING", "Cond", "Roles", "only", "truth"]
