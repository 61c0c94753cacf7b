"""Works out names and attributes: what an object's parts are, and what a name says by itself."""

import ast
from typing import Any

from accel_doctor.contracts import canonical
from accel_doctor.source import names
from accel_doctor.source.ranks import (
    ALWAYS,
    LAST,
    LOCAL_MAIN,
    MAIN,
    UNKNOWN,
    only,
)
from accel_doctor.source.relations import Relations
from accel_doctor.source.syntax import Function, dotted
from accel_doctor.source.values import (
    LOCAL,
    MISSING,
    RANK,
    SHAPE,
    Value,
)

ACCELERATOR_VALUES: dict[str, Value] = {
    "is_main_process": Value(cond=only(MAIN), taint=RANK),
    "is_local_main_process": Value(cond=only(LOCAL_MAIN), taint=RANK),
    "is_last_process": Value(cond=only(LAST), taint=RANK),
    "process_index": Value("rank", text="global", taint=RANK),
    "local_process_index": Value("rank", text="local", taint=RANK),
    "num_processes": Value("world", marks=frozenset(("world",))),
    "use_distributed": Value(cond=ALWAYS),
    "device": Value("device", text="own", taint=RANK),
    "sync_gradients": Value(text="sync_gradients"),
    "distributed_type": Value("distributed_type"),
    "mixed_precision": Value(text="accelerator.mixed_precision"),
    "gradient_accumulation_steps": Value(text="accelerator.gradient_accumulation_steps"),
    "optimizer_step_was_skipped": Value(),
    "project_dir": Value(),
    "logging_dir": Value(),
    "trackers": Value(),
    "project_configuration": Value(),
    "split_batches": Value(),
    "step": Value(),
}


class Attributes(Relations):
    """Evaluates attributes of values."""

    def run(
        self, function: Function, args: list[Value], kwargs: dict[str, Value], node: ast.AST, owner: Value | None
    ) -> Value:
        """Return what a function of the user's gives."""
        raise NotImplementedError

    def by_name(self, name: str, text: str) -> Value:
        """Return what a name says by itself."""
        if cond := names.predicate(name):
            return Value(cond=cond, taint=RANK, text=text)
        if kind := names.rank_kind(name):
            return Value("rank", text=kind, taint=RANK, marks=frozenset(("named",)))
        if names.is_world(name):
            return Value("world", marks=frozenset(("world",)), text=text)
        if names.is_accelerator(name) and "speaks_accelerate" in self.flags:
            return Value("accelerator", thing=self.assumed())
        return Value(text=text)

    def assumed(self) -> Any:
        """Return the Accelerator of which only the name is seen."""
        raise NotImplementedError

    def attribute(self, base: Value, name: str, node: ast.AST) -> Value:
        """Return an attribute of a value."""
        method = getattr(self, f"_of_{base.kind}", None)
        found = method(base, name, node) if method else None
        if found is None and base.attrs is not None:
            found = base.attrs.get(name)
            if (
                found is not None
                and found.const is not MISSING
                and found.cond is None
                and not isinstance(found.const, str)
            ):
                found = found.but(cond=UNKNOWN)
        if found is None:
            found = self.by_name(name, f"{base.text or base.kind}.{name}")
            if not found.kind and found.cond is None:
                found = found.but(taint=base.taint, marks=base.marks - {"opaque"}, flow=base.flow, why=base.why)
        result: Value = found
        return result

    def _of_ref(self, base: Value, name: str, _node: ast.AST) -> Value:
        return Value("ref", ref=canonical(f"{base.ref}.{name}"))

    def _of_module(self, base: Value, name: str, _node: ast.AST) -> Value | None:
        found: Value | None = base.func.names.get(name)
        return found

    def _of_accelerator(self, base: Value, name: str, _node: ast.AST) -> Value:
        if name == "state":
            return Value("state", thing=base.thing)
        known = ACCELERATOR_VALUES.get(name)
        return known or Value("method", ref=f"accelerate.Accelerator.{name}", owner=base)

    def _of_state(self, base: Value, name: str, _node: ast.AST) -> Value:
        known = ACCELERATOR_VALUES.get(name)
        return known or Value("method", ref=f"accelerate.PartialState.{name}", owner=base)

    def _of_device(self, base: Value, name: str, _node: ast.AST) -> Value:
        if name == "index":
            return Value("rank", text=base.text.rpartition(":")[2] or "local", taint=RANK)
        return Value(text=f"device.{name}")

    def _of_instance(self, base: Value, name: str, node: ast.AST) -> Value | None:
        if base.attrs is not None and name in base.attrs:
            return None
        function = base.func.function(name)
        if function is None:
            found: Value | None = base.func.names.get(name)
            return found
        decorators = getattr(function.node, "decorator_list", ())
        if any(dotted(d).rpartition(".")[2] in ("property", "cached_property") for d in decorators):
            return self.run(function, [], {}, node, base)
        return Value("func", func=function, owner=base)

    def _of_class(self, base: Value, name: str, _node: ast.AST) -> Value | None:
        function = base.func.function(name)
        if function is not None:
            static = any(dotted(d) == "staticmethod" for d in function.node.decorator_list)
            by_class = any(dotted(d) == "classmethod" for d in function.node.decorator_list)
            return Value("func", func=function, owner=base if by_class else None, text="static" if static else "")
        found: Value | None = base.func.names.get(name)
        return found

    def _of_model(self, base: Value, name: str, node: ast.AST) -> Value | None:
        if name in ("module", "_orig_mod") and base.wrapped:
            return base.but(wrapped="", part="", text="unwrapped")
        if name in ("device", "config", "dtype", "training"):
            return Value("device", text="own", taint=RANK) if name == "device" else Value(text=f"model.{name}")
        if base.attrs is not None and name in base.attrs:
            return None
        if base.func is not None and (found := self._of_instance(base, name, node)) is not None:
            return found
        return base.but(part=f"{base.part}.{name}" if base.part else name, attrs=None, func=None)

    def _method(self, base: Value, name: str, _node: ast.AST) -> Value:
        return Value("method", ref=f"{base.kind}.{name}", owner=base, taint=base.taint)

    _of_optimizer = _of_scheduler = _of_engine = _of_bar = _of_logger = _of_tracker = _of_sampler = _method

    def _of_loader(self, base: Value, name: str, node: ast.AST) -> Value:
        if name in ("sampler", "batch_sampler") and base.thing is not None and base.thing.sampler is not None:
            return Value("sampler", thing=base.thing.sampler)
        if name == "dataset":
            return Value(text="loader.dataset", marks=frozenset(("dataset",)))
        return self._method(base, name, node)

    def _of_bar(self, base: Value, name: str, node: ast.AST) -> Value:  # type: ignore[no-redef]
        if name == "n" and base.text:
            return Value(taint=LOCAL, why="the bar is disabled on the other ranks, and its n stays 0 there")
        return self._method(base, name, node)

    def _of_tensor(self, base: Value, name: str, node: ast.AST) -> Value:
        if name == "shape":
            return Value(taint=SHAPE if base.taint & LOCAL else 0, why="the size of this rank's batch")
        if name == "device":
            return Value("device", text="own", taint=RANK)
        if name in ("loss", "logits", "data", "grad", "T", "values", "indices"):
            return base
        return self._method(base, name, node)

    def environment(self, name: str) -> Value:
        """Return what a variable of the environment is."""
        if name in ("RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK"):
            return Value("rank", text="global", taint=RANK)
        if name in ("LOCAL_RANK", "SLURM_LOCALID", "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID"):
            return Value("rank", text="local", taint=RANK)
        if name in ("WORLD_SIZE", "SLURM_NTASKS", "OMPI_COMM_WORLD_SIZE"):
            return Value("world", marks=frozenset(("world",)))
        return Value(text=f"environ.{name}")
