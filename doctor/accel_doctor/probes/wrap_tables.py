"""What a model is made of before anything wraps it: parameters by name, classes, repeated blocks."""

from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import NamedTuple

import torch
from torch import nn

from accel_doctor.evidence import ModelClass
from accel_doctor.evidence.plan import MAX_CLASSES

CONTAINERS = (nn.ModuleList, nn.Sequential, nn.ModuleDict)


class Parameter(NamedTuple):
    """One name of a parameter; a tied one has several."""

    identity: int
    numel: int
    dtype: torch.dtype
    trained: bool
    owner: str
    """Path of the module that holds it."""


def parameters_of(model: nn.Module) -> dict[str, Parameter]:
    """Return the parameters by every name they have."""
    return {
        name: Parameter(id(p), p.numel(), p.dtype, p.requires_grad, name.rpartition(".")[0])
        for name, p in model.named_parameters(remove_duplicate=False)
    }


def distinct(parameters: Iterable[Parameter]) -> list[Parameter]:
    """Return each parameter once."""
    return list({p.identity: p for p in parameters}.values())


def classes_of(model: nn.Module, wanted: Iterable[str] = ()) -> tuple[ModelClass, ...]:
    """Return the largest classes of a model, and those wanted whatever their size."""
    every = sorted(_grouped(model.modules()), key=lambda c: (-c.parameters, c.name))
    return tuple(every[:MAX_CLASSES]) + tuple(c for c in every[MAX_CLASSES:] if c.name in wanted)


def blocks_of(model: nn.Module) -> tuple[ModelClass, ...]:
    """Return the classes of the outermost repeated modules, those with the most parameters first."""
    return tuple(sorted(_grouped(_repeated(model)), key=lambda c: (-c.parameters, c.name))[:MAX_CLASSES])


def _repeated(module: nn.Module) -> Iterator[nn.Module]:
    """Yield the children of containers that have a sibling of their class, without looking into them."""
    names = [type(child).__name__ for child in module.children()]
    for child in module.children():
        repeated = isinstance(module, CONTAINERS) and names.count(type(child).__name__) > 1
        if repeated and not isinstance(child, CONTAINERS):
            yield child
        else:
            yield from _repeated(child)


def _grouped(modules: Iterable[nn.Module]) -> Iterator[ModelClass]:
    """Yield one record a class name."""
    found = defaultdict(list)
    for module in modules:
        found[type(module).__name__].append(module)
    for name, instances in found.items():
        counts = {id(p): p.numel() for module in instances for p in module.parameters()}
        yield ModelClass(name=name, count=len(instances), parameters=sum(counts.values()))
