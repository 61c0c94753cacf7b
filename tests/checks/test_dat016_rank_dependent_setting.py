from msgspec.structs import replace

from accel_checks.dat016_rank_dependent_setting import CHECK
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import STEPS, healthy_loader, healthy_trace, healthy_user_run, sick_user_run


def test_another_accumulation_on_one_rank() -> None:
    made = replace(healthy_trace().accelerators[0], gradient_accumulation_steps=4)
    (finding,) = findings(CHECK, sick_user_run(accelerators=(made,)))
    assert finding.message == "gradient_accumulation_steps is not the same on every rank: 1 on rank 0, 4 on rank 1"


def test_another_learning_rate_on_one_rank() -> None:
    optimizer = replace(healthy_trace().optimizers[0], learning_rates=(0.2,) * STEPS)
    (finding,) = findings(CHECK, sick_user_run(optimizers=(optimizer,)))
    assert finding.message.startswith("the learning rate at step 1 is not the same")


def test_another_batch_size_on_one_rank() -> None:
    (finding,) = findings(CHECK, sick_user_run(loaders=(healthy_loader(1, batch_size=4),)))
    assert "the batch size" in finding.message


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
