"""The files by which doctors meet: one verdict, and nothing of another job taken for this one's."""

import os
import time
from pathlib import Path

import msgspec
import pytest

from accel_doctor.errors import UsageError
from accel_doctor.evidence import Machine
from accel_doctor.evidence.file import write_evidence
from accel_doctor.exams.world import part, whole
from accel_doctor.launch.roster import BEGIN, FORGOTTEN_S, MACHINES, STALE_S, Roster
from accel_doctor.run_directory import make_run_directory
from machines import machine, together


def come(shared: Path, name: str, **changes: object) -> Roster:
    """Return the roster of a doctor that has just come."""
    folder = shared / MACHINES / name
    folder.mkdir(parents=True)
    (folder / BEGIN).touch()
    roster = Roster(shared, name)
    said = Machine(id=name, host=name.rpartition("-")[0], count=2)
    roster.write(msgspec.structs.replace(said, **changes))
    return roster


def age(path: Path, seconds: float) -> None:
    then = time.time() - seconds
    os.utime(path, (then, then))


def test_one_doctor_alone_takes_the_verdict(tmp_path: Path) -> None:
    first, second = come(tmp_path, "a-1"), come(tmp_path, "b-1")
    assert [first.claim(), second.claim(), first.claim(), second.claim(late=True)] == [True, False, True, False]
    assert second.holder() == "a-1"


def test_a_verdict_that_was_given_is_free_for_the_next_exam_and_not_for_a_late_peer_of_the_same(tmp_path: Path) -> None:
    first, peer = come(tmp_path, "a-1"), come(tmp_path, "b-1")
    first.claim()
    assert not peer.is_given()
    first.leave()
    assert peer.is_given()
    assert peer.given_by() == "a-1"
    assert not peer.claim(late=True)
    age(tmp_path / "verdict", 30)
    assert come(tmp_path, "a-2").claim()


def test_a_doctor_that_died_with_the_verdict_loses_it(tmp_path: Path) -> None:
    dead, second = come(tmp_path, "a-1"), come(tmp_path, "b-1")
    dead.claim()
    age(dead.folder / "machine.json", STALE_S + 5)
    assert second.holder() is None
    assert second.claim()


def test_what_was_said_before_this_doctor_began_stops_nobody(tmp_path: Path) -> None:
    first = come(tmp_path, "a-1")
    first.stop_all("peer")
    assert first.stopped() == "peer"
    age(tmp_path / "stop", 30)
    assert first.stopped() == ""


def test_others_are_told_apart_by_whether_they_ended_fell_silent_or_run(tmp_path: Path) -> None:
    own = come(tmp_path, "a-1", rank=0)
    ended, silent = come(tmp_path, "b-1", rank=2), come(tmp_path, "c-1", rank=1)
    come(tmp_path, "d-1", rank=3)
    write_evidence(ended.folder, together())
    age(silent.folder / "machine.json", STALE_S + 5)
    assert [(m.host, m.ended, m.silent) for m in own.others()] == [
        ("c", False, True),
        ("b", True, False),
        ("d", False, False),
    ]


def test_parts_of_earlier_jobs_are_removed_and_those_of_this_one_stay(tmp_path: Path) -> None:
    own = come(tmp_path, "a-1")
    collected, forgotten, running = come(tmp_path, "b-1"), come(tmp_path, "c-1"), come(tmp_path, "d-1")
    age(write_evidence(collected.folder, together()), 60)
    write_evidence(tmp_path, together())
    age(forgotten.folder / "machine.json", FORGOTTEN_S + 5)
    own.forget_earlier()
    assert {f.name for f in (tmp_path / MACHINES).iterdir()} == {"a-1", running.own_id}


def test_a_shared_run_directory_keeps_what_other_machines_write(tmp_path: Path) -> None:
    other = come(tmp_path, "elsewhere-1")
    (other.folder / "ranks").mkdir()
    own = make_run_directory(tmp_path, tmp_path, shared=True)
    assert own.parent == tmp_path / MACHINES
    assert {f.name for f in own.iterdir()} == {BEGIN, "ranks"}
    assert (other.folder / "ranks").is_dir()


def test_a_lone_exam_in_the_same_directory_removes_the_machines_of_an_earlier_one(tmp_path: Path) -> None:
    come(tmp_path, "elsewhere-1")
    make_run_directory(tmp_path, tmp_path)
    assert not (tmp_path / MACHINES).exists()


def test_machines_without_a_common_directory_are_refused(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="give --run-dir a directory that all of them share"):
        make_run_directory(None, tmp_path, shared=True)


def test_the_whole_has_every_host_and_rank_once_and_a_machine_without_a_part(tmp_path: Path) -> None:
    evidence = together(machine(0, 3), machine(1, 3))
    first, second = (
        msgspec.structs.replace(evidence, machines=None, hosts=(host,), ranks=evidence.by_host[host.name])
        for host in evidence.hosts or ()
    )
    roster = come(tmp_path, "node1-7")
    assert roster.part("node1-7") is None
    write_evidence(roster.folder, part(second, machine(1, 3), "node0"))
    merged = whole(first, machine(0, 3), [(machine(2, 3), None), (machine(1, 3), roster.part("node1-7"))])
    assert [h.name for h in merged.hosts or ()] == ["node0", "node1"]
    assert [r.rank for r in merged.world] == [0, 1]
    assert [(m.rank, m.launch is not None) for m in merged.machines or ()] == [(0, True), (1, True), (2, True)]
    assert merged.asked_ranks == 3
