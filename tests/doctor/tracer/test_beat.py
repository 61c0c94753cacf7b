"""What a rank writes stays within its bounds, and can be read."""

import threading
import time
from pathlib import Path

import msgspec
import pytest

from accel_doctor.evidence.run import Trace
from accel_doctor.evidence.trace_file import read_trace
from accel_doctor.tracer import beat, stall
from accel_doctor.tracer.core import RECORD, Site, core


@pytest.fixture
def writer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> beat.Writer:
    (tmp_path / "ranks").mkdir()
    monkeypatch.setattr(core, "lists", {})
    monkeypatch.setattr(core, "fields", {})
    return beat.Writer(str(tmp_path))


def test_a_summary_is_at_most_64_kib(writer: beat.Writer) -> None:
    site = Site("/work/" + "x" * 60 + ".py", 1, "f" * 40)
    epoch = {"batches": 1, "rows": 8, "order": 2**31, "prefix": 2**31, "first": 2**31}
    core.lists = {
        "said": [{"kind": "print", "site": site, "count": i} for i in range(128)],
        "written": [{"path": "p" * 200, "site": site, "count": i} for i in range(128)],
        "loaders": [{"site": site, "epochs": [epoch] * 32, "samples": [{"indices": [2**31] * 512}]} for _ in range(24)],
        "optimizers": [{"class_name": "SGD", "learning_rates": [0.123456] * 600, "lr_steps": list(range(600))}] * 16,
    }
    writer.summary(force=True)
    path = Path(writer.stem + ".trace")
    assert path.stat().st_size <= 64 * 1024
    assert msgspec.json.decode(path.read_bytes(), type=Trace).loaders[0].epochs


def test_lines_end_at_their_bound(writer: beat.Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(writer, "room", 100)
    for _ in range(50):
        writer.line({"pid": 1})
    assert Path(writer.stem + ".jsonl").stat().st_size <= 100


def test_numbers_that_json_does_not_know_do_not_spoil_a_summary(writer: beat.Writer) -> None:
    core.lists = {"backwards": [{"count": 1, "divided_by": float("nan")}]}
    writer.summary(force=True)
    trace = read_trace(Path(writer.stem + ".jsonl"))
    assert trace is not None
    assert trace.backwards[0].divided_by is None


def test_a_progress_record_that_cannot_be_had_has_a_reason(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "memory", None)
    assert "No such file" in beat.map_progress(str(tmp_path / "absent" / "1"))
    assert core.memory is None


def test_a_progress_record_tells_the_phase(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "memory", None)
    assert beat.map_progress(str(tmp_path / "1")) == ""
    before = core.enter("backward")
    progress, _, _, phase, _ = RECORD.unpack_from((tmp_path / "1").read_bytes())
    assert (progress, phase) == (core.progress, 3)
    core.leave(before)


def test_a_progress_record_keeps_the_place_of_a_watched_call(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(core, "memory", None)
    assert beat.map_progress(str(tmp_path / "1")) == ""
    core.leave(core.enter("backward", site=Site("/work/train.py", 7, "main")))
    core.tell_alive(0.0)
    assert b"backward\n\n\n7\nmain\n/work/train.py\0" in (tmp_path / "1").read_bytes()


def test_a_loop_that_changes_nothing_is_told_from_one_that_works(monkeypatch: pytest.MonkeyPatch) -> None:
    def same(body: str) -> bool:
        stop: list[int] = []
        names = {"stop": stop, "work": []}
        code = compile(f"def go(stop, work, n=0):\n while not stop:\n  {body}\ngo(stop, work)", "user.py", "exec")
        thread = threading.Thread(target=exec, args=(code, names), daemon=True)
        thread.start()
        monkeypatch.setattr(core, "thread", thread.ident)
        stillness = stall.Stillness()
        stillness.look()
        since = []
        for _ in range(4):
            time.sleep(0.01)
            since.append(stillness.look())
        stop.append(1)
        thread.join()
        return 0 < since[0] == since[-1]

    assert same("pass")
    assert not same("n += 1")
    assert not same("work.append(0)")
