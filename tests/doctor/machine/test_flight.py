"""What a flight recorder's dump says of the default group: recorded from two gloo ranks of torch 2.13."""

import json
from typing import Any

import pytest

from accel_doctor.evidence.processes import Recorded
from accel_doctor.machine import flight, stacks


def entry(number: int, name: str, **changes: Any) -> dict[str, Any]:  # noqa: ANN401
    whole = {
        "collective_seq_id": number,
        "is_p2p": False,
        "pg_id": 0,
        "process_group": ["0", "default_pg"],
        "profiling_name": f"gloo:{name}",
        "retired": True,
    }
    return whole | changes


def dump(*entries: dict[str, Any], called: str = "2", completed: str = "1") -> dict[str, Any]:
    status = {"last_completed_collective": completed, "last_enqueued_collective": called}
    return {"entries": list(entries), "pg_status": {"0": status}, "version": "2.10"}


WAITS = dump(entry(1, "barrier"), entry(2, "all_reduce", retired=False))


def test_what_is_pending() -> None:
    assert flight.recorded(WAITS) == Recorded(called=2, completed=1, pending="all_reduce", pending_seq=2)
    done = dump(entry(1, "barrier"), called="1")
    assert flight.recorded(done) == Recorded(called=1, completed=1)


def test_other_groups_and_messages_between_two_are_not_of_the_world() -> None:
    other = entry(9, "all_gather", retired=False, process_group=["7", "mesh_tp"])
    send = entry(3, "send", retired=False, is_p2p=True)
    assert flight.recorded(dump(entry(1, "barrier"), other, send, called="1")) == Recorded(called=1, completed=1)
    assert flight.recorded(dump(other)) is None


@pytest.mark.parametrize("said", ["", "{}", "[]", "null", '{"entries": [{}]}', json.dumps(WAITS | {"pg_status": {}})])
def test_what_is_no_dump_is_left_out(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    answers = {"/a": json.dumps(WAITS), "/b": said}
    monkeypatch.setattr(stacks, "post", lambda path, *_: answers[path])
    assert [*flight.read({1: "/a", 2: "/b"})] == [1]
