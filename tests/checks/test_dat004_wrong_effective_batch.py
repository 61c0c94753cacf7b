from msgspec.structs import replace

from accel_checks.dat004_wrong_effective_batch import CHECK
from accel_doctor.evidence import Asked, Evidence, Rank
from accel_doctor.testing import changed, findings, healthy_rank, healthy_run, outcome


def taking(number: int, rows: int, accumulation: int, world: int = 2, **data: object) -> Rank:
    loader = {
        "per_rank_batch": rows,
        "accumulation": accumulation,
        "asked_accumulation": accumulation,
        "rows_per_step": (rows * accumulation,) * 3,
    }
    return changed(healthy_rank(number, world), "data", **loader | data)


def run(*ranks: Rank, **asked: object) -> Evidence:
    return healthy_run(ranks=ranks, asked=replace(Asked(), **asked))


def two(rows: int, accumulation: int, **data: object) -> tuple[Rank, ...]:
    return tuple(taking(n, rows, accumulation, 2, **data) for n in range(2))


def test_another_batch_than_expected_shows_the_arithmetic() -> None:
    evidence = run(*two(16, 2), expect_batch_size=128, sources={"expect_batch_size": "pyproject.toml"})
    (finding,) = findings(CHECK, evidence)
    assert finding.message == (
        "the effective batch is 64 (measured), and 128 was expected: 16 x 2 ranks x 2 accumulation = 64"
    )
    assert finding.wanted == "128 rows a step (pyproject.toml)"
    assert finding.values["effective_batch"] == 64
    assert finding.values["expected_batch"] == 128


def test_the_expected_batch_is_no_finding() -> None:
    assert findings(CHECK, run(*two(16, 2), expect_batch_size=64)) == ()


def test_accumulation_overridden_by_the_environment_names_the_variable() -> None:
    ranks = tuple(
        replace(taking(n, 16, 4, asked_accumulation=2), environment={"ACCELERATE_GRADIENT_ACCUMULATION_STEPS": "4"})
        for n in range(2)
    )
    (finding,) = findings(CHECK, run(*ranks, batch_size=16, gradient_accumulation_steps=2))
    assert finding.values == {
        "effective_batch": 128,
        "expected_batch": 64,
        "rows_a_micro_batch": 16,
        "data_parallel_ranks": 2,
        "accumulation_steps": 4,
    }
    assert finding.evidence == ("ACCELERATE_GRADIENT_ACCUMULATION_STEPS=4 in the ranks wins over the argument",)
    assert finding.fix.startswith("unset ACCELERATE_GRADIENT_ACCUMULATION_STEPS")


def test_without_an_expectation_what_was_measured_is_held_against_the_arithmetic() -> None:
    (finding,) = findings(CHECK, run(*two(16, 2, rows_per_step=(16, 16, 16))))
    assert finding.message == (
        "the effective batch is 32 (measured), and 64 was expected: 16 x 2 ranks x 2 accumulation = 64"
    )


def test_a_last_step_cut_short_by_the_end_of_the_data_does_not_count() -> None:
    assert findings(CHECK, run(*two(16, 2, rows_per_step=(32, 32, 16)))) == ()


def test_ranks_that_share_a_sample_count_once() -> None:
    ranks = tuple(taking(n, 16, 2, world=4, data_parallel_size=2) for n in range(4))
    assert findings(CHECK, run(*ranks, expect_batch_size=64)) == ()
    (finding,) = findings(CHECK, run(*ranks, expect_batch_size=128))
    assert finding.values["data_parallel_ranks"] == 2


def test_with_ranks_missing_the_batch_is_computed_and_says_so() -> None:
    lone = (taking(0, 16, 2),)
    assert findings(CHECK, run(*lone, expect_batch_size=64)) == ()
    (finding,) = findings(CHECK, run(*lone, expect_batch_size=32))
    assert "64 (computed, not all ranks were seen)" in finding.message


def test_repeated_samples_are_another_checks_business() -> None:
    assert findings(CHECK, run(*two(2, 1, samples=(0, 0, 0, 0, 0, 0)), expect_batch_size=4)) == ()


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"
