from statistics import median

import pytest

from accel_doctor.peers import medians_of_peers
from accel_doctor.testing import healthy_rank, healthy_run


@pytest.mark.parametrize("values", [(1.0, 2.0), (3.0, 1.0, 2.0), (5.0, 5.0, 1.0, 5.0), (4.0, 1.0, 3.0, 2.0, 2.0)])
def test_each_value_against_the_median_of_all_but_itself(values: tuple[float, ...]) -> None:
    others = [median([v for place, v in enumerate(values) if place != own]) for own in range(len(values))]
    assert medians_of_peers(values) == others


def test_the_ranks_of_a_host_come_in_the_order_of_the_world() -> None:
    evidence = healthy_run(ranks=tuple(healthy_rank(n, 3) for n in (2, 0, 1)))
    assert {host: [r.rank for r in ranks] for host, ranks in evidence.by_host.items()} == {"ws1": [0, 1, 2]}
