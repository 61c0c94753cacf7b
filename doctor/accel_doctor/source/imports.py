"""Follows imports: local modules are read, others are known by their names."""

import ast
import sys
from pathlib import Path

from accel_doctor.contracts import canonical
from accel_doctor.source.frameworks import Frameworks
from accel_doctor.source.parsing import Module, Parse
from accel_doctor.source.syntax import PENDING, Scope
from accel_doctor.source.values import Value

FOREIGN = frozenset(
    [
        "torch",
        "accelerate",
        "transformers",
        "datasets",
        "numpy",
        "pandas",
        "tqdm",
        "wandb",
        "diffusers",
        "peft",
        "deepspeed",
        "lightning",
        "pytorch_lightning",
        "torchvision",
        "torchaudio",
        "matplotlib",
        "sklearn",
        "scipy",
        "huggingface_hub",
        "tensorboard",
        "tensorboardX",
        "mlflow",
        "omegaconf",
        "hydra",
        "click",
        "evaluate",
        "trl",
        "PIL",
        "cv2",
        "einops",
        "safetensors",
        "yaml",
        "rich",
        "loguru",
        "nltk",
        "sentencepiece",
        "bitsandbytes",
        "timm",
        "monai",
        "tokenizers",
        "jax",
    ]
)
MODULE_LIMIT = 40


class Imports(Frameworks):
    """What imports bring."""

    def __init__(self, parse: Parse, module: Module) -> None:
        super().__init__()
        self.parse, self.main = parse, module
        self.contracts = parse.contracts
        self.modules: dict[str, Scope] = {}
        self.unfollowed: list[str] = []
        self.depth = 0

    def read_module(self, module: Module, name: str) -> Scope:
        """Read a module from its first line to its last."""
        raise NotImplementedError

    def imported(self, module: str, name: str | None, level: int, node: ast.AST) -> Value:
        """Return what an import brings: a local module is read, another is known by its names."""
        top = module.partition(".")[0]
        if name and f"{module}.{name}" in self.contracts:
            return Value("ref", ref=f"{module}.{name}")
        if not level and (top in FOREIGN or top in sys.stdlib_module_names):
            return Value("ref", ref=canonical(f"{module}.{name}" if name else module))
        here = self.scope
        if here.outer is not None or (self.depth == 1 and (name is None or self.guards)):
            return self._imported_from(here, module, name, level)
        named = self.depth == 1  # what a module brings is read where it is used
        return Value(PENDING, func=lambda: self._brought(here, module, name, level, named=named))

    def _brought(self, here: Scope, module: str, name: str | None, level: int, *, named: bool) -> Value:
        found = self._imported_from(here, module, name, level)
        return self.by_name(name, name) if named and name is not None and not found.kind else found

    def _imported_from(self, here: Scope, module: str, name: str | None, level: int) -> Value:
        kept, self.scopes = self.scopes, [here]
        try:
            return self._followed(module, name, level)
        finally:
            self.scopes = kept

    def _followed(self, module: str, name: str | None, level: int) -> Value:
        scope = self._local(module, level)
        if scope is None and name is not None:
            inner = self._local(f"{module}.{name}" if module else name, level)
            if inner is not None:
                return Value("module", func=inner)
        if scope is None:
            if level and module not in self.unfollowed:
                self.unfollowed.append("." * level + module)
            return (
                self.by_name(name, name).but(ref="")
                if level and name
                else Value("ref", ref=canonical(f"{module}.{name}" if name else module))
            )
        if name is None:
            return Value("module", func=scope)
        return scope.names.get(name) or Value(text=name)

    def imported_all(self, node: ast.ImportFrom) -> None:
        """Take every name of a local module."""
        scope = (
            self._local(node.module or "", node.level) if (node.module or "").partition(".")[0] not in FOREIGN else None
        )
        if scope is not None:
            for name in [n for n in scope.names if not n.startswith("_")]:
                self.scope.names[name] = scope.names[name]

    def _local(self, module: str, level: int) -> Scope | None:
        base = self.main.file.parent if self.main.file else None
        if base is None or (not module and not level):
            return None
        current = self.parse.folder_of(self.scope.path) or base
        folders = [current.joinpath(*[".."] * (level - 1))] if level else [current, base, base.parent]
        parts = module.split(".") if module else []
        for folder in dict.fromkeys(folders):
            found = self.parse.find(folder, parts)
            if found is not None:
                return self._read_local(found)
        return None

    def _read_local(self, file: Path) -> Scope | None:
        known = self.modules.get(str(file))
        if known is not None:
            return known
        module = self.parse.module(file) if len(self.modules) < MODULE_LIMIT else None
        return self.read_module(module, file.stem) if module is not None else None
