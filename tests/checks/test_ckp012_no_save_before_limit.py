import msgspec

from accel_checks.ckp012_no_save_before_limit import CHECK
from accel_doctor.evidence import Asked, Evidence
from accel_doctor.testing import findings, healthy_host, healthy_run, outcome


def with_limit(end_s: float | None, asked: Asked) -> Evidence:
    return healthy_run(hosts=(msgspec.structs.replace(healthy_host(), job_end_s=end_s),), asked=asked)


def test_the_job_ends_before_its_first_checkpoint() -> None:
    (finding,) = findings(CHECK, with_limit(100.0 + 1800, Asked(checkpoint_interval_s=3600.0)))
    assert finding.message == ("Slurm job 4711 ends 30 min after the start; the first checkpoint comes after 60 min")
    assert finding.values == {"left_s": 1800, "checkpoint_interval_s": 3600}


def test_the_users_own_limit_counts_too() -> None:
    (finding,) = findings(CHECK, with_limit(None, Asked(checkpoint_interval_s=3600.0, time_limit_s=600.0)))
    assert finding.message.startswith("the run ends 10 min after the start")


def test_the_nearer_limit_counts() -> None:
    asked = Asked(checkpoint_interval_s=3600.0, time_limit_s=86400.0)
    (finding,) = findings(CHECK, with_limit(100.0 + 1800, asked))
    assert finding.values["left_s"] == 1800


def test_without_a_limit_it_is_not_judged() -> None:
    result = outcome(CHECK, with_limit(None, Asked(checkpoint_interval_s=3600.0)))
    assert result.reason == "neither the user nor a scheduler states a time limit"


def test_without_an_interval_it_is_not_judged() -> None:
    assert outcome(CHECK, with_limit(200.0, Asked())).reason == "nobody said how often a checkpoint is saved"


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"
