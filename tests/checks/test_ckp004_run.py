from msgspec.structs import replace

from accel_checks.ckp004_missing_barrier import CHECK
from accel_doctor.evidence.run import Written
from accel_doctor.testing import findings
from accel_doctor.testing_trace import at, healthy_traced_rank, healthy_user_run

WRITTEN = Written(path="out/best.pt", site=at(40), how="torch.save", collective=3, step=16, at_s=10.0)
READ = Written(path="out/best.pt", site=at(42), how="torch.load", collective=3, step=16, at_s=10.01)


def test_a_file_read_with_no_barrier_after_its_writing() -> None:
    run = healthy_user_run(ranks=(healthy_traced_rank(0, written=(WRITTEN,)), healthy_traced_rank(1, read=(READ,))))
    (finding,) = findings(CHECK, run)
    assert finding.message == (
        "rank 1 reads out/best.pt at train.py:42, which rank 0 wrote at train.py:40 with no barrier between"
    )


def test_a_barrier_between_is_fine() -> None:
    after = replace(READ, collective=4)
    run = healthy_user_run(ranks=(healthy_traced_rank(0, written=(WRITTEN,)), healthy_traced_rank(1, read=(after,))))
    assert findings(CHECK, run) == ()


def test_a_file_that_was_there_before_is_not_a_fault() -> None:
    before = replace(READ, at_s=9.0)
    run = healthy_user_run(ranks=(healthy_traced_rank(0, written=(WRITTEN,)), healthy_traced_rank(1, read=(before,))))
    assert findings(CHECK, run) == ()
