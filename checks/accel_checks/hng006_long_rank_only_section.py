"""HNG006: one rank works through data alone while the others wait."""

from accel_checks._hng006_run import WARN_PCT, judge
from accel_checks._source import Says, flow_judge
from accel_doctor.check import Check, Invariant, Judge, Severity

SEEN = flow_judge(
    Says(
        "section.main_only",
        "the main process runs this loop over data alone; the others wait for it at line {waits_line}, until "
        "the timeout",
        Severity.WARNING,
        wanted="the loop on every rank, over a prepared loader",
    ),
)

CHECK = Check(
    id="HNG006",
    name="long-rank-only-section",
    invariant=Invariant.BALANCED,
    title="One rank works through data alone while the others wait",
    why="The others wait in their next collective, and its timeout may end the job; their devices idle until then.",
    fix="let every rank do its share of the loop, and gather the results",
    judges=(SEEN, Judge(needs=("ranks.trace",), judge=judge)),
    consequence_of=("NET007", "HNG008"),
    thresholds=(WARN_PCT,),
)
