import pytest

from accel_doctor.contracts import OPERATIONS, Contract, Kind, canonical, extended, operation


@pytest.mark.parametrize(
    ("name", "contract"),
    [
        ("torch.distributed.all_reduce", Contract.ALL),
        ("torch.distributed.distributed_c10d.all_reduce", Contract.ALL),
        ("accelerate.accelerator.Accelerator.gather_for_metrics", Contract.ALL),
        ("accelerate.utils.operations.gather", Contract.ALL),
        ("accelerate.Accelerator.print", Contract.ANY),
        ("accelerate.utils.tqdm", Contract.ANY),
        ("tqdm.auto.tqdm", Contract.ONE),
        ("builtins.print", Contract.ONE),
        ("my.model.save_pretrained", Contract.ONE),
        ("torch.hub.load", Contract.ONE_FIRST),
    ],
)
def test_an_operation_is_known_by_any_of_its_names(name: str, contract: Contract) -> None:
    found = operation(name)
    assert found is not None
    assert found.contract is contract


def test_nothing_is_known_of_a_users_own_function() -> None:
    assert operation("engine.train_one_epoch") is None


def test_canonical_takes_the_longest_prefix() -> None:
    assert canonical("pytorch_lightning.Trainer") == "lightning.Trainer"
    assert canonical("tqdm.auto.trange") == "tqdm.trange"


def test_every_key_is_the_operations_own_name() -> None:
    assert all(name == operation.name for name, operation in OPERATIONS.items())


def test_save_state_binds_under_sharding_only() -> None:
    assert OPERATIONS["accelerate.Accelerator.save_state"].strategies == ("FSDP", "DEEPSPEED")


def test_settings_extend_the_table() -> None:
    assert extended({"mylib.save": "one"})["mylib.save"].kind is Kind.WRITE
    with pytest.raises(ValueError, match="'two' is not a valid Contract"):
        extended({"mylib.save": "two"})
