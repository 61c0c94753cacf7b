"""DAT010: a metric counts the padding of the last batch."""

from collections.abc import Iterator

from accel_checks._lint_data import DAT010
from accel_checks._shared_samples import shared_samples
from accel_doctor.check import Check, Finding, Invariant, Judge, Location, Severity, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.evidence.run import Loaded
from accel_doctor.traces import Traced, same_loaders, several


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find gathers in an evaluation that bring together more rows than the data set has."""
    ranks = several(evidence)
    for each in same_loaders(ranks):
        loader = each[0]
        if not loader.sharded_by and not loader.iterable:
            shared = shared_samples(each)
            if shared is not None and 2 * shared.shared > shared.fetched:
                yield from _multiplied(ranks, loader)
            continue
        epoch = next((e for e in loader.epochs if e.exhausted and e.gathered), None)
        rows, padded = loader.dataset_length, _padded(each)
        if epoch is None or rows is None or not padded or _cut(evidence, epoch.gathered):
            continue
        for place, gathered in epoch.gathered.items():
            if rows < gathered <= padded:
                yield _finding(ranks, place, gathered, rows)
                break


def _multiplied(ranks: list[Traced], loader: Loaded) -> Iterator[Finding]:
    """Find gathers of a loader that nobody shards: each rank brings the whole data set."""
    epoch = next((e for e in loader.epochs if e.exhausted and (e.gathered or e.gathered_for_metrics)), None)
    if epoch is None or not loader.dataset_length:
        return
    for place, gathered in {**epoch.gathered, **epoch.gathered_for_metrics}.items():
        if gathered >= len(ranks) * loader.dataset_length > 0:
            path, _, line = place.rpartition(":")
            yield Finding(
                message=f"the loader of the evaluation is not prepared: the gather at {place} brings its "
                f"{loader.dataset_length} rows {len(ranks)} times, and the metric counts each of them",
                severity=Severity.WARNING,
                seen=f"{gathered} rows in one pass",
                wanted=f"{loader.dataset_length} rows",
                ranks=ranks_of([t.rank for t in ranks]),
                location=Location(path=path, line=int(line)),
                values={"gathered_rows": gathered, "dataset_rows": loader.dataset_length},
            )
            return


def _padded(each: list[Loaded]) -> int:
    """Return the rows that all ranks together had in the first complete epoch."""
    first = [next((e.rows for e in loader.epochs if e.exhausted), 0) for loader in each]
    return sum(first) if all(first) else 0


def _cut(evidence: Evidence, places: dict[str, int]) -> bool:
    """Return whether what was gathered is cut to a length afterwards."""
    return any(
        code.sliced_line is not None for code in evidence.code or () if f"{code.site.path}:{code.site.line}" in places
    )


def _finding(ranks: list[Traced], place: str, gathered: int, rows: int) -> Finding:
    path, _, line = place.rpartition(":")
    return Finding(
        message=f"gather at {place} brings {gathered} rows of an evaluation set of {rows}: {gathered - rows} rows of "
        "padding are counted in the metric",
        severity=Severity.WARNING,
        seen=f"{gathered} rows in one pass",
        wanted=f"{rows} rows",
        ranks=ranks_of([t.rank for t in ranks]),
        location=Location(path=path, line=int(line)),
        values={"gathered_rows": gathered, "dataset_rows": rows},
    )


CHECK = Check(
    id="DAT010",
    name="padded-metrics",
    invariant=Invariant.EQUAL,
    title="A metric counts the padding of the last batch",
    why="Even batches are filled up with samples from the beginning, which are then counted twice.",
    fix="use accelerator.gather_for_metrics on each batch of a prepared loader",
    judges=(Judge(needs=("ranks.trace",), judge=judge), DAT010),
    severity=Severity.WARNING,
)
