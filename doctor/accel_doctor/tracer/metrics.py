"""Numbers that the script hands to ``Accelerator.log`` after an evaluation, and what the ranks exchanged before."""

from typing import Any

from . import collectives, imports, sites
from .core import Row, core, find
from .wrap import around

MOST = 16
NUMBERS = 16
BARRIERS = ("barrier", "monitored_barrier", "init_process_group")


def install() -> None:
    """Watch the method."""
    imports.on_import("accelerate.accelerator", lambda module: around(module.Accelerator, "log", _logged))


def exchanges() -> int | None:
    """Return how many collectives that carry data the script has called; ``None`` where not every site was kept."""
    seen = core.rows("collective_sites")
    if len(seen) >= collectives.SITES:
        return None
    return sum(int(row.get("count", 0)) for row in seen if row["op"] not in BARRIERS)


def _logged(args: tuple[Any, ...], kwargs: Row) -> None:
    """Note the numbers, where the last loop over a loader was one without backward."""
    given = args[1] if len(args) > 1 else kwargs.get("values")
    epoch = core.fields.get("_epoch")
    if epoch is None or epoch.get("backwards") or not epoch.get("exhausted") or not isinstance(given, dict):
        return
    before, now, where = epoch.get("_exchanges"), exchanges(), sites.site()
    row = find(core.rows("logged"), MOST, site=where) if where else None
    if row is not None:
        numbers = [(str(k), v) for k, v in given.items() if isinstance(v, (int, float)) and not isinstance(v, bool)]
        row["count"] = row.get("count", 0) + 1
        row["values"] = {k: float(v) for k, v in numbers[:NUMBERS]}
        row["loader"] = epoch["_loader"]["_index"]
        row["exchanges"] = None if before is None or now is None else now - before
        core.noted += 1
