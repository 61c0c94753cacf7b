import msgspec

from accel_checks.env006_host_memory_short import CHECK
from accel_doctor.check import Severity
from accel_doctor.evidence import Asked, Evidence
from accel_doctor.testing import GIB, findings, healthy_host, healthy_run, outcome


def with_memory(workers: int = 0, **host: object) -> Evidence:
    return healthy_run(hosts=(msgspec.structs.replace(healthy_host(), **host),), asked=Asked(num_workers=workers))


def test_what_the_host_leaves_is_too_little() -> None:
    (finding,) = findings(CHECK, with_memory(memory_available_bytes=GIB))
    assert finding.message == ("1 GiB of memory is left of the host's 64 GiB; 2 ranks with 0 workers each need 2 GiB")
    assert finding.severity is Severity.WARNING


def test_the_cgroup_counts_where_it_leaves_less() -> None:
    (finding,) = findings(CHECK, with_memory(memory_limit_bytes=8 * GIB, memory_used_bytes=7 * GIB))
    assert finding.message == ("1 GiB of memory is left of the cgroup's 8 GiB; 2 ranks with 0 workers each need 2 GiB")


def test_less_than_an_import_of_torch_is_an_error() -> None:
    (finding,) = findings(CHECK, with_memory(memory_limit_bytes=GIB, memory_used_bytes=GIB * 3 // 4))
    assert finding.severity is Severity.ERROR
    assert finding.values == {"free_bytes": GIB // 4, "need_bytes": 2 * GIB, "ranks": 2, "workers_a_rank": 0}


def test_workers_count() -> None:
    assert findings(CHECK, with_memory(memory_available_bytes=10 * GIB)) == ()
    (finding,) = findings(CHECK, with_memory(16, memory_available_bytes=10 * GIB))
    assert finding.values["need_bytes"] == 18 * GIB


def test_unseen_memory_is_not_judged() -> None:
    assert outcome(CHECK, with_memory(memory_available_bytes=None)).outcome.value == "skipped"


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"
