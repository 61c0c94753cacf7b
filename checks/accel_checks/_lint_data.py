"""What observations on data, metrics and schedules mean, for the checks that a run can prove as well."""

from accel_checks._source import Says, flow_judge
from accel_doctor.check import Severity

DAT001 = flow_judge(
    Says(
        "loader.unsharded",
        "the training loop reads {name}, which is not prepared: every rank trains on the same samples",
        wanted="a loader that accelerator.prepare() or a DistributedSampler has split among the ranks",
    )
)
DAT002 = flow_judge(
    Says(
        "loader.sharded_twice",
        "{name} has {how} and is prepared as well: it is split twice, and most samples are never seen",
        wanted="one of the two: a plain loader that is prepared, or its own split and no prepare",
        fix="drop the sampler, and let accelerator.prepare() split the loader",
    )
)
DAT003 = flow_judge(
    Says(
        "loader.uneven",
        "even_batches=False without join_uneven_inputs: ranks may take unequal numbers of steps, and the "
        "longer ones hang",
        wanted="as many batches on every rank, or accelerator.join_uneven_inputs round the loop",
    )
)
DAT006 = flow_judge(
    Says(
        "scheduler.short",
        "{name} is prepared, so it advances num_processes times a step, but its length {total} is that of one rank's "
        "{unit}: the schedule ends at 1/num_processes of training",
        wanted="a length multiplied by accelerator.num_processes, or step_scheduler_with_optimizer=False",
        fix="multiply the scheduler's warm-up and total steps by accelerator.num_processes",
    )
)
DAT008 = flow_judge(
    Says(
        "loss.divided_twice",
        "the loss is divided by {name}, and accelerator.backward() divides by the same number again: gradients "
        "are too small",
        wanted="one division: accelerator.backward() already divides by gradient_accumulation_steps",
        fix="remove the division",
    ),
    Says(
        "accumulation.not_applied",
        "the Accelerator has gradient_accumulation_steps (line {made_line}), but the loop steps on every micro-batch "
        "without accelerator.accumulate()",
        wanted="`with accelerator.accumulate(model):` round the step",
    ),
    Says(
        "optimizer.unprepared_step",
        "{name} is not prepared, so inside accelerate's accumulate() it steps on every micro-batch",
        wanted="an optimizer that accelerator.prepare() has wrapped: it steps only where gradients are synchronised",
    ),
)
DAT009 = flow_judge(
    Says(
        "sampler.same_order",
        "the DistributedSampler of line {made_line} never gets set_epoch(): every epoch has the same order",
        Severity.WARNING,
        wanted="sampler.set_epoch(epoch) at the start of each epoch",
    ),
    Says(
        "seed.every_epoch",
        "{seed} in the loop seeds every epoch alike: the same order and the same draws each time",
        Severity.WARNING,
        wanted="one seed before the loop",
    ),
)
DAT010 = flow_judge(
    Says(
        "metric.padded",
        "{name} counts the samples that pad the last batch: the metric covers more samples than the data set has",
        wanted="accelerator.gather_for_metrics, which drops the padding",
        fix="replace gather by gather_for_metrics",
    ),
    Says(
        "metric.not_prepared",
        "gather_for_metrics() drops the padding of a prepared loader only, and {name} is not prepared: every "
        "rank's copy of "
        "each sample is counted",
        wanted="a prepared evaluation loader",
    ),
    Says(
        "metric.after_loop",
        "{name} comes once after the loop: the padding of the last batch is no longer at the end, and stays",
        Severity.WARNING,
        wanted="gather_for_metrics for each batch, inside the loop",
    ),
)
DAT011 = flow_judge(
    Says(
        "metric.local",
        "{name} shows what one rank counted on its own shard as if it were the whole",
        Severity.WARNING,
        wanted="counts that are gathered or reduced over the ranks first",
    )
)
DAT012 = flow_judge(
    Says(
        "resume.replays",
        "the run resumes in the middle of an epoch ({name}), but the loop of line {loop_line} reads the loader "
        "from its "
        "start: the batches before are trained on again",
        Severity.WARNING,
        wanted="accelerator.skip_first_batches(loader, n), or a stateful loader",
    )
)
DAT013 = flow_judge(
    Says(
        "seed.every_step",
        "{seed} in the training loop gives every step and every rank the same random draws",
        Severity.WARNING,
        wanted="one seed before the loop, device_specific=True where draws should differ by rank",
    )
)
DAT014 = flow_judge(
    Says(
        "sampler.seed_by_rank",
        "the sampler's seed differs by rank: each rank takes its share of another order, so that samples come twice "
        "and others never",
        wanted="one seed for all ranks",
    ),
    Says(
        "split.by_rank",
        "{name} draws after a seed that differs by rank (line {seed_line}): every rank has another split, so "
        "that the parts "
        "overlap between ranks",
        wanted="a generator with one seed for all ranks",
    ),
    Says(
        "split.unseeded",
        "{name} is not seeded: every rank has another split or order",
        wanted="one seed for all ranks",
    ),
)
DAT016 = flow_judge(
    Says(
        "seed.some_ranks",
        "{name} runs under `{guard}`: only some ranks are seeded, and the ranks part in what they draw",
        wanted="the same seed on every rank",
    )
)
