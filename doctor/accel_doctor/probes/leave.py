"""The last collective: nobody leaves while a peer may still need it."""

from accel_doctor.probes.seat import Seat


def probe(seat: Seat) -> None:
    """Wait for every rank."""
    with seat.record.collective("barrier"):
        seat.accelerator.wait_for_everyone()
