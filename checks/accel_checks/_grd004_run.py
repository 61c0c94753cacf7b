"""GRD004 on the user's own model. Pure."""

from collections.abc import Iterator

from accel_doctor.check import Finding, NotApplicable, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.traces import first_difference, place, several


def judge_run(evidence: Evidence) -> Iterator[Finding]:
    """Compare checksums of the trained parameters over the ranks after steps 1, 2, 4, 8 …."""
    ranks = several(evidence)
    if all(r.sharded for t in ranks for r in t.trace.replicas):
        raise NotApplicable("no replicas: the parameters are shards, or nothing was stepped")
    if any(t.trace.local_sgd for t in ranks):
        raise NotApplicable("LocalSGD lets the replicas part between its averagings")
    step = first_difference(ranks)
    optimizer = ranks[0].trace.optimizers[0] if ranks[0].trace.optimizers else None
    if step is None or optimizer is None or optimizer.wrapper is None:
        return
    yield Finding(
        message=f"the ranks' parameters differ after step {step} of {optimizer.class_name}",
        seen=f"checksums that differ from step {step} on",
        wanted="equal parameters on every rank after every step",
        ranks=ranks_of([t.rank for t in ranks]),
        location=place(optimizer.site),
        values={"step": step},
    )
