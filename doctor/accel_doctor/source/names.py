"""What a name says by itself, where nothing else is known of it."""

import re

from accel_doctor.source.ranks import EVERY, LAST, LOCAL_MAIN, MAIN, Cond, only

_MAIN = re.compile(
    r"_?(is_?)?(on_?)?(global_|world_)?(main|master|primary|chief|rank_?zero|rank_?0|host_?0|global_?zero|root|coordinator|leader)"
    r"(_?(process|rank|proc|node|worker|host|zero))?|is_world_process_zero|is_?main|should_save|isMainProcess",
)
_LOCAL = re.compile(
    r"_?(is_?)?local_?(main|master|rank_?zero|rank_?0|process_?zero)(_?(process|rank|proc))?|is_local_process_zero"
)
_BARE = frozenset(
    ("main", "master", "root", "primary", "chief", "leader", "coordinator", "_main", "on_main", "main_host")
)
_RANK = re.compile(
    r"_?(global_|world_|dist_|ddp_|my_|process_|proc_|mp_|torch_)?rank(_id)?|process_(index|id)|proc_(index|id)|process_rank"
)
_LOCAL_RANK = re.compile(
    r"_?(ddp_|dist_|node_)?local_?(rank|process_index|rank_id)|node_rank_local|gpu_rank|env_local_rank"
)
_WORLD = re.compile(
    r"_?(ddp_|dist_|global_)?(world_?size|num_processes|n_?procs?|num_?gpus|n_?gpus?|num_replicas|world|nprocs)"
)
_ACCELERATOR = re.compile(r"_?accelerator|_?accel")
_PARALLEL = re.compile(r"dist|ddp|parallel|multi|world|local_rank|n_?gpu|single", re.IGNORECASE)
_LOADER = re.compile(r"load|(^|_)dl($|_)|_dl$", re.IGNORECASE)
_OPTIMIZER = re.compile(r"optim|^opt($|_)|_opt$", re.IGNORECASE)
_SCHEDULER = re.compile(r"sched", re.IGNORECASE)


def predicate(name: str) -> Cond | None:
    """Return the ranks that a name like ``is_main_process`` picks, or ``None``."""
    if name in _BARE:
        return None
    if _LOCAL.fullmatch(name):
        return only(LOCAL_MAIN)
    if name in ("is_last_process", "is_last_rank"):
        return only(LAST)
    return only(MAIN) if _MAIN.fullmatch(name) else None


def rank_kind(name: str) -> str:
    """Return ``global``, ``local`` or an empty string."""
    if _LOCAL_RANK.fullmatch(name):
        return "local"
    return "global" if _RANK.fullmatch(name) else ""


def is_world(name: str) -> bool:
    """Return whether a name is that of the number of ranks."""
    return bool(_WORLD.fullmatch(name))


def is_accelerator(name: str) -> bool:
    """Return whether a name is that of an Accelerator."""
    return bool(_ACCELERATOR.fullmatch(name))


def smells_parallel(text: str) -> bool:
    """Return whether a condition asks if the run is distributed at all."""
    return bool(_PARALLEL.search(text))


def role_of(name: str) -> str:
    """Return the role an object's name suggests: ``loader``, ``optimizer``, ``scheduler``, else ``model``."""
    for role, pattern in (("scheduler", _SCHEDULER), ("optimizer", _OPTIMIZER), ("loader", _LOADER)):
        if pattern.search(name):
            return role
    return "model"


__all__ = ["EVERY", "is_accelerator", "is_world", "predicate", "rank_kind", "role_of", "smells_parallel"]
