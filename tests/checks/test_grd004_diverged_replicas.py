from accel_checks.grd004_diverged_replicas import CHECK
from accel_doctor.evidence import Checksum, Evidence, Rank
from accel_doctor.testing import changed, findings, healthy_rank, healthy_run, outcome


def trained(number: int, *checksums: Checksum, world: int = 2, **training: object) -> Rank:
    return changed(healthy_rank(number, world), "training", checksums=checksums, **training)


def run(*ranks: Rank) -> Evidence:
    return healthy_run(ranks=ranks)


def after(step: int, parameters: str, gradients: str = "same") -> Checksum:
    return Checksum(step=step, parameters=parameters, gradients=gradients)


def test_replicas_that_differ_since_a_step_whose_gradients_differ() -> None:
    (finding,) = findings(
        CHECK,
        run(
            trained(0, after(0, "p"), after(1, "q", "g0")),
            trained(1, after(0, "p"), after(1, "r", "g1")),
        ),
    )
    assert finding.message == (
        "parameters differ between ranks after optimizer step 1: 2 versions among 2 replicas, rank 0 against rank 1"
    )
    assert finding.values == {"step": 1, "versions": 2, "replicas": 2}
    assert finding.evidence[0] == ("the gradients of that step differ too (2 versions): they were not averaged")


def test_the_rank_that_left_the_majority_is_named() -> None:
    ranks = [trained(n, after(0, "odd" if n == 2 else "p"), world=4) for n in range(4)]
    (finding,) = findings(CHECK, run(*ranks))
    assert finding.ranks == (2,)
    assert finding.evidence[0].startswith("the gradients of that step are equal")


def test_gradients_that_were_not_seen_are_not_called_equal() -> None:
    (finding,) = findings(CHECK, run(trained(0, after(0, "p", "")), trained(1, after(0, "q", ""))))
    assert finding.evidence[0] == "the gradients of that step were not seen"


def test_shards_are_not_compared() -> None:
    shards = [trained(n, after(0, f"shard {n}"), sharded=True, wrapper="FullyShardedDataParallel") for n in range(2)]
    result = outcome(CHECK, run(*shards))
    assert result.outcome.value == "skipped"
    assert result.reason == "FullyShardedDataParallel holds shards, not replicas"


def test_equal_replicas_of_ranks_with_equal_data_prove_nothing() -> None:
    same = [changed(healthy_rank(n), "training", local_gradient="g") for n in range(2)]
    assert outcome(CHECK, run(*same)).outcome.value == "skipped"


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"
