"""Rounds in which hosts meet: all pairs where they are few, a logarithm of partners where they are many."""

from itertools import combinations

import pytest

from accel_doctor.pairing import rounds


@pytest.mark.parametrize("count", range(2, 9))
def test_few_hosts_all_meet_once(count: int) -> None:
    pairs = [pair for each in rounds(count) for pair in each]
    assert sorted(pairs) == list(combinations(range(count), 2))


@pytest.mark.parametrize("count", [2, 3, 8, 9, 12, 512])
def test_nobody_has_two_partners_in_one_round(count: int) -> None:
    for each in rounds(count):
        seats = [seat for pair in each for seat in pair]
        assert len(seats) == len(set(seats))


@pytest.mark.parametrize(("count", "most"), [(9, 4), (12, 4), (512, 9)])
def test_many_hosts_have_a_logarithm_of_partners(count: int, most: int) -> None:
    found = rounds(count)
    partners = [sum(seat in pair for each in found for pair in each) for seat in range(count)]
    assert len(found) == most == max(partners)
    assert min(partners) >= 1
