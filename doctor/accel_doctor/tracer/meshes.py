"""Device meshes that the script or accelerate makes: the names of their dimensions, and where this rank stands."""

from types import ModuleType
from typing import Any

from . import imports, sites
from .core import Row, core
from .wrap import around

MOST = 8


def install() -> None:
    """Watch the class."""
    imports.on_import("torch.distributed.device_mesh", _watch)


def _watch(module: ModuleType) -> None:
    if hasattr(module, "DeviceMesh"):
        around(module.DeviceMesh, "__init__", after=_made)


def _made(token: object, args: tuple[Any, ...], kwargs: Row, result: object, error: object) -> None:
    """Record a mesh with named dimensions; not the parts that are cut out of one."""
    del token, result
    names = getattr(args[0], "mesh_dim_names", None)
    meshes = core.rows("meshes")
    if error is not None or not names or kwargs.get("_root_mesh") is not None or len(meshes) >= MOST:
        return
    stands = args[0].get_coordinate()
    if stands is not None:
        sizes = [int(n) for n in args[0].shape]
        meshes.append({"site": sites.site(), "names": list(names), "sizes": sizes, "stands": [int(n) for n in stands]})
