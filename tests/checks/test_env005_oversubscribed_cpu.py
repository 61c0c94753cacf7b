import msgspec

from accel_checks.env005_oversubscribed_cpu import CHECK
from accel_doctor.check import Severity
from accel_doctor.evidence import Asked, Evidence
from accel_doctor.testing import (
    changed,
    findings,
    healthy_host,
    healthy_launch,
    healthy_rank,
    healthy_run,
    outcome,
)


def run(ranks: int = 2, threads: int | None = 1, workers: int | None = None, **host: object) -> Evidence:
    return healthy_run(
        hosts=(msgspec.structs.replace(healthy_host(), **host),),
        ranks=tuple(msgspec.structs.replace(healthy_rank(r, ranks), threads=threads) for r in range(ranks)),
        launch=msgspec.structs.replace(healthy_launch(ranks), chosen_by="user"),
        asked=Asked(num_workers=workers),
    )


def test_threads_of_all_ranks_count_against_the_host() -> None:
    (finding,) = findings(CHECK, run(threads=16))
    assert finding.message == "2 ranks with 16 threads and 0 workers each want 32 CPUs; the host grants 16"
    assert finding.severity is Severity.WARNING
    assert finding.values == {"granted_cpus": 16, "wanted_cpus": 32, "ranks": 2, "workers_a_rank": 0}
    assert finding.ranks == (0, 1)


def test_the_quota_counts_where_it_is_below_the_affinity() -> None:
    (finding,) = findings(CHECK, run(cpus_quota=1.5))
    assert finding.values["granted_cpus"] == 1.5
    assert finding.seen == "1.5 CPUs: affinity 16 of 16, quota 1.5"


def test_the_affinity_counts_not_the_size_of_the_machine() -> None:
    (finding,) = findings(CHECK, run(cpus_affinity=1, environment={"SLURM_JOB_ID": "7"}))
    assert finding.seen == "1 CPUs: affinity 1 of 16, no quota"
    assert "srun its own --cpus-per-task" in finding.fix


def test_named_workers_count() -> None:
    assert findings(CHECK, run(workers=4)) == ()
    (finding,) = findings(CHECK, run(workers=12))
    assert finding.values["wanted_cpus"] == 26


def test_without_the_ranks_own_word_their_environment_counts() -> None:
    (finding,) = findings(CHECK, run(threads=None, cpus_affinity=1))
    assert finding.values["wanted_cpus"] == 2


def test_ranks_that_nobody_asked_for_are_no_warning() -> None:
    evidence = msgspec.structs.replace(run(cpus_affinity=1), launch=healthy_launch())
    (finding,) = findings(CHECK, evidence)
    assert finding.severity is Severity.NOTE


def test_one_thread_a_rank_is_a_note_at_most() -> None:
    (finding,) = findings(CHECK, run(cpus_total=64, cpus_affinity=64))
    assert finding.severity is Severity.NOTE
    assert finding.message == "each of 2 ranks computes with one thread on a host that grants 64 CPUs"
    assert "--num_cpu_threads_per_process 32" in finding.command
    assert outcome(CHECK, run(cpus_total=64, cpus_affinity=64)).outcome.value == "passed"


def test_one_thread_a_rank_is_right_where_devices_compute() -> None:
    evidence = run(cpus_total=64, cpus_affinity=64)
    ranks = tuple(changed(r, "group", device=f"cuda:{r.rank}") for r in evidence.world)
    assert findings(CHECK, msgspec.structs.replace(evidence, ranks=ranks)) == ()


def test_uncounted_cpus_are_not_judged() -> None:
    assert outcome(CHECK, run(cpus_affinity=None)).outcome.value == "skipped"


def test_healthy() -> None:
    assert outcome(CHECK, run()).outcome.value == "passed"
    assert outcome(CHECK, run(threads=8)).outcome.value == "passed"
