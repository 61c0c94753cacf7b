import pytest
from msgspec.structs import replace

from accel_checks.grd009_diverged_buffers import CHECK
from accel_doctor.check import Severity
from accel_doctor.evidence import Evidence
from accel_doctor.evidence.run import Replica
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import healthy_trace, healthy_user_run, sick_user_run

NORM = replace(
    healthy_trace().wrapped[0],
    broadcast_buffers=False,
    buffers={"1.running_mean": 7, "1.num_batches_tracked": 16},
    buffer_count=2,
    buffers_step=16,
)
OTHER = replace(NORM, buffers={"1.running_mean": 8, "1.num_batches_tracked": 16})


def run(second: object, first: object = NORM) -> Evidence:
    sums = tuple(
        tuple(Replica(step=s, parameters=s, buffers=s if s < 4 else s + r) for s in (2, 4, 16)) for r in (0, 1)
    )
    return sick_user_run({"wrapped": (first,), "replicas": sums[0]}, wrapped=(second,), replicas=sums[1])


def test_statistics_that_nothing_makes_equal() -> None:
    (found,) = findings(CHECK, run(OTHER))
    assert found.severity is Severity.WARNING
    assert found.values == {"step": 4, "different_buffers": 1, "buffers": 2}
    assert "BatchNorm statistics of Net (1.running_mean) differ between ranks after step 4" in found.message


def test_plain_batch_norm_under_ddp_is_a_note() -> None:
    both = (replace(OTHER, broadcast_buffers=True), replace(NORM, broadcast_buffers=True))
    (found,) = findings(CHECK, run(*both))
    assert found.severity is Severity.NOTE
    assert outcome(CHECK, run(*both)).outcome.value == "passed"


def test_another_buffer_under_fsdp() -> None:
    (found,) = findings(CHECK, run(*(replace(NORM, broadcast_buffers=None, buffers={"bank": b}) for b in (1, 2))))
    assert found.message.startswith("buffers of Net (bank) differ")


SILENT = {
    "equal": run(NORM),
    "seen after another step": run(replace(OTHER, buffers_step=8)),
    "another model on each rank": run(replace(OTHER, buffers={"stage": 1})),
}


@pytest.mark.parametrize("name", SILENT)
def test_what_is_equal_or_cannot_be_compared_is_silent(name: str) -> None:
    assert findings(CHECK, SILENT[name]) == ()


def test_a_model_without_buffers_is_not_examined() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "skipped"
