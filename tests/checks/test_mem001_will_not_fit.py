from accel_checks.mem001_will_not_fit import CHECK
from accel_doctor.testing import findings, outcome
from log_evidence import evidence_of
from log_texts import QUIET, SICK


def test_a_rank_that_ran_out_of_device_memory_is_named_and_no_survivor() -> None:
    (finding,) = findings(CHECK, evidence_of(SICK["an echo stands first in the log"].text))
    assert finding.ranks == (1,)
    assert "out of device memory" in finding.message
    assert finding.location is not None
    assert finding.fix


def test_it_is_silent_where_another_fault_or_none_is_told() -> None:
    assert findings(CHECK, evidence_of(SICK["killed by the kernel"].text)) == ()
    result = outcome(CHECK, evidence_of(QUIET["a healthy run with alarming words"]))
    assert (result.outcome.value, result.findings) == ("skipped", ())
    assert result.reason == "nothing in it tells of a failure"
