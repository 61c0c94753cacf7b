"""Where a rank that is only looked at from outside stands: waiting or working, in what, at which line. Pure."""

import re
from collections.abc import Iterable, Sequence
from itertools import pairwise, takewhile
from typing import NamedTuple

from accel_doctor.evidence.processes import Look, Seen
from accel_doctor.evidence.run import Frame, Site

QUIET_SHARE = 0.05
"""Share of one core below which a thread counts as asleep: a watchdog's or a progress bar's thread takes less."""
STOPPED = {
    "T": "is stopped (state T: SIGSTOP or a terminal's Ctrl-Z)",
    "t": "is held by a debugger (state t)",
    "D": "is in uninterruptible sleep (state D: disk, network file system or driver)",
}
GONE = ("", "Z", "X")
WITH_PEERS = ("collective", "backward", "device")
"""Kinds of waiting in which a rank may wait for its peers."""

_COLLECTIVES = frozenset(
    """
    all_reduce all_gather all_gather_into_tensor all_gather_object all_reduce_coalesced all_to_all
    all_to_all_single barrier monitored_barrier broadcast broadcast_object_list gather gather_object
    reduce reduce_scatter reduce_scatter_tensor scatter scatter_object_list send recv isend irecv
    batch_isend_irecv
    """.split()  # noqa: SIM905 - as a list it is twenty lines
)
_OPERATIONS = frozenset(
    """
    gather gather_object gather_for_metrics reduce broadcast broadcast_object_list pad_across_processes
    wait_for_everyone
    """.split()  # noqa: SIM905 - as a list it is twenty lines
)
_JOINING = frozenset(
    ("init_process_group", "_store_based_barrier", "_new_process_group_helper", "_env_rendezvous_handler")
)
_BY_FILE = (
    (r"/(pdb|bdb|getpass|ipdb/\w+|code)\.py$", "prompt"),
    (r"/(filelock|portalocker)/|/filelock/_", "lock"),
    (r"/torch/utils/data/dataloader\.py$", "data"),
    (r"/torch/utils/data/_utils/fetch\.py$", "fetch"),
    (r"/torch/autograd/(graph|__init__)\.py$", "backward"),
    (r"/torch/(serialization|storage)\.py$|/safetensors/|/torch/distributed/checkpoint/", "save"),
    (
        r"/torch/_inductor/(compile|codegen|async_|graph|sched)|/torch/_dynamo/(convert|symbolic|output)|/triton/comp",
        "compile",
    ),
    (r"/subprocess\.py$", "subprocess"),
    (r"/(socket|ssl)\.py$|/http/client\.py$|/urllib/|/(urllib3|requests|httpx|httpcore)/", "network"),
    (r"/(aiohttp|botocore|huggingface_hub)/", "network"),
    (r"/threading\.py$", "thread"),
)
_BY_TEXT = (
    (r"\binput\(|\bgetpass\(|\bbreakpoint\(|set_trace\(", "prompt"),
    (r"\bflock\(|\blockf\(|\.acquire\(|Lock\(", "lock"),
    (r"\bsleep\(", "sleep"),
    (r"\.recv\(|\.accept\(|\.connect\(|urlopen\(|requests\.|\.recv_into\(", "network"),
    (r"\.item\(\)|\.cpu\(\)|\.tolist\(\)|synchronize\(|\.numpy\(\)", "device"),
    (r"\bopen\(|\.read\(|\.write\(|fsync\(", "disk"),
)
_WORDS = {
    "collective": "waits in {op}",
    "backward": "waits in backward for the gradients of its peers",
    "device": "waits for its device",
    "join": "waits for the others to join",
    "data": "waits for its loader's workers",
    "fetch": "reads its data itself",
    "prompt": "waits for an answer at a prompt",
    "lock": "waits for a lock",
    "thread": "waits for another thread of its own",
    "network": "waits for the network",
    "disk": "waits for a file",
    "sleep": "sleeps",
    "subprocess": "waits for a program that it started",
    "save": "saves or loads a state",
    "compile": "compiles",
    "import": "imports modules",
}


class Standing(NamedTuple):
    """Where a rank stands over the looks at it."""

    kind: str
    """``collective``, ``backward``, ``data``, ``prompt`` … (a key of ``_WORDS``); ``stopped``, ``gone``, or empty
    where neither a stack nor the kernel tells."""
    op: str
    site: Site | None
    """The innermost line of the user's; ``None`` without a stack."""
    waiting: bool
    """Its main thread slept, or stayed in one call, over all looks."""
    cpu_share: float | None
    """CPU time of its main thread over the time of the looks, 1 for one core."""
    detail: str = ""
    """What it waits for: the lock's file and holder, the peer of a socket."""
    loading_pct: float | None = None
    """Share of the stacks in which it was in its data loader."""
    looks: int = 0
    span_s: float = 0.0

    @property
    def what(self) -> str:
        """Return what it is doing, for a sentence."""
        if self.kind in STOPPED:
            return STOPPED[self.kind]
        if self.kind == "gone":
            return "has ended"
        verb = _WORDS.get(self.kind, "sleeps in a call that was not seen" if self.waiting else "works")
        said = verb.format(op=self.op or "a collective") if self.waiting or self.kind in ("data", "fetch") else "works"
        place = f" at {self.site.path}:{self.site.line}" if self.site else ""
        return f"{said}{f' ({self.detail})' if self.detail and self.waiting else ''}{place}"


def standing(seen: Seen) -> Standing:
    """Return where a rank stands."""
    looks = seen.looks
    if not looks or looks[-1].state in GONE:
        return Standing("gone" if looks else "", "", None, waiting=False, cpu_share=None)
    share, span = cpu_share(looks), looks[-1].at_s - looks[0].at_s
    told = [look for look in looks if look.stack]
    loading = 100 * sum(loads(look.stack or ()) for look in told) / len(told) if told else None
    state = looks[-1].state
    if state in STOPPED and all(look.state == state for look in looks) and (state != "D" or at_rest(looks)):
        site = _site(told[-1].stack or ()) if told else None
        return Standing(state, "", site, True, share, looks=len(looks), span_s=span)  # noqa: FBT003
    kind, op = _kind(looks[-1], told[-1] if told else None)
    site = _site(told[-1].stack or ()) if told else None
    return Standing(
        kind=kind,
        op=op,
        site=site,
        waiting=at_rest(looks) or (kind in WITH_PEERS and bool(seen.devices) and stays(told)),
        cpu_share=share,
        detail=_detail(looks[-1]),
        loading_pct=loading,
        looks=len(looks),
        span_s=span,
    )


def cpu_share(looks: Sequence[Look]) -> float | None:
    """Return the share of one core that the main thread took; ``None`` where too little was seen."""
    first, last = looks[0], looks[-1]
    if first.main_cpu_s is None or last.main_cpu_s is None or last.at_s - first.at_s < 0.3:
        return None
    return (last.main_cpu_s - first.main_cpu_s) / (last.at_s - first.at_s)


def at_rest(looks: Sequence[Look]) -> bool:
    """Return whether a process did nothing over its looks: asleep, no CPU, no bytes moved, no worker busy."""
    if len(looks) < 3 or any(look.state in ("R", *GONE) for look in looks[1:]):
        return False
    first, last = looks[0], looks[-1]
    span = last.at_s - first.at_s
    moved = first.io_bytes is not None and last.io_bytes is not None and last.io_bytes != first.io_bytes
    cpu = (last.cpu_s - first.cpu_s) + max(0.0, last.workers_cpu_s - first.workers_cpu_s)
    return not moved and cpu <= QUIET_SHARE * span + 0.02 and len({_site(s) for s in _stacks(looks)}) <= 1


def waiting_share(looks: Sequence[Look]) -> float | None:
    """Return the share of the stacks in which a rank slept in a call that its peers end; ``None`` without stacks."""
    told = [look for look in looks if look.stack]
    if not told:
        return None
    return sum(
        look.state == "S" and _by_stack(look.stack or ())[0] in ("collective", "backward") for look in told
    ) / len(told)


def goes_on(looks: Sequence[Look]) -> bool:
    """Return whether a main thread worked again and again: in three of four spans between looks, of half a second."""
    used = [look.main_cpu_s for look in looks if look.main_cpu_s is not None]
    spans = [after - before > 0.005 for before, after in pairwise(used)]
    return len(spans) >= 4 and sum(spans) * 4 >= 3 * len(spans)


def stays(told: Sequence[Look]) -> bool:
    """Return whether every stack was in the same line of the user's; a thread that waits for a device spins."""
    return len(told) >= 4 and len({_site(look.stack or ()) for look in told}) == 1


def _stacks(looks: Iterable[Look]) -> list[tuple[Frame, ...]]:
    return [look.stack for look in looks if look.stack]


def _site(stack: Sequence[Frame]) -> Site | None:
    frame = next((f for f in stack if f.user), None)
    return Site(path=frame.path, line=frame.line, function=frame.function) if frame else None


def loads(stack: Sequence[Frame]) -> bool:
    """Return whether a stack is in a data loader."""
    return any(re.search(r"/torch/utils/data/(dataloader|_utils/fetch)\.py$", f.path) for f in stack)


def _kind(look: Look, told: Look | None) -> tuple[str, str]:
    """Return the kind of place, and the collective's name."""
    wait = look.wait
    by_stack, op = _by_stack(told.stack or ()) if told else ("", "")
    if wait and (wait.target == "terminal" or wait.name == "standard input") and wait.call in ("read", "poll"):
        return "prompt", ""
    if wait and wait.call == "lock":
        return "lock", ""
    if by_stack:
        return by_stack, op
    if told and loads(told.stack or ()):
        return "fetch", ""
    if told and told.line_text and (found := _first(_BY_TEXT, told.line_text)):
        return found, ""
    return _by_wait(look), ""


def _first(table: Sequence[tuple[str, str]], text: str) -> str:
    return next((kind for pattern, kind in table if re.search(pattern, text)), "")


def _by_stack(stack: Sequence[Frame]) -> tuple[str, str]:
    """Return the kind of the innermost frame that tells, below the user's own code, and the collective's name."""
    if stack and stack[0].path.endswith("/torch/nn/parallel/distributed.py"):
        return "collective", "a broadcast of buffers"
    below = list(takewhile(lambda frame: not frame.user, stack))
    return next((told for frame in below if (told := _by_frame(frame))[0]), ("", ""))


def _by_frame(frame: Frame) -> tuple[str, str]:
    name = frame.function.rpartition(".")[2]
    if frame.path.endswith("/torch/distributed/rendezvous.py") or name in _JOINING:
        return "join", ""
    if "/torch/distributed/" in frame.path and name in (*_COLLECTIVES, "wait", "wait_tensor"):
        return "collective", name if name in _COLLECTIVES else "a collective"
    if "/accelerate/" in frame.path and name in _OPERATIONS:
        return "collective", name
    if "importlib" in frame.path and name in ("_find_and_load", "_load_unlocked", "exec_module"):
        return "import", ""
    return _first(_BY_FILE, frame.path), ""


def _by_wait(look: Look) -> str:
    wait = look.wait
    if look.state == "D":
        return "disk"
    if wait is None:
        return ""
    if wait.call in ("receive", "connect", "accept") or wait.target == "socket":
        return "network"
    by_call = {"sleep": "sleep", "sync": "disk", "open": "disk", "wait": "subprocess"}
    return by_call.get(wait.call, "disk" if wait.call in ("read", "write") and wait.target == "file" else "")


def _detail(look: Look) -> str:
    wait = look.wait
    if wait is None:
        return ""
    holder = f"held by pid {wait.holder}" if wait.holder else ""
    return ", ".join(part for part in (wait.name, holder) if part)
