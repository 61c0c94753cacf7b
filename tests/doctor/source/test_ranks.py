import pytest

from accel_doctor.source.names import is_world, predicate, rank_kind, role_of
from accel_doctor.source.ranks import (
    EVERY,
    LOCAL_MAIN,
    MAIN,
    UNKNOWN,
    Cond,
    both,
    choose,
    either,
    name_of,
    negate,
    only,
)


def test_boolean_algebra_over_ranks() -> None:
    main, local = only(MAIN), only(LOCAL_MAIN)
    assert both(main, local) == main
    assert either(main, local) == local
    assert negate(negate(main)) == main
    assert name_of(negate(main).true) == "not_main"
    assert both(main, UNKNOWN) == Cond(MAIN, EVERY)
    assert either(main, UNKNOWN) == Cond(EVERY, EVERY & ~MAIN)
    assert choose(main, UNKNOWN, negate(UNKNOWN)) == UNKNOWN


def test_what_depends_on_a_ranks_own_data_stays_so() -> None:
    own = Cond(EVERY, EVERY, "its data")
    assert both(only(MAIN), own).local == either(own, UNKNOWN).local == negate(own).local == "its data"
    assert not own.uniform
    assert UNKNOWN.uniform
    assert only(MAIN).ranked


@pytest.mark.parametrize("name", ["is_main_process", "is_master", "master_process", "rank_zero", "is_global_zero"])
def test_names_that_pick_the_main_process(name: str) -> None:
    assert predicate(name) == only(MAIN)


@pytest.mark.parametrize("name", ["main", "domain", "remaining", "is_training", "mainly"])
def test_names_that_pick_nothing(name: str) -> None:
    assert predicate(name) is None


def test_names_of_ranks_worlds_and_roles() -> None:
    assert [rank_kind(n) for n in ("rank", "local_rank", "process_index", "lora_rank", "ranking")] == [
        "global",
        "local",
        "global",
        "",
        "",
    ]
    assert is_world("world_size")
    assert not is_world("worldview")
    assert [role_of(n) for n in ("train_dl", "optim", "lr_scheduler", "net")] == [
        "loader",
        "optimizer",
        "scheduler",
        "model",
    ]
