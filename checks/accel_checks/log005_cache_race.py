"""LOG005: every rank downloads, makes a folder or calls a hub at once."""

from collections.abc import Iterator

from accel_checks._log import from_log
from accel_checks._log005_run import judge_run
from accel_checks._source import SOURCE, Says, alike, call_finding, flow_finding, short
from accel_doctor.check import Check, Finding, Invariant, Judge, Severity
from accel_doctor.evidence import CallSite, Evidence

LOCKED = ("load_dataset", "from_pretrained", "snapshot_download", "hf_hub_download", "load", "load_state_dict_from_url")
"""They lock their cache: one rank downloads, the others wait."""
DOWNLOAD = Says(
    "download.every_rank",
    "{name} downloads and unpacks on every rank at once, into one folder",
    Severity.WARNING,
    wanted="`with accelerator.main_process_first():` round it",
)


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Find what all ranks do at once to one folder or hub."""
    source = evidence.source
    for call in source.reached("download", "folder", "push") if source else ():
        if _races(call):
            yield call_finding(
                call,
                f"{short(call)} runs on every rank at once: {_effect(call)}",
                Severity.WARNING,
                "the main process first, then the others",
            )
    for flow in source.of("download.every_rank") if source else ():
        yield flow_finding(flow, DOWNLOAD)


def _races(call: CallSite) -> bool:
    name = call.operation.rpartition(".")[2]
    alone = call.ranks == "all" and alike(call) and not call.note and not call.varies_by
    return alone and name not in LOCKED


def _effect(call: CallSite) -> str:
    if call.kind == "folder":
        return "all but one fail where it exists already (no exist_ok=True)"
    return "the ranks race for one repository" if call.kind == "push" else "they write the same files"


CHECK = Check(
    id="LOG005",
    name="cache-race",
    invariant=Invariant.ONE,
    title="Every rank downloads, makes a folder or calls a hub at once",
    why="The ranks write one cache, folder or repository at the same time: some fail, or read what is half written.",
    fix="with accelerator.main_process_first(): …, or do it under accelerator.is_main_process and wait",
    judges=(Judge(needs=SOURCE, judge=judge), Judge(needs=("ranks.trace",), judge=judge_run), from_log("LOG005")),
    severity=Severity.WARNING,
)
