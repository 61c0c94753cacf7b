from msgspec.structs import replace

from accel_checks.env001_version_skew import CHECK
from accel_doctor.evidence import Evidence
from accel_doctor.testing import findings, healthy_rank, healthy_run, outcome, sick_rank


def versions(**changed: str) -> Evidence:
    return sick_rank(1, versions=healthy_rank(1).versions | changed)


def test_another_torch_is_an_error_that_names_both() -> None:
    (finding,) = findings(CHECK, versions(torch="2.12.0"))
    assert finding.message == "torch differs between ranks: 2.13.0+cpu on rank 0, 2.12.0 on rank 1"
    assert finding.severity.value == "error"
    assert finding.evidence == ("rank 0 runs /venv/bin/python", "rank 1 runs /venv/bin/python")


def test_the_odd_rank_of_many_is_named() -> None:
    ranks = [healthy_rank(n, 4) for n in range(4)]
    ranks[2] = replace(ranks[2], versions=ranks[2].versions | {"accelerate": "1.14.0"})
    (finding,) = findings(CHECK, healthy_run(ranks=tuple(ranks)))
    assert finding.ranks == (2,)
    assert finding.message == "accelerate differs between ranks: 1.15.0 on ranks 0, 1 and 3, 1.14.0 on rank 2"


def test_a_patch_release_of_python_is_a_warning_and_another_python_an_error() -> None:
    assert findings(CHECK, versions(python="3.11.9"))[0].severity.value == "warning"
    assert findings(CHECK, versions(python="3.12.1"))[0].severity.value == "error"


def test_a_version_that_one_rank_does_not_tell_is_not_compared() -> None:
    assert findings(CHECK, versions(cuda="12.8")) == ()


def test_one_rank_differs_from_nobody() -> None:
    assert outcome(CHECK, healthy_run(ranks=(healthy_rank(0, 1),))).outcome.value == "skipped"


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"
