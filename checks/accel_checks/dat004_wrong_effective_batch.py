"""DAT004: the effective batch is not what was expected."""

from collections.abc import Iterator

from accel_checks._dat004_run import judge_run
from accel_doctor.batch import EffectiveBatch, effective_batch
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable
from accel_doctor.evidence import Asked, Evidence, Rank

OVERRIDE = "ACCELERATE_GRADIENT_ACCUMULATION_STEPS"


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Hold what the loaders gave in one optimizer step against what was asked for and against the arithmetic."""
    batch = effective_batch(evidence.world)
    if batch is None:
        raise NotApplicable("no rank took an optimizer step")
    wanted, source = _wanted(evidence.asked, batch)
    got = batch.computed if batch.measured is None else batch.measured
    if got != wanted:
        yield _finding(batch, wanted, source, _override(evidence.world))


def _wanted(asked: Asked, batch: EffectiveBatch) -> tuple[int, str]:
    """Return the effective batch that was asked for, or else the arithmetic's, and where it comes from."""
    if asked.expect_batch_size is not None:
        return asked.expect_batch_size, asked.sources.get("expect_batch_size", "--expect-batch-size")
    accumulation = asked.gradient_accumulation_steps or batch.accumulation
    rows = asked.batch_size or batch.rows
    return rows * batch.ranks * accumulation, f"{rows} x {batch.ranks} ranks x {accumulation} accumulation"


def _override(ranks: tuple[Rank, ...]) -> str:
    """Return the variable that takes the place of the script's own argument, as it stands in the ranks."""
    values = {r.environment[OVERRIDE] for r in ranks if OVERRIDE in r.environment}
    return f"{OVERRIDE}={' and '.join(sorted(values))} in the ranks wins over the argument" if values else ""


def _finding(batch: EffectiveBatch, wanted: int, source: str, override: str) -> Finding:
    got = batch.computed if batch.measured is None else batch.measured
    how = "computed, not all ranks were seen" if batch.measured is None else "measured"
    sum_ = f"{batch.arithmetic} = {batch.computed}"
    return Finding(
        message=f"the effective batch is {got} ({how}), and {wanted} was expected: {sum_}",
        seen=f"{got} rows a step; {sum_}",
        wanted=f"{wanted} rows a step ({source})",
        values={
            "effective_batch": got,
            "expected_batch": wanted,
            "rows_a_micro_batch": batch.rows,
            "data_parallel_ranks": batch.ranks,
            "accumulation_steps": batch.accumulation,
        },
        evidence=(override,) if override else (),
        fix=f"unset {OVERRIDE} or set it to what the script asks for" if override else "",
    )


CHECK = Check(
    id="DAT004",
    name="wrong-effective-batch",
    invariant=Invariant.EQUAL,
    title="Per-rank batch x data-parallel ranks x accumulation is not what was expected",
    why="Learning rate, warm-up and steps an epoch are chosen for one effective batch; another trains another model.",
    fix="change the batch size a rank, the number of processes or gradient_accumulation_steps until the product fits",
    judges=(Judge(needs=("ranks.data",), judge=judge), Judge(needs=("ranks.trace",), judge=judge_run)),
    consequence_of=("LCH003", "LCH002", "SHD006", "RNK001", "RNK005", "DAT003"),
)
