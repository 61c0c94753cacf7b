import msgspec
import pytest

from accel_checks.env003_small_shared_memory import CHECK
from accel_doctor.check import Severity
from accel_doctor.evidence import Asked, Evidence
from accel_doctor.testing import changed, findings, healthy_host, healthy_rank, healthy_run, outcome
from accel_doctor.testing_trace import healthy_loader, healthy_traced_rank

MIB = 2**20


def with_shm(free: int | None, total: int = 64 * MIB, **changes: object) -> Evidence:
    host = msgspec.structs.replace(healthy_host(), shm_total_bytes=total, shm_free_bytes=free)
    return healthy_run(hosts=(host,), **changes)


def test_dockers_64_mib_do_not_hold_two_ranks_of_four_workers() -> None:
    (finding,) = findings(CHECK, with_shm(64 * MIB))
    assert finding.severity is Severity.WARNING
    assert finding.message == ("64 MiB of 64 MiB are free in /dev/shm; 2 ranks with 4 workers each need 256 MiB")
    assert finding.values == {
        "shm_free_bytes": 64 * MIB,
        "need_bytes": 256 * MIB,
        "ranks": 2,
        "workers_a_rank": 4,
    }


def test_workers_that_the_user_named_decide() -> None:
    assert findings(CHECK, with_shm(64 * MIB, asked=Asked(num_workers=0))) == ()
    (finding,) = findings(CHECK, with_shm(1024 * MIB, asked=Asked(num_workers=32)))
    assert finding.values["need_bytes"] == 2048 * MIB


def test_workers_that_a_run_showed_decide() -> None:
    shown = (healthy_traced_rank(0), healthy_traced_rank(1, loaders=(healthy_loader(1, workers=3),)))
    (finding,) = findings(CHECK, with_shm(0, exam="run", ranks=shown))
    assert (finding.values["workers_a_rank"], finding.evidence) == (3, ())
    assert findings(CHECK, with_shm(0, exam="run", ranks=shown[:1])) == ()


def test_a_full_one_is_an_error() -> None:
    (finding,) = findings(CHECK, with_shm(0))
    assert finding.severity is Severity.ERROR


def test_nccl_that_found_no_room_is_an_error() -> None:
    ranks = tuple(
        msgspec.structs.replace(changed(healthy_rank(r, 4), "group", backend="nccl"), sweep=None) for r in range(4)
    )
    (finding,) = findings(CHECK, with_shm(64 * MIB, ranks=ranks, asked=Asked(num_workers=0)))
    assert finding.severity is Severity.ERROR
    assert finding.values["need_bytes"] == 80 * MIB


def test_nccl_that_has_worked_has_found_its_room() -> None:
    ranks = tuple(changed(healthy_rank(r, 4), "group", backend="nccl") for r in range(4))
    assert findings(CHECK, with_shm(64 * MIB, ranks=ranks, asked=Asked(num_workers=0))) == ()


def test_a_threshold_can_be_set() -> None:
    assert findings(CHECK, with_shm(64 * MIB, asked=Asked(thresholds={"ENV003.workers": 1}))) == ()


def test_without_shared_memory_there_is_nothing_to_measure() -> None:
    assert outcome(CHECK, with_shm(None)).reason == "there is no /dev/shm on this host"


@pytest.mark.parametrize("free", [256 * MIB, 2**35])
def test_healthy(free: int) -> None:
    assert outcome(CHECK, with_shm(free, 2**35)).outcome.value == "passed"
