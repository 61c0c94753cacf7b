"""What torch's flight recorder in a rank holds, where the rank offers torch's worker server: nothing is signalled.

The answer lists up to 2000 calls (1 MB, a tenth of a second in a thread of the rank that needs no Python): it is asked
for once, and only of ranks that stand still.
"""

import http.client
import json
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from accel_doctor.evidence.processes import Recorded
from accel_doctor.machine import stacks

HANDLER = "/handler/fr_trace_json"
MOST_BYTES = 2**23
DEFAULT = "default_pg"


def read(servers: Mapping[int, str]) -> dict[int, Recorded]:
    """Return what the recorders of some processes hold, by pid; those that do not answer are left out.

    Args:
        servers: each process's worker server socket.
    """
    with ThreadPoolExecutor(stacks.AT_ONCE) as pool:
        told = pool.map(_ask, servers.values())
        return {pid: recorded for pid, recorded in zip(servers, told, strict=True) if recorded is not None}


def _ask(path: str) -> Recorded | None:
    try:
        return recorded(json.loads(stacks.post(path, HANDLER, MOST_BYTES)))
    except (OSError, http.client.HTTPException, ValueError, KeyError, TypeError, IndexError, AttributeError):
        return None


def recorded(dump: Any) -> Recorded | None:  # noqa: ANN401 - the JSON of another program
    """Return what a dump says of the default process group; ``None`` where it holds nothing of it.

    Raises:
        KeyError, TypeError, ValueError: it is no such dump.
    """
    calls = [e for e in dump["entries"] if e["process_group"][1] == DEFAULT and not e["is_p2p"]]
    if not calls:
        return None
    status = dump["pg_status"][str(calls[-1]["pg_id"])]
    pending = next((e for e in calls if not e["retired"]), None)
    return Recorded(
        called=int(status["last_enqueued_collective"]),
        completed=int(status["last_completed_collective"]),
        pending="" if pending is None else str(pending["profiling_name"]).rpartition(":")[2],
        pending_seq=None if pending is None else int(pending["collective_seq_id"]),
    )
