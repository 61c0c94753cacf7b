"""``accel-doctor list``: the catalogue."""

import sys
from collections.abc import Iterable

import click
import msgspec

from accel_doctor.catalogue import load_checks
from accel_doctor.check import Check
from accel_doctor.commands.options import resolve_ids
from accel_doctor.diagnose import belongs
from accel_doctor.evidence.exam import EXAM_SUBJECTS
from accel_doctor.reports import FORMATS
from accel_doctor.reports.catalogue import TITLES, evidence_of
from accel_doctor.reports.layout import BOLD, Page
from accel_doctor.streams import color_of, emit, width_of


@click.command()
@click.argument("ids", nargs=-1, metavar="[ID|PREFIX|NAME]...")
@click.option("--output-format", type=click.Choice(FORMATS), default="terminal", help="A table, or JSON.")
def command(ids: tuple[str, ...], output_format: str) -> int:
    """List the checks, or those that begin with an ID."""
    checks = load_checks()
    prefixes = resolve_ids(ids, {c.id: c for c in checks}, "")
    chosen = [c for c in checks if not prefixes or c.id.startswith(prefixes)]
    emit(as_json(chosen) if output_format == "json" else as_table(chosen), sys.stdout)
    return 0


def as_table(checks: Iterable[Check]) -> str:
    """Return a row a check, under the heading of its topic."""
    page = Page(width_of(sys.stdout), color=color_of(sys.stdout))
    topic = ""
    for check in checks:
        if check.id[:3] != topic:
            topic = check.id[:3]
            page.blank()
            page.line(f"{topic} {TITLES.get(topic, '')}", "", BOLD)
        head = f"  {check.id} {check.name:<32} {check.severity.value:<7} {check.invariant.value:<8} "
        page.line(head, check.title)
    return str(page)


def as_json(checks: Iterable[Check]) -> str:
    """Return a list of objects."""
    rows = [
        {
            "id": check.id,
            "name": check.name,
            "severity": check.severity.value,
            "invariant": check.invariant.value,
            "title": check.title,
            "exams": exams_of(check),
            "evidence": evidence_of(check),
        }
        for check in checks
    ]
    return msgspec.json.format(msgspec.json.encode(rows), indent=2).decode() + "\n"


def exams_of(check: Check) -> list[str]:
    """Return the exams that can feed one of a check's judges."""
    return [exam for exam in EXAM_SUBJECTS if belongs(check, exam)]
