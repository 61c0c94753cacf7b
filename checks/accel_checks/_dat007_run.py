"""DAT007 on the schedules of a training that came to its end. Pure."""

from collections.abc import Iterator
from math import ceil

from accel_doctor.check import Finding, NotApplicable, Severity, ranks_of
from accel_doctor.evidence import Evidence, Trace
from accel_doctor.evidence.run import Loaded, Scheduled
from accel_doctor.traces import Traced, accelerator, place, several, training_loaders, where


def judge_run(evidence: Evidence) -> Iterator[Finding]:
    """Find schedules as long as all ranks' batches of an epoch times the epochs, that one rank's batches stepped."""
    ranks = several(evidence)
    trace = ranks[0].trace
    schedules = [s for s in trace.schedulers if s.length is not None and s.advanced]
    if not schedules:
        raise NotApplicable("no learning rate schedule that says its length was stepped")
    counted = [loader for loader in training_loaders(trace) if loader.length_before and loader.sharded_by]
    if counted and not _ended(trace):
        raise NotApplicable("the training did not come to its end, so how long a schedule it needs was not seen")
    for loader in counted:
        for schedule in schedules:
            if loader.epochs[-1].exhausted and _is_unsharded(schedule, loader, trace, len(ranks)):
                yield _finding(ranks, schedule, loader)


def _ended(trace: Trace) -> bool:
    return trace.position.phase == "end" and trace.failure is None and trace.stopped_at_step is None


def _is_unsharded(schedule: Scheduled, loader: Loaded, trace: Trace, ranks: int) -> bool:
    """Return whether its length is that of the loader before prepare, and the steps were those of one rank of it."""
    made = accelerator(trace)
    apart = made.gradient_accumulation_steps if made is not None else 1
    batches, epochs = loader.length_before or 0, loader.epoch_count
    lengths = {
        batches * epochs,
        ceil(batches * epochs / apart),
        ceil(batches / apart) * epochs,
        batches // apart * epochs,
    }
    return schedule.length in lengths and abs(ranks * schedule.advanced - schedule.length) <= ranks * epochs


def _finding(ranks: list[Traced], schedule: Scheduled, loader: Loaded) -> Finding:
    length, epochs, batches = schedule.length or 0, loader.epoch_count, loader.length_before or 0
    return Finding(
        message=f"{schedule.class_name} was built for {length} steps ({schedule.length_name}) and the training ended "
        f"after {schedule.advanced}: len() of the loader, read at {where(loader.length_site)} before prepare(), counts "
        f"the {batches} batches of all ranks",
        severity=Severity.WARNING,
        seen=f"{length} steps for {epochs} epochs of {batches} batches, split over {len(ranks)} ranks",
        wanted=f"a schedule of {schedule.advanced} steps: len() of the prepared loader",
        ranks=ranks_of([t.rank for t in ranks]),
        location=place(schedule.made_site or loader.length_site),
        values={"schedule_length": length, "schedule_steps": schedule.advanced, "batches_before_prepare": batches},
    )
