import msgspec

from accel_checks.ckp006_checkpoint_does_not_restore import CHECK
from accel_doctor.evidence import Evidence, RoundTrip
from accel_doctor.testing import changed, findings, healthy_rank, healthy_run, outcome, sick_rank

LOST = RoundTrip(compared=("model", "optimizer"), lost=("optimizer",), save_s=0.1, load_s=0.1)


def with_trips(*trips: RoundTrip | None, **changes: object) -> Evidence:
    return healthy_run(
        ranks=tuple(changed(healthy_rank(r), "storage", round_trip=trip, **changes) for r, trip in enumerate(trips))
    )


def test_an_optimizer_that_does_not_come_back() -> None:
    (finding,) = findings(CHECK, with_trips(LOST, LOST))
    assert finding.message == (
        "the optimizer state came back different on ranks 0 and 1 of 2 after save_state and load_state"
    )
    assert outcome(CHECK, with_trips(LOST, LOST)).outcome.value == "failed"


def test_each_part_names_the_ranks_that_lost_it() -> None:
    both = msgspec.structs.replace(LOST, lost=("optimizer", "random"))
    found = findings(CHECK, with_trips(LOST, both))
    assert [f.ranks for f in found] == [(0, 1), (1,)]


def test_a_save_that_raised_on_one_rank() -> None:
    failed = RoundTrip(compared=(), error="OSError: [Errno 28] No space left on device", save_s=0.1)
    (finding,) = findings(CHECK, with_trips(failed, RoundTrip(compared=(), save_s=0.1)))
    assert finding.message == "save_state failed on rank 0: OSError: [Errno 28] No space left on device"
    assert finding.ranks == (0,)


def test_a_load_that_raised_is_told_from_a_save() -> None:
    failed = RoundTrip(compared=(), error="ValueError: no folder", save_s=0.1, load_s=0.1)
    (finding,) = findings(CHECK, with_trips(failed, failed))
    assert finding.message.startswith("load_state failed on ranks 0 and 1")


def test_a_state_that_was_not_saved_is_skipped_with_the_reason() -> None:
    evidence = with_trips(None, None, why_no_round_trip="FSDP saves shards, which are not compared")
    assert outcome(CHECK, evidence).reason == "FSDP saves shards, which are not compared"


def test_a_rank_that_was_not_seen_is_no_pass() -> None:
    assert outcome(CHECK, sick_rank(storage=None)).outcome.value == "skipped"


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"
