"""``accel-doctor explain``: what a check looks for, why it matters and what to do."""

import sys

import click

from accel_doctor.catalogue import load_checks
from accel_doctor.check import Check, Threshold
from accel_doctor.commands.list import as_table, exams_of
from accel_doctor.commands.options import resolve_ids
from accel_doctor.reports.catalogue import evidence_of
from accel_doctor.reports.layout import BOLD, DIM, Page
from accel_doctor.streams import color_of, emit, width_of


@click.command()
@click.argument("ids", nargs=-1, required=True, metavar="ID|NAME...")
def command(ids: tuple[str, ...]) -> int:
    """Explain checks by ID or NAME; a prefix lists those that begin with it."""
    checks = {c.id: c for c in load_checks()}
    for found in resolve_ids(ids, checks, ""):
        if found in checks:
            emit(explanation(checks[found]), sys.stdout)
        else:
            emit(as_table([c for c in checks.values() if c.id.startswith(found)]), sys.stdout)
    return 0


def explanation(check: Check) -> str:
    """Return everything a check says of itself."""
    page = Page(width_of(sys.stdout), color=color_of(sys.stdout))
    page.line(f"{check.id} {check.name}", "", BOLD)
    page.line("", check.title)
    page.blank()
    for label, text in (
        ("why", check.why),
        ("fix", check.fix),
        ("worst", check.severity.value),
        ("guards", f"{check.invariant.value}: {INVARIANTS[check.invariant.value]}"),
        ("exams", ", ".join(exams_of(check))),
        ("judges", ", ".join(evidence_of(check))),
        (
            "silent",
            ", ".join(check.consequence_of) and f"where one of these explains it: {', '.join(check.consequence_of)}",
        ),
    ):
        if text:
            page.line(f"  {label:7} ", text, DIM)
    for threshold in check.thresholds:
        page.line("  limit   ", _limit(threshold), DIM)
    return f"{page}\n"


def _limit(threshold: Threshold) -> str:
    return f"{threshold.key} = {threshold.default:g}: {threshold.why}"


INVARIANTS = {
    "present": "every rank is there, in the group, on a device of its own",
    "equal": "what must be the same on every rank is the same",
    "disjoint": "what must differ between ranks differs",
    "one": "what one rank must do, only one does",
    "balanced": "what should take as long on every rank takes as long",
    "fits": "it fits the memory, the wire, the disk, the limits",
}
