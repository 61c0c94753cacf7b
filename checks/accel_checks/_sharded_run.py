"""SHD003, SHD004 and SHD005 on the models that the ranks really wrapped. Pure."""

from collections.abc import Iterator

from accel_doctor.check import Finding, NotApplicable, Severity, ranks_of
from accel_doctor.evidence import Evidence
from accel_doctor.traces import accelerator, place, traced

SHARDED = ("FullyShardedDataParallel", "FSDPModule")
SHARDING = ("FSDP", "DEEPSPEED")
LARGE_BYTES = 1e9


def one_unit(evidence: Evidence) -> Iterator[Finding]:
    """Find FSDP models of which one unit holds most of the parameters."""
    ranks = traced(evidence)
    wrapped = [w for w in (ranks[0].trace.wrapped if ranks else ()) if w.wrapper in SHARDED and w.units]
    if not wrapped:
        raise NotApplicable("no model was wrapped by FSDP")
    for model in wrapped:
        largest, total = max(model.units), sum(model.units)
        if total and largest > total / 2:
            share = 100 * largest / total
            yield Finding(
                message=f"one of {len(model.units)} FSDP units of {model.class_name} holds {share:.0f} % of its "
                f"{total} parameters: every rank gathers {largest} at once",
                severity=Severity.ERROR if 4 * largest > LARGE_BYTES else Severity.WARNING,
                seen=f"{len(model.units)} units, the largest of {largest} parameters",
                wanted="a unit for each repeated layer",
                ranks=ranks_of([t.rank for t in ranks]),
                location=place(model.site),
                values={"units": len(model.units), "largest_parameters": largest, "share_pct": round(share, 1)},
            )


def not_in_effect(evidence: Evidence) -> Iterator[Finding]:
    """Find a launch or a script that asks for sharding and ranks that hold whole replicas."""
    launch, ranks = evidence.launch, traced(evidence)
    made = accelerator(ranks[0].trace) if len(ranks) > 1 else None
    asked = launch.strategy if launch is not None and launch.strategy in SHARDING else ""
    by = f"the launch asks for {asked}" if asked else ""
    if not asked and made is not None and made.asked_sharding:
        by = f"the script gives its Accelerator a plugin for {made.asked_sharding}"
    if not by:
        raise NotApplicable(
            f"the launch asks for {launch.strategy or 'no strategy' if launch else ''}, not for sharding"
        )
    for model in ranks[0].trace.wrapped if ranks else ():
        if model.wrapper == "DistributedDataParallel":
            yield Finding(
                message=f"{by} and {model.class_name} is in {model.wrapper}: every rank holds all {model.parameters} "
                "parameters",
                seen=f"{model.local_bytes or 0} bytes of parameters on each rank",
                wanted="a share of the parameters on each rank",
                ranks=ranks_of([t.rank for t in ranks]),
                location=place(model.site if asked or made is None else made.site),
                values={"parameters": model.parameters, "local_bytes": model.local_bytes or 0},
                evidence=(f"accelerate made it a {made.distributed_type} run",) if made is not None else (),
            )


def made_before(evidence: Evidence) -> Iterator[Finding]:
    """Find optimizers whose parameters are not those of the FSDP model that was trained."""
    ranks = traced(evidence)
    trace = ranks[0].trace if ranks else None
    owned = {o.wrapper for o in trace.optimizers} if trace is not None else set()
    idle = [w for i, w in enumerate(trace.wrapped) if w.wrapper in SHARDED and i not in owned] if trace else []
    if trace is None or not any(w.wrapper in SHARDED for w in trace.wrapped):
        raise NotApplicable("no model was wrapped by FSDP")
    for optimizer in trace.optimizers:
        empty = optimizer.without_gradients >= max(1, min(optimizer.steps, 64))
        trained = any(w.forwards or (w.wrapper == SHARDED[1] and empty) for w in idle)
        if trained and optimizer.steps and optimizer.foreign == optimizer.parameters:
            yield Finding(
                message=f"{optimizer.class_name} was made from the parameters before FSDP sharded them: its "
                f"{optimizer.steps} steps moved nothing of {idle[0].class_name}",
                seen=f"0 of {optimizer.parameters} parameters belong to the sharded model",
                wanted="the optimizer made from the parameters of the sharded model",
                ranks=ranks_of([t.rank for t in ranks]),
                location=place(optimizer.made_site or optimizer.site),
                values={"parameters": optimizer.parameters, "steps": optimizer.steps},
            )
