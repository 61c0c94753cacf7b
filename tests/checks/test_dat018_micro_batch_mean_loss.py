import pytest
from msgspec.structs import replace

from accel_checks.dat018_micro_batch_mean_loss import CHECK
from accel_doctor.check import Severity
from accel_doctor.evidence import Evidence
from accel_doctor.evidence.run.training import TokenLoss
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import healthy_trace, healthy_user_run, sick_user_run


def losses(*tokens: int, factors: tuple[float, ...] = (), targets: int = 512) -> tuple[TokenLoss, ...]:
    """Return two steps of such micro-batches of 8 rows."""
    n = len(tokens)
    each = TokenLoss(step=1, tokens=tokens, targets=n * (targets,), rows=n * (8,), factors=factors or n * (0.5,))
    return (each, replace(each, step=2))


def run(first: tuple[TokenLoss, ...], second: tuple[TokenLoss, ...]) -> Evidence:
    made = healthy_trace().backwards[0]
    both = [(replace(made, token_losses=each),) for each in (first, second)]
    return sick_user_run({"backwards": both[0]}, backwards=both[1])


def test_micro_batches_of_unequal_length() -> None:
    (found,) = findings(CHECK, run(losses(100, 400), losses(200, 300)))
    assert found.severity is Severity.WARNING
    assert found.values == {"weight_ratio": 4.0, "fewest_tokens": 100, "most_tokens": 400}
    assert (found.location and found.location.line) == 33


def test_without_accumulation_it_is_a_note() -> None:
    (found,) = findings(CHECK, run(losses(100), losses(400)))
    assert found.severity is Severity.NOTE


SILENT = {
    "packed": run(losses(512, 512), losses(512, 512)),
    "nearly equal": run(losses(500, 450), losses(480, 512)),
    "weighted by their tokens": run(losses(100, 400, factors=(1, 4)), losses(200, 300, factors=(2, 3))),
}


@pytest.mark.parametrize("name", SILENT)
def test_tokens_that_weigh_alike_are_silent(name: str) -> None:
    assert outcome(CHECK, SILENT[name]).outcome.value == "passed"


SKIPPED = {
    "one target a row": run(losses(8, 3, targets=8), losses(8, 8, targets=8)),
    "a micro-batch whose loss is another": run(losses(100), losses(100, 400)),
    "no such loss": healthy_user_run(),
}


@pytest.mark.parametrize("name", SKIPPED)
def test_what_is_no_token_loss_is_not_examined(name: str) -> None:
    assert outcome(CHECK, SKIPPED[name]).outcome.value == "skipped"
