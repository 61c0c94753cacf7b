"""``accel-doctor lint``: read scripts, without running them."""

import difflib
import sys
from functools import partial
from pathlib import Path
from typing import Any

import click
import msgspec

from accel_doctor.check import Severity
from accel_doctor.commands.options import ExamCommand, ExamContext, exam_options, pass_exam, sources
from accel_doctor.commands.output import ReportPlan, plan_report
from accel_doctor.contracts import extended
from accel_doctor.diagnose import diagnose
from accel_doctor.errors import DoctorError, UsageError
from accel_doctor.evidence import Asked, CallSite, Evidence
from accel_doctor.exams.lint import examine
from accel_doctor.reports.lines import render
from accel_doctor.source.fixes import repair
from accel_doctor.streams import emit


@click.command(cls=ExamCommand)
@click.argument("paths", nargs=-1, metavar="PATH...")
@click.option("--fix", is_flag=True, help="Make the safe repairs in the files, then judge them.")
@click.option("--diff", is_flag=True, help="Print the safe repairs as a patch, and change nothing.")
@click.option("--explain-line", metavar="FILE:LINE", help="Say which ranks reach each call of a line, and why.")
@exam_options
@pass_exam
def command(ctx: ExamContext, /, paths: tuple[str, ...], explain_line: str | None, **given: Any) -> int:  # noqa: ANN401
    """Read scripts and say which ranks reach what they should not: files, notebooks, folders, or - for stdin.

    Nothing is imported or run. A comment `# accel-doctor: ignore[LOG001] reason` silences a check on its line.
    """
    if explain_line is not None:
        return _explain(explain_line)
    if not paths:
        raise UsageError("say what to read: accel-doctor lint train.py")
    plan = plan_report(ctx)
    stdin = sys.stdin.buffer.read() if "-" in paths else None
    asked = Asked(sources=sources(ctx))
    contracts = extended(ctx.settings.contracts)
    evidence = examine(paths, stdin, asked, contracts)
    if given["diff"]:
        emit("".join(_patch(name, old, new) for name, old, new in _repaired(evidence, plan)), sys.stdout)
        return 0
    if given["fix"]:
        for name, _, new in _repaired(evidence, plan):
            Path(name).write_bytes(new.encode())
        evidence = examine(paths, stdin, asked, contracts)
    if plan.targets or plan.format != "terminal":
        return plan.finish(evidence)
    diagnosis = plan.judge(evidence)
    emit(render(diagnosis, verbosity=plan.verbosity), sys.stdout)
    return diagnosis.exit_code


def _repaired(evidence: Evidence, plan: ReportPlan) -> list[tuple[str, str, str]]:
    found: list[tuple[str, str, str]] = []
    for file in evidence.source.files if evidence.source else ():
        text = _text(file.path) if file.path.endswith(".py") and not file.error else None
        if text is None:
            continue
        repaired = repair(text, partial(_said, file.path, plan))
        found += [(file.path, text, repaired)] if repaired != text else []
    return found


def _text(path: str) -> str | None:
    try:
        return Path(path).read_bytes().decode()
    except UnicodeDecodeError:
        return None


def _said(path: str, plan: ReportPlan, text: str) -> list[tuple[str, int, int]]:
    silent = (*plan.options.ignore, *plan.options.ignored_in(path))
    options = msgspec.structs.replace(plan.options, ignore=silent)
    diagnosis = diagnose(examine(["-"], text.encode(), Asked()), plan.checks, options)
    return [
        (result.id, finding.location.line or 0, finding.location.column or 0)
        for result in diagnosis.results
        for finding in result.findings
        if finding.location is not None and finding.severity is not Severity.NOTE
    ]


def _patch(name: str, old: str, new: str) -> str:
    lines = difflib.unified_diff(old.splitlines(keepends=True), new.splitlines(keepends=True), f"a/{name}", f"b/{name}")
    return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)


def _explain(where: str) -> int:
    path, _, number = where.rpartition(":")
    if not path or not number.isdigit():
        raise UsageError(f"--explain-line {where}: give a file and a line, train.py:41")
    evidence = examine([path], None, Asked())
    source = evidence.source
    if source is None or any(f.error for f in source.files):
        raise DoctorError(f"{path} cannot be read: {source.files[0].error if source else ''}")
    calls = [c for c in source.calls if c.line <= int(number) <= c.end_line]
    emit("".join(map(_told, calls)) or f"{where}: no call there that ranks must share out\n", sys.stdout)
    return 0


def _told(call: CallSite) -> str:
    reach = f"reached by ranks {call.ranks!r}, is for {call.contract!r}"
    head = f"{call.path}:{call.line}:{call.column} {call.operation}: {reach}\n"
    because = [
        f"  because `{g.text}` ({g.path}:{g.line}) lets {g.ranks!r} through" + (f", by {g.local}" if g.local else "")
        for g in call.guards
    ]
    known = {"parted by": call.local, "path varies by": ", ".join(call.varies_by), "noted": call.note}
    facts = [f"  {label} {value}" for label, value in known.items() if value]
    return head + "".join(f"{line}\n" for line in (*because, *facts))
