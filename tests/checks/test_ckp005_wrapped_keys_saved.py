from accel_checks.ckp005_wrapped_keys_saved import CHECK
from accel_doctor.evidence.run import Written
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_user_run, sick_user_run


def test_keys_of_the_wrapper() -> None:
    saved = Written(path="out/net.pt", site=at(45), how="torch.save", keys_prefix="module.")
    (finding,) = findings(CHECK, sick_user_run({"written": (saved,)}))
    assert finding.location is not None
    assert finding.location.line == 45


def test_a_run_that_saves_no_state_is_not_examined() -> None:
    assert outcome(CHECK, sick_user_run({"written": ()})).reason == "no state was saved"


def test_healthy() -> None:
    assert outcome(CHECK, healthy_user_run()).outcome.value == "passed"
