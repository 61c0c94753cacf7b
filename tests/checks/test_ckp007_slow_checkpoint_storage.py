import pytest

from accel_checks.ckp007_slow_checkpoint_storage import CHECK
from accel_doctor.check import Severity
from accel_doctor.evidence import Asked, Evidence
from accel_doctor.testing import GIB, changed, findings, healthy_rank, healthy_run, outcome


def with_speed(gb_s: float | None, asked: Asked) -> Evidence:
    return healthy_run(ranks=tuple(changed(healthy_rank(r), "storage", write_gb_s=gb_s) for r in (0, 1)), asked=asked)


@pytest.mark.parametrize(("interval_s", "severity"), [(600.0, Severity.WARNING), (100.0, Severity.ERROR)])
def test_the_share_of_time_lost_is_computed(interval_s: float, severity: Severity) -> None:
    asked = Asked(checkpoint_bytes=10 * GIB, checkpoint_interval_s=interval_s)
    (finding,) = findings(CHECK, with_speed(0.1, asked))
    assert finding.severity is severity
    assert finding.values["save_s"] == pytest.approx(10 * GIB / 0.2e9)
    assert finding.values["share_pct"] == pytest.approx(100 * 10 * GIB / 0.2e9 / interval_s)
    assert finding.message.startswith("a checkpoint of 10 GiB takes 54 s at 0.20 GB/s")


def test_the_bandwidth_that_would_do_is_named() -> None:
    (finding,) = findings(CHECK, with_speed(0.1, Asked(checkpoint_bytes=10**10, checkpoint_interval_s=100.0)))
    assert finding.wanted.endswith("2.00 GB/s")


@pytest.mark.parametrize("asked", [Asked(), Asked(checkpoint_bytes=GIB), Asked(checkpoint_interval_s=60.0)])
def test_without_size_and_interval_the_bandwidth_is_a_note(asked: Asked) -> None:
    (finding,) = findings(CHECK, with_speed(0.1, asked))
    assert finding.severity is Severity.NOTE
    assert finding.values == {"write_gb_s": 0.2, "slowest_rank_gb_s": 0.1}


def test_where_nothing_could_be_written_nothing_is_judged() -> None:
    assert outcome(CHECK, with_speed(None, Asked())).outcome.value == "skipped"


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"
