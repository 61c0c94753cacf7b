"""GRD004: parameters differ between ranks after a step."""

from collections import defaultdict
from collections.abc import Iterator

from accel_checks._grd004_run import judge_run
from accel_checks._log import from_log
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, names, ranks_of
from accel_doctor.evidence import Checksum, Evidence, Rank, TrainingProbe

Replica = tuple[Rank, TrainingProbe]


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find the first step after which replicas are no longer equal."""
    replicas = _replicas(evidence)
    for step in range(min(len(probe.checksums) for _, probe in replicas)):
        groups: dict[str, list[Rank]] = defaultdict(list)
        for rank, probe in replicas:
            groups[probe.checksums[step].parameters].append(rank)
        if len(groups) > 1:
            yield _finding(list(groups.values()), [probe.checksums[step] for _, probe in replicas], replicas)
            return
    if len({probe.local_gradient for _, probe in replicas}) == 1:
        raise NotApplicable("every rank had the same gradient of its own, so equal replicas prove nothing")


def _replicas(evidence: Evidence) -> list[Replica]:
    seen = [(r, r.training) for r in evidence.world if r.training is not None]
    replicas = [(r, probe) for r, probe in seen if not probe.sharded and probe.checksums]
    if not replicas:
        raise NotApplicable(f"{seen[0][1].wrapper} holds shards, not replicas")
    if len(replicas) < 2:
        raise NotApplicable("one rank has no replica to be compared with")
    return replicas


def _finding(groups: list[list[Rank]], checksums: list[Checksum], replicas: list[Replica]) -> Finding:
    groups.sort(key=len, reverse=True)
    odd = [rank for group in groups[1:] for rank in group] if len(groups[0]) > 1 else [r for r, _ in replicas]
    step = checksums[0].step
    return Finding(
        message=f"parameters differ between ranks after optimizer step {step}: {len(groups)} versions among "
        f"{len(replicas)} replicas, {_versions(groups)}",
        seen=f"{len(groups)} versions of the parameters",
        wanted="the same bytes on every rank",
        ranks=ranks_of(odd),
        values={"step": step, "versions": len(groups), "replicas": len(replicas)},
        evidence=(_gradients(checksums), f"prepare returned {', '.join(sorted({p.wrapper for _, p in replicas}))}"),
    )


def _versions(groups: list[list[Rank]]) -> str:
    parts = [names(group) for group in groups[:3]]
    return " against ".join(parts) + (" …" if len(groups) > 3 else "")


def _gradients(checksums: list[Checksum]) -> str:
    versions = {c.gradients for c in checksums if c.gradients}
    if len(versions) > 1:
        return f"the gradients of that step differ too ({len(versions)} versions): they were not averaged"
    if versions:
        return "the gradients of that step are equal: the parameters differed before it, or the optimizers do"
    return "the gradients of that step were not seen"


CHECK = Check(
    id="GRD004",
    name="diverged-replicas",
    invariant=Invariant.EQUAL,
    title="Parameters differ between ranks after a step",
    why="Each rank trains its own model from there on; the checkpoint holds one of them, and the rest is lost work.",
    fix="call the model that accelerator.prepare() returned, never .module or the model it was made from, and "
    "accelerator.backward(loss)",
    judges=(
        Judge(needs=("ranks.training",), judge=judge),
        Judge(needs=("ranks.trace",), judge=judge_run),
        from_log("GRD004"),
    ),
    consequence_of=("LCH003", "NET001", "GRD002", "GRD003", "GRD005", "DAT008", "DAT016", "GRD006", "GRD011"),
)
