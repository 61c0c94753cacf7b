"""LCH009 judged on literal launches."""

from accel_checks.lch009_port_in_use import CHECK
from accel_doctor.check import Location, Severity
from accel_doctor.diagnose import Outcome
from accel_doctor.evidence import Rendezvous
from accel_doctor.testing import findings, healthy_run, outcome
from launch_records import run, setting

TAKEN = Rendezvous(port=29500, source="c.yaml:5", taken=True, holder_pid=4312, holder="python train.py")


def test_on_one_machine_accelerate_moves_on_so_it_is_a_warning() -> None:
    (found,) = findings(CHECK, run(rendezvous=TAKEN))
    assert found.severity is Severity.WARNING
    assert "port 29500, where the ranks meet, is taken by pid 4312 (python train.py)" in found.message
    assert found.values == {"port": 29500, "holder_pid": 4312}
    assert found.location == Location(path="c.yaml", line=5)


def test_over_several_machines_it_is_an_error() -> None:
    (found,) = findings(CHECK, run(rendezvous=TAKEN, settings={"num_machines": setting(2, "c.yaml:1")}))
    assert found.severity is Severity.ERROR


def test_torchrun_does_not_move_on() -> None:
    (found,) = findings(CHECK, run(rendezvous=TAKEN, launcher="torchrun"))
    assert found.severity is Severity.ERROR
    assert found.message.endswith("the launch stops")


def test_a_holder_that_the_system_hides_is_a_process() -> None:
    (found,) = findings(CHECK, run(rendezvous=Rendezvous(port=1234, source="default", taken=True)))
    assert "taken by a process;" in found.message
    assert found.values == {"port": 1234}


def test_a_free_port_passes() -> None:
    free = Rendezvous(port=29500, source="default", taken=False)
    assert outcome(CHECK, run(rendezvous=free)).outcome is Outcome.PASSED


def test_without_a_fixed_port_there_is_no_question() -> None:
    assert outcome(CHECK, healthy_run()).outcome is Outcome.SKIPPED
