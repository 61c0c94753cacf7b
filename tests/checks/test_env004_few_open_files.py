import msgspec

from accel_checks.env004_few_open_files import CHECK
from accel_doctor.evidence import Asked, Evidence, Limits
from accel_doctor.testing import findings, healthy_host, healthy_rank, healthy_run, outcome


def with_limits(rdma: tuple[str, ...] = (), asked: Asked = Asked(), **limits: int) -> Evidence:  # noqa: B008 - frozen
    host = msgspec.structs.replace(healthy_host(), limits=Limits(**limits), rdma_devices=rdma)
    return healthy_run(hosts=(host,), asked=asked)


def test_256_open_files_are_too_few() -> None:
    (finding,) = findings(CHECK, with_limits(open_files=256))
    assert finding.message == "a process may open 256 files; a rank with 1 peers and 4 workers needs 516"
    assert finding.values == {"open_files": 256, "need_files": 516}
    assert finding.command == "ulimit -n 65536"


def test_the_usual_1024_are_enough_for_a_pair() -> None:
    assert findings(CHECK, with_limits(open_files=1024)) == ()


def test_the_usual_1024_are_too_few_for_many_workers_or_a_large_world() -> None:
    assert findings(CHECK, with_limits(open_files=1024, asked=Asked(num_workers=16)))
    host = msgspec.structs.replace(healthy_host(), limits=Limits(open_files=1024))
    world = tuple(healthy_rank(r, 256) for r in range(256))
    assert findings(CHECK, healthy_run(hosts=(host,), ranks=world))


def test_threads_count_as_processes() -> None:
    (finding,) = findings(CHECK, with_limits(processes=100))
    assert finding.message == "the user may start 100 processes and threads; 2 ranks with 4 workers each need 160"


def test_the_cgroup_counts_those_that_run_already() -> None:
    (finding,) = findings(CHECK, with_limits(cgroup_processes=1024, cgroup_processes_used=900))
    assert finding.values == {"processes": 124, "need_processes": 160}
    assert findings(CHECK, with_limits(cgroup_processes=1024, cgroup_processes_used=10)) == ()


def test_locked_memory_matters_to_rdma_alone() -> None:
    (finding,) = findings(CHECK, with_limits(("mlx5_0",), locked_memory_bytes=8 * 2**20))
    assert finding.message == "a process may lock 8 MiB; RDMA over mlx5_0 pins its buffers"
    assert findings(CHECK, with_limits((), locked_memory_bytes=8 * 2**20)) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"
    assert outcome(CHECK, with_limits()).outcome.value == "passed", "no limit is no fault"
