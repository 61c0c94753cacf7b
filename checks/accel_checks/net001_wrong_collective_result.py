"""NET001: a collective returned wrong values."""

from collections import defaultdict
from collections.abc import Iterator

from accel_doctor.check import Check, Finding, Invariant, Judge, names, ranks_of
from accel_doctor.evidence import Evidence, Rank, WrongResult

Seen = list[tuple[Rank, WrongResult]]


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Report, for each collective, the ranks that got wrong values and the first of them."""
    by_op: dict[str, Seen] = defaultdict(list)
    for rank in evidence.world:
        for wrong in rank.sweep.wrong if rank.sweep else ():
            by_op[wrong.op].append((rank, wrong))
    for op, seen in by_op.items():
        yield _finding(op, seen, sum(r.sweep.checked for r in evidence.world if r.sweep))


def _finding(op: str, seen: Seen, checked: int) -> Finding:
    first_rank, first = min(seen, key=lambda pair: pair[1].size_bytes)
    ranks = list({rank.pid: rank for rank, _ in seen}.values())
    return Finding(
        message=f"{op} returned wrong values on {names(ranks)}: {_said(first.got)} instead of {first.wanted:g} on "
        f"{first_rank.name} with {first.size_bytes} bytes",
        seen=_said(first.got),
        wanted=f"{first.wanted:g}",
        ranks=ranks_of(ranks),
        values={"wrong_results": len(seen), "checked_results": checked, "size_bytes": first.size_bytes},
    )


def _said(value: float | str) -> str:
    return value if isinstance(value, str) else f"{value:g}"


CHECK = Check(
    id="NET001",
    name="wrong-collective-result",
    invariant=Invariant.EQUAL,
    title="A collective returned wrong values",
    why="Gradients are averaged by it: training goes on without an error, on numbers that are not the gradient.",
    fix="take that rank's device out of the launch and run again; then change the backend's version, or its transport "
    "(NCCL_P2P_DISABLE=1, NCCL_IB_DISABLE=1), until the values are right",
    judges=(Judge(needs=("ranks.sweep",), judge=judge),),
)
