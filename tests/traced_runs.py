"""Scripts on two forked ranks under the tracer, and what the checks say of them."""

from pathlib import Path

from accel_doctor.evidence import Ending, Evidence, StallSeen
from accel_doctor.evidence.trace_file import read_traced_ranks
from accel_doctor.exams.site_code import read_code
from accel_doctor.testing_trace import healthy_user_run
from ranks import RunRanks


def watched(run_ranks: RunRanks, folder: Path, text: str) -> Evidence:
    """Run a script on two ranks in a new folder below ``folder``; return the evidence of the run."""
    work = folder / "work"
    work.mkdir()
    (work / "train.py").write_text(text)
    variables = {"SCRIPT": str(work / "train.py")}
    ran = run_ranks(work="traced_script:run", environment={0: variables, 1: variables}, limit_s=40)
    ranks = read_traced_ranks(ran.run_dir)
    assert all(r.trace for r in ranks), ran.output
    assert not [r.trace.broken for r in ranks if r.trace and r.trace.broken], ran.output
    return healthy_user_run(
        ranks=ranks,
        code=read_code(ranks, work),
        stall=StallSeen(stalled=False, limit_s=30.0),
        ending=Ending(exit_code=max(ran.codes)),
    )
