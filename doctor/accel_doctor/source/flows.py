"""Turns the notes of a reading into observations; each function looks at one topic."""

import ast
from collections.abc import Callable, Iterable

from accel_doctor.evidence.base import Value as Plain
from accel_doctor.evidence.source import Flow
from accel_doctor.source.reader import Reader
from accel_doctor.source.state import Event, Loop
from accel_doctor.source.values import Thing

TRAINER = r"\b\w*Trainer\(|class \w+\([\w., ]*Trainer\b"
Topic = Callable[["Notes"], Iterable[Flow]]


class Notes:
    """The notes of one reading, and what topics ask of them."""

    def __init__(self, reader: Reader) -> None:
        self.reader = reader
        self.text = reader.main.text
        self.events: dict[str, list[Event]] = {}
        for event in reader.events:
            self.events.setdefault(event.what, []).append(event)

    def of(self, *what: str) -> list[Event]:
        """Return the events of these kinds, in order."""
        found = [e for w in what for e in self.events.get(w, ())]
        return sorted(found, key=lambda e: e.order) if len(what) > 1 else found

    def says(self, pattern: str) -> bool:
        """Return whether any file that was read contains a pattern."""
        return any(self.reader.parse.says(pattern, path, text) for path, text in self.reader.texts.items())

    @property
    def accelerators(self) -> list[Thing]:
        """Return the Accelerators that were made, or assumed."""
        made = [t for t in self.reader.things if t.role == "accelerator" and t.node is not None]
        assumed = [t for t in self.reader.things if t.role == "accelerator" and t.node is None]
        return made or ([] if assumed and self.says(TRAINER) else assumed)

    @property
    def accelerated(self) -> bool:
        """Return whether an Accelerator owns the run."""
        return bool(self.accelerators)

    @property
    def distributed(self) -> bool:
        """Return whether the script is written to run on several ranks."""
        return self.accelerated or bool(self.reader.flags & {"accelerate", "torch.distributed", "deepspeed"})

    @property
    def sharding(self) -> str:
        """Return ``FSDP`` or ``DEEPSPEED`` where the script speaks of it in its own code, else an empty string."""
        if self.says(r"(?i)deepspeed|base_optimizer_state|zero_stage"):
            return "DEEPSPEED"
        return (
            "FSDP"
            if self.says(r"FullyShardedDataParallel|fully_shard|fsdp_plugin|fsdp_version|DistributedType\.FSDP")
            else ""
        )

    def training_loop(self, event: Event) -> Loop | None:
        """Return the innermost loop over data round an event."""
        return next((x for x in reversed(event.loops) if x.kind == "data"), None)


def at(what: str, node: ast.AST | None, path: str, name: str = "", *, certain: bool = True, **values: Plain) -> Flow:
    """Return an observation at a node."""
    line, column = getattr(node, "lineno", 1) or 1, getattr(node, "col_offset", 0) + 1
    return Flow(what=what, path=path, line=line, column=column, name=name, values=values, certain=certain)


def unique(flows: Iterable[Flow]) -> list[Flow]:
    """Return the observations without repetitions, in order of file and line."""
    seen: dict[tuple[str, str, int], Flow] = {}
    for flow in flows:
        seen.setdefault((flow.what, flow.path, flow.line), flow)
    return sorted(seen.values(), key=lambda f: (f.path, f.line, f.what))
