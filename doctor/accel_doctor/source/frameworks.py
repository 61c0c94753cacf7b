"""Objects of frameworks that own the loop: the Trainer of transformers and its kin, and Lightning's Fabric."""

import ast

from accel_doctor.contracts import operation
from accel_doctor.source.roles import Roles
from accel_doctor.source.values import RANK, Value, joined

TRAINER = "transformers.Trainer"
FABRIC = "lightning.Fabric"
MAKERS = ("transformers.", "trl.")
SETUPS = ("setup", "setup_module", "setup_optimizers", "setup_dataloaders")


class Frameworks(Roles):
    """Calls on a Trainer or a Fabric."""

    def foreign(self, name: str, node: ast.Call, args: list[Value], kwargs: dict[str, Value]) -> Value:
        """Return what a function of a library gives, and note what it does."""
        if name.startswith(MAKERS) and name.endswith("Trainer"):
            super().foreign(name, node, args, kwargs)
            self.flags.add("trainer")
            return Value("trainer")
        return super().foreign(name, node, args, kwargs)

    def unknown(
        self, callee: Value, base: Value | None, node: ast.Call, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        """Return what a call gives of which only the name is known; a user's own Trainer inherits its methods."""
        if base is not None and base.kind == "instance" and isinstance(node.func, ast.Attribute):
            kin = [a for a in base.func.ancestors() if a.startswith(MAKERS) and a.endswith("Trainer")]
            if kin and operation(f"{TRAINER}.{node.func.attr}") is not None:
                self.flags.add("trainer")
                return self.method(Value("trainer"), f"{TRAINER}.{node.func.attr}", node, args, kwargs)
        return super().unknown(callee, base, node, args, kwargs)

    def _of_trainer(self, base: Value, name: str, _node: ast.AST) -> Value | None:
        known = operation(f"{TRAINER}.{name}")
        return Value("method", ref=known.name, owner=base) if known is not None else None

    def _on_trainer(
        self, last: str, owner: Value, node: ast.Call, args: list[Value], kwargs: dict[str, Value]
    ) -> Value:
        known = operation(f"{TRAINER}.{last}")
        if known is not None:
            self.operate(known, node, args, kwargs, owner)
        return Value(marks=frozenset(("reduced",)))

    def _call_Fabric(self, name: str, _node: ast.Call, _args: list[Value], _kwargs: dict[str, Value]) -> Value | None:
        if name != FABRIC:
            return None
        self.flags.add("fabric")
        return Value("fabric")

    def _of_fabric(self, base: Value, name: str, _node: ast.AST) -> Value | None:
        if name == "device":
            return Value("device", text="own", taint=RANK)
        method = operation(f"{FABRIC}.{name}") is not None or name in SETUPS
        return Value("method", ref=f"{FABRIC}.{name}", owner=base) if method else None

    def _on_fabric(
        self, last: str, owner: Value, node: ast.Call, args: list[Value], kwargs: dict[str, Value]
    ) -> Value | None:
        known = operation(f"{FABRIC}.{last}")
        if known is not None:
            self.operate(known, node, args, kwargs, owner)
        if last == "backward" and args:
            return self.backward(args[0], node, plain=False)
        if last in SETUPS:
            given = [self._set_up(value) for value in args]
            return given[0] if len(given) == 1 else joined(given, "tuple", items=given)
        return None if known is None else Value("tensor", marks=frozenset(("reduced",)))

    def _set_up(self, value: Value) -> Value:
        return value.but(wrapped="fabric") if value.kind in ("model", "loader", "optimizer") else value
