"""What observations on models, losses and optimizers mean, for the checks that a run can prove as well."""

from collections.abc import Iterator

from accel_checks._source import SOURCE, Says, flow_finding, flow_judge
from accel_doctor.check import Finding, Judge, Severity
from accel_doctor.evidence import Evidence


def _plain_backward(evidence: Evidence) -> Iterator[Finding]:
    """Say by its consequence that a loss goes round the Accelerator."""
    for flow in evidence.source.of("backward.plain") if evidence.source else ():
        reasons = str(flow.values.get("reasons", ""))
        said = Says(
            "backward.plain",
            "{name} goes round accelerator.backward(): DDP still averages the gradients, but "
            + (
                f"this script uses {reasons}, which is then not applied"
                if reasons
                else "loss scaling and accumulation are not applied"
            ),
            Severity.ERROR if reasons else Severity.WARNING,
            wanted="accelerator.backward(loss)",
        )
        yield flow_finding(flow, said)


GRD001 = Judge(needs=SOURCE, judge=_plain_backward)
GRD002 = flow_judge(
    Says(
        "model.unprepared",
        "{name} (line {made_line}) is trained but not among the prepared objects: its gradients are never "
        "averaged, and "
        "the ranks drift apart",
        wanted="the model in accelerator.prepare()",
    ),
    Says(
        "prepare.dropped",
        "the result of {name} is dropped: the script goes on with the unwrapped objects",
        wanted="`model, optimizer, loader = accelerator.prepare(model, optimizer, loader)`",
    ),
    Says(
        "prepare.swapped",
        "prepare() returns its arguments in their order, but here {name} gets {got}",
        wanted="the same order on both sides",
    ),
)
GRD003 = flow_judge(
    Says(
        "forward.unwrapped",
        "the training forward goes through the unwrapped {name}: the wrapper never sees it, and gradients are "
        "not averaged",
        wanted="a forward through the prepared model itself",
    )
)
GRD005 = flow_judge(
    Says(
        "parameters.unfrozen_late",
        "parameters of {name} are unfrozen after it was wrapped: the wrapper does not know them, and their "
        "gradients are "
        "never averaged",
        wanted="unfreeze first, then prepare() again (after accelerator.free_memory())",
    ),
    Says(
        "parameters.added_late",
        "{call} changes the parameters of {name} after it was prepared: neither wrapper nor optimizer knows "
        "the new ones",
        wanted="every change of the model before prepare()",
    ),
    Says(
        "optimizer.stale",
        "{name} holds the parameters of an earlier {model}: the one of line {model_line} is prepared, and "
        "never stepped",
        wanted="an optimizer made from the model that is trained",
    ),
)
GRD008 = flow_judge(
    Says(
        "accumulation.one_model",
        "accumulate({told}) leaves out {name}, which is trained with it: its gradients are averaged after every "
        "micro-batch",
        Severity.WARNING,
        wanted="accelerator.accumulate with every model that is stepped",
    ),
    Says(
        "accumulation.syncs_always",
        "gradients are accumulated by hand (`{guard}`, line {guard_line}), but averaged over the ranks after "
        "every micro-batch",
        Severity.WARNING,
        wanted="accelerator.accumulate(model), or no_sync() in all micro-batches but the last",
    ),
)
GRD010 = flow_judge(
    Says(
        "precision.unused",
        "{name} is asked for at line {asked_line} and never given to the Accelerator: training runs in full "
        "precision unless "
        "the launch says else",
        Severity.WARNING,
        wanted="Accelerator(mixed_precision=…)",
    )
)
GRD011 = flow_judge(
    Says(
        "step.in_hook",
        "{name} runs inside {hook}, before the gradients of the ranks are averaged: each rank steps on its own",
        wanted="steps after backward(), or DDP's communication hook",
    )
)
GRD013 = flow_judge(
    Says(
        "clip.torch",
        "{name} goes round the Accelerator: under {why} it does not clip what is stepped on",
        wanted="accelerator.clip_grad_norm_(model.parameters(), max_norm)",
    ),
    Says(
        "clip.of_shards",
        "{name} takes the norm of each rank's own shard of {model}, not of the whole gradient: ranks clip differently",
        wanted="the sharded model's own clip_grad_norm_(max_norm)",
    ),
    Says(
        "clip.every_micro_batch",
        "{name} inside accumulate() clips after every micro-batch, and not the accumulated gradient",
        Severity.WARNING,
        wanted="the clipping under `if accelerator.sync_gradients:`",
    ),
)
