import os
import signal

import pytest

from accel_doctor.interrupts import Interrupts


def test_the_first_signal_raises_and_the_next_are_counted() -> None:
    with Interrupts() as interrupts:
        with pytest.raises(KeyboardInterrupt):
            os.kill(os.getpid(), signal.SIGINT)
        assert not interrupts.hurry()
        os.kill(os.getpid(), signal.SIGTERM)
        assert interrupts.hurry()


def test_a_signal_behind_the_shield_raises_when_it_is_lifted() -> None:
    with Interrupts() as interrupts:
        interrupts.shield()
        os.kill(os.getpid(), signal.SIGINT)
        assert interrupts.asked()
        with pytest.raises(KeyboardInterrupt):
            interrupts.expose()


def test_the_signals_are_given_back() -> None:
    before = signal.getsignal(signal.SIGINT)
    with Interrupts():
        pass
    assert signal.getsignal(signal.SIGINT) == before
