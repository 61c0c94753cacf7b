from msgspec.structs import replace

from accel_doctor.evidence import Phase
from accel_doctor.testing import healthy_rank
from accel_doctor.unseen import why_unseen


def test_what_was_seen_has_no_reason() -> None:
    assert why_unseen([healthy_rank(0), replace(healthy_rank(1), sweep=None)]) == {}


def test_a_rank_without_peers_sweeps_nothing() -> None:
    assert why_unseen([replace(healthy_rank(0, 1), sweep=None)]) == {
        "ranks.sweep": "one rank has nobody to exchange data with"
    }
    alone = [replace(healthy_rank(n, 1), sweep=None) for n in range(2)]
    assert why_unseen(alone) == {"ranks.sweep": "each rank is alone"}


def test_ranks_that_ended_before_a_probe_say_where() -> None:
    cut = [
        replace(healthy_rank(n), sweep=None, compute=None, phases=(Phase(name="sweep", at_s=1.0),)) for n in range(2)
    ]
    assert why_unseen(cut) == {
        "ranks.sweep": "rank 0 ended in its phase sweep",
        "ranks.compute": "rank 0 ended in its phase sweep",
    }


def test_no_ranks_have_no_reasons() -> None:
    assert why_unseen([]) == {}
