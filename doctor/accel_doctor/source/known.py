"""What functions of libraries do, as far as it matters here."""

import ast

from accel_doctor.contracts import Kind, Operation, canonical, operation
from accel_doctor.source import names
from accel_doctor.source.library import Library
from accel_doctor.source.ranks import EVERY, NEVER, Cond, negate, only
from accel_doctor.source.syntax import short
from accel_doctor.source.values import (
    CLOCK,
    PID,
    RANDOM,
    RANK,
    Thing,
    Value,
    joined,
    truth,
)
from accel_doctor.source.vocabulary import (
    CLOCKS,
    CUDA_TOUCH,
    DRAWS,
    FILES,
    IDS,
    IN_PLACE,
    NAMESPACES,
    NOT_MODELS,
    OPTIMIZERS,
    PASSING,
    QUIETERS,
    SCHEDULERS,
    SEEDS,
)


class Known(Library):
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
        known = self.contracts.get(name) or operation(name)
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
            if last == "chain" and len(args) > 1:
                return joined(args, "tuple", items=list(args))
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
            return self.made("scheduler", last, node, args, kwargs)
        if last in OPTIMIZERS or (".optim." in name and last[:1].isupper()):
            return self.made("optimizer", last, node, args, kwargs)
        if last in ("DataLoader", "StatefulDataLoader"):
            return self._loader(node, args, kwargs)
        if last.endswith("Sampler") and last[:1].isupper():
            return self.made("sampler", last, node, args, kwargs)
        if last in ("from_pretrained", "from_config"):
            maker = name.split(".")[-2] if name.count(".") else ""
            if not maker.endswith(NOT_MODELS):
                return self.made("model", maker, node, args, kwargs)
            return Value(text="tokenizer" if "Token" in maker or "Processor" in maker else "")
        if name.startswith("torch.nn.") and last[:1].isupper() and "Loss" not in last and last != "Parameter":
            return self.made("model", last, node, args, kwargs)
        if name.startswith(("torchvision.models.", "timm.create_model")) and "Weights" not in name:
            return self.made("model", last, node, args, kwargs)
        return None

    def made(self, role: str, kind: str, node: ast.Call, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Return a new object of a role."""
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
