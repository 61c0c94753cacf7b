from accel_checks.dat001_unsharded_loader import CHECK
from accel_doctor.evidence import Evidence, Rank
from accel_doctor.testing import changed, findings, healthy_rank, healthy_run, outcome


def fetching(number: int, samples: tuple[int, ...], world: int = 2, **data: object) -> Rank:
    rows = (2,) * (len(samples) // 2)
    return changed(healthy_rank(number, world), "data", samples=samples, batch_rows=rows, rows_per_step=rows, **data)


def run(*ranks: Rank) -> Evidence:
    return healthy_run(ranks=ranks)


def test_ranks_that_fetch_the_same_samples() -> None:
    same = tuple(range(8))
    (finding,) = findings(CHECK, run(*(fetching(n, same, dataset_length=8) for n in range(2))))
    assert finding.message == "ranks 0 and 1 fetch the same samples: 8 of 8 came to more than one rank"
    assert finding.ranks == (0, 1)
    assert finding.values == {"shared_samples": 8, "distinct_samples": 8, "padding_samples": 0}


def test_orders_that_were_not_agreed_on_overlap_in_part() -> None:
    evidence = run(fetching(0, (0, 1, 2, 3), dataset_length=8), fetching(1, (2, 3, 4, 5), dataset_length=8))
    (finding,) = findings(CHECK, evidence)
    assert finding.values["shared_samples"] == 2


def test_padding_of_the_last_batch_is_no_fault() -> None:
    padded = run(fetching(0, (0, 1, 4, 5, 8, 0), dataset_length=9), fetching(1, (2, 3, 6, 7, 1, 2), dataset_length=9))
    assert findings(CHECK, padded) == ()


def test_ranks_of_one_tensor_parallel_group_share_their_samples() -> None:
    def peers(second_group: tuple[int, ...]) -> Evidence:
        shares = ((0, 1, 4, 5), (0, 1, 4, 5), second_group, second_group)
        ranks = [fetching(n, s, 4, data_parallel_size=2, dataset_length=8) for n, s in enumerate(shares)]
        return run(*ranks)

    assert findings(CHECK, peers((2, 3, 6, 7))) == ()
    (finding,) = findings(CHECK, peers((0, 1, 4, 5)))
    assert finding.values["shared_samples"] == 4


def test_one_rank_shares_with_nobody() -> None:
    result = outcome(CHECK, healthy_run(ranks=(healthy_rank(0, 1),)))
    assert (result.outcome.value, result.findings) == ("skipped", ())


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"
