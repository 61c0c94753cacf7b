from accel_checks.net005_wrong_interface import CHECK
from accel_doctor.testing import findings, outcome
from log_evidence import evidence_of
from log_texts import QUIET, SICK


def test_nccl_without_an_interface() -> None:
    (finding,) = findings(CHECK, evidence_of(SICK["no interface"].text))
    assert finding.ranks == (0,)
    assert "no network interface" in finding.message
    assert finding.location is not None
    assert finding.fix


def test_it_is_silent_where_another_fault_or_none_is_told() -> None:
    assert findings(CHECK, evidence_of(SICK["duplicate GPU"].text)) == ()
    result = outcome(CHECK, evidence_of(QUIET["a healthy run with alarming words"]))
    assert (result.outcome.value, result.findings) == ("skipped", ())
    assert result.reason == "nothing in it tells of a failure"
