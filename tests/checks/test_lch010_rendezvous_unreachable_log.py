from accel_checks.lch010_rendezvous_unreachable import CHECK
from accel_doctor.testing import findings, outcome
from log_evidence import evidence_of
from log_texts import QUIET, SICK


def test_a_rendezvous_that_cannot_be_reached() -> None:
    (finding,) = findings(CHECK, evidence_of(SICK["rendezvous"].text))
    assert finding.ranks == ()
    assert "rendezvous" in finding.message
    assert finding.location is not None
    assert finding.fix


def test_it_is_silent_where_another_fault_or_none_is_told() -> None:
    assert findings(CHECK, evidence_of(SICK["port"].text)) == ()
    result = outcome(CHECK, evidence_of(QUIET["a healthy run with alarming words"]))
    assert (result.outcome.value, result.findings) == ("skipped", ())
    assert result.reason == "nothing in it tells of a failure"
