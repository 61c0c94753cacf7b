"""Builds the model that ``--model`` names, on the meta device where it can be built there."""

import importlib
import importlib.util
import json
import operator
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple

import torch
from torch import nn
from torch.utils.weak import WeakIdKeyDictionary

from accel_doctor.launch.wrap_plan import told

FORMS = "module:function, file.py:function, a transformers config.json or a directory that has one"


class ModelError(Exception):
    """The model cannot be had; the message says why."""


class Built(NamedTuple):
    """A model, and where its parameters were made."""

    model: nn.Module
    device: str
    """``meta`` (all of it), ``meta parameters`` (all else on the CPU) or ``cpu``."""
    not_meta: str
    """Why not all of it on the meta device."""


def build(named: str) -> Built:
    """Return the model, without memory for its weights unless it insists on some.

    Raises:
        ModelError: there is no such function or config, or it makes no module.
        MemoryError: it needs more than this process may have.
        Exception: whatever the user's own code raises.
    """
    make = factory(named)
    not_meta = ""
    for device, place in (("meta", torch.device("meta")), ("meta parameters", parameters_on_meta())):
        try:
            with place:
                return Built(_module(make(), named), device, not_meta)
        except Exception as error:  # noqa: BLE001, PERF203 - models that read their own values need a further attempt
            not_meta = not_meta or told(error)
    try:
        return Built(_module(make(), named), "cpu", not_meta)
    except RuntimeError as error:
        if "DefaultCPUAllocator" in str(error):
            raise MemoryError from error
        raise


@contextmanager
def parameters_on_meta() -> Iterator[None]:
    """Move each parameter to the meta device as a module takes it, and leave all else where it is."""
    register = nn.Module.register_parameter
    moved: WeakIdKeyDictionary = WeakIdKeyDictionary()

    def register_on_meta(module: nn.Module, name: str, parameter: nn.Parameter | None) -> None:
        if parameter is not None and not parameter.is_meta:
            meta = nn.Parameter(parameter.to("meta"), parameter.requires_grad)
            parameter = moved.setdefault(parameter, meta)
        register(module, name, parameter)

    nn.Module.register_parameter = register_on_meta
    try:
        yield
    finally:
        nn.Module.register_parameter = register


def _module(made: object, named: str) -> nn.Module:
    if not isinstance(made, nn.Module):
        raise ModelError(f"{named} returns {type(made).__name__}, not a torch.nn.Module")
    return made


def factory(named: str) -> Callable[[], Any]:
    """Return what makes the model when called.

    Raises:
        ModelError: there is no such function or config.
    """
    place, _, name = named.rpartition(":")
    if place:
        return _function(_file(Path(place)) if place.endswith(".py") else _imported(place), name)
    path = Path(named)
    config = path / "config.json" if path.is_dir() else path
    if config.suffix != ".json" or not config.is_file():
        raise ModelError(f"{named} is none of {FORMS}")
    return _from_config(config)


def _function(module: ModuleType, name: str) -> Callable[[], Any]:
    try:
        found = operator.attrgetter(name)(module)
    except AttributeError:
        raise ModelError(f"{module.__file__} has no {name}") from None
    if not callable(found):
        raise ModelError(f"{name} of {module.__file__} is {type(found).__name__}, not a function")
    return found  # type: ignore[no-any-return]


def _imported(name: str) -> ModuleType:
    """Import a module with the working directory first on the path, as ``python -m`` has it."""
    sys.path.insert(0, str(Path.cwd()))
    return importlib.import_module(name)


def _file(path: Path) -> ModuleType:
    """Load a file with its folder first on the path, as a script of the user's has it."""
    if not path.is_file():
        raise ModelError(f"there is no file {path}")
    sys.path.insert(0, str(path.resolve().parent))
    name = f"accel_doctor_model_{path.stem}"
    spec = importlib.util.spec_from_file_location(name, path)
    if spec is None or spec.loader is None:
        raise ModelError(f"{path} cannot be loaded")
    module = importlib.util.module_from_spec(spec)
    sys.modules[name] = module
    spec.loader.exec_module(module)
    return module


def _from_config(path: Path) -> Callable[[], Any]:
    config = json.loads(path.read_text())
    if "model_type" not in config:
        raise ModelError(f"{path} has no model_type: it is no config of transformers")
    try:
        transformers = importlib.import_module("transformers")
    except ImportError as error:
        raise ModelError(f"{path} is a config of transformers, which cannot be imported: {told(error)}") from error
    settings = transformers.AutoConfig.from_pretrained(str(path))
    for name in config.get("architectures") or ():
        if hasattr(transformers, name):
            return lambda: getattr(transformers, name)(settings)
    causal = type(settings) in transformers.MODEL_FOR_CAUSAL_LM_MAPPING
    automatic = transformers.AutoModelForCausalLM if causal else transformers.AutoModel
    return lambda: automatic.from_config(settings)


def weightless(model: nn.Module, device: str) -> None:
    """Replace every parameter and buffer by an empty one; what was one tensor in two places stays one.

    Under a ``FakeTensorMode`` the new ones claim to be on ``device`` and take no memory.
    """
    made: dict[int, torch.Tensor] = {}
    old = [p for p in (*model.parameters(), *model.buffers())]  # noqa: C416 - kept alive, so that no id is used twice
    for module in model.modules():
        for name, tensor in (*module.named_parameters(recurse=False), *module.named_buffers(recurse=False)):
            if id(tensor) not in made:
                made[id(tensor)] = _empty(tensor, device)
            setattr(module, name, made[id(tensor)])
    del old


def _empty(tensor: torch.Tensor, device: str) -> torch.Tensor:
    empty = torch.empty(tensor.shape, dtype=tensor.dtype, device=device)
    return nn.Parameter(empty, tensor.requires_grad) if isinstance(tensor, nn.Parameter) else empty
