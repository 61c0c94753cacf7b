from accel_checks.grd004_diverged_replicas import CHECK
from accel_doctor.testing import findings, outcome
from log_evidence import evidence_of
from log_texts import QUIET, SICK


def test_models_that_differ_between_ranks() -> None:
    (finding,) = findings(CHECK, evidence_of(SICK["parameters differ in number"].text))
    assert finding.ranks == ()
    assert "rank 0 has 12 parameters, rank 1 has 10" in finding.message
    assert finding.location is not None
    assert finding.fix


def test_it_is_silent_where_another_fault_or_none_is_told() -> None:
    assert findings(CHECK, evidence_of(SICK["no interface"].text)) == ()
    result = outcome(CHECK, evidence_of(QUIET["a healthy run with alarming words"]))
    assert (result.outcome.value, result.findings) == ("skipped", ())
