"""CKP002: a shard is saved as if it were the whole."""

from collections.abc import Iterator

from accel_checks._ckp002_run import judge_run
from accel_checks._source import SOURCE, call_finding, short
from accel_doctor.check import Check, Finding, Invariant, Judge, Severity
from accel_doctor.evidence import Evidence

SHARDED = ("deepspeed", "fsdp")


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find states that one rank saves alone of an optimizer under FSDP or DeepSpeed, or of a model in fully_shard."""
    source = evidence.source
    sharded = {f.path: s for f in (source.files if source else ()) for s in SHARDED if s in f.frameworks}
    for call in source.reached("save") if source else ():
        strategy = sharded.get(call.path)
        if call.note == "sharded" and call.ranks != "all":
            yield call_finding(
                call,
                f"{short(call)} saves the state of a model that fully_shard has sharded, on {call.ranks} only: its "
                "tensors hold that rank's part",
                Severity.ERROR,
                "get_model_state_dict(model, options=StateDictOptions(full_state_dict=True)) on every rank, one saves",
            )
        elif strategy and call.note == "optimizer" and "rank" not in call.varies_by:
            name = {"deepspeed": "DeepSpeed ZeRO", "fsdp": "FSDP"}[strategy]
            yield call_finding(
                call,
                f"{short(call)} saves one rank's optimizer state: under {name}, which this script is for, that "
                f"is its shard",
                Severity.WARNING,
                "accelerator.save_state(directory) on every rank",
            )


CHECK = Check(
    id="CKP002",
    name="partial-checkpoint",
    invariant=Invariant.FITS,
    title="A shard is saved as if it were the whole",
    why="Under FSDP and ZeRO each rank holds a part: a file that one rank writes cannot be resumed from.",
    fix="accelerator.save_state(directory) or torch.distributed.checkpoint on every rank, or the gathered "
    "accelerator.get_state_dict(model), called by all and saved by one",
    judges=(Judge(needs=("ranks.trace",), judge=judge_run), Judge(needs=SOURCE, judge=judge)),
)
