"""The FSDP units of a model as a tree: alike ones on one line, with what a rank gathers for each."""

import re
from collections import defaultdict

from accel_doctor.evidence import Unit, WrapPlan
from accel_doctor.reports.layout import DIM, Page, amount, listed, sized

MAX_ROWS = 12


def plan_lines(page: Page, plan: WrapPlan, *, verbose: bool) -> None:
    """Add the plan: what made it, then its units."""
    policy = f"FSDP{plan.fsdp_version}, {plan.policy}, {plan.strategy}, {plan.ranks} ranks"
    if plan.error:
        page.line("plan    ", f"{plan.model_class} ({plan.model}), {policy}: {plan.error}", DIM)
        return
    made = f"{plan.unit_count} units of {amount(plan.total_parameters)} parameters; at most "
    page.line(
        "plan    ",
        f"{plan.model_class} ({plan.model}), {policy}: {made}{sized(plan.peak_gathered_bytes)} gathered at once",
        DIM,
    )
    groups = _alike(plan.units)
    for units in groups if verbose else groups[:MAX_ROWS]:
        page.line("        ", _row(units), hang=12)
    if not verbose and len(groups) > MAX_ROWS:
        page.line("        ", f"and {len(groups) - MAX_ROWS} kinds more (-v)")


def _alike(units: tuple[Unit, ...]) -> list[list[Unit]]:
    """Return units grouped: those of one class and size whose names differ in numbers only."""
    groups: dict[tuple[str, str, int], list[Unit]] = defaultdict(list)
    for unit in units:
        groups[re.sub(r"\d+", "#", unit.name), unit.class_name, unit.parameters].append(unit)
    return list(groups.values())


def _row(units: list[Unit]) -> str:
    one = units[0]
    depth = "  " * len(one.name.split(".")) if one.name else ""
    number = f"{len(units)} x " if len(units) > 1 else ""
    each = " each" if len(units) > 1 else ""
    size = f"{amount(one.parameters)} parameters, {sized(one.gathered_bytes)} gathered{each}"
    return f"{depth}{_name(units)}  {number}{one.class_name}  {size}"


def _name(units: list[Unit]) -> str:
    """Return ``model.layers.0-23`` for alike units that differ in one number, else the first one's name."""
    if len(units) == 1:
        return units[0].name or "(the model itself)"
    parts = [re.split(r"(\d+)", unit.name) for unit in units]
    varying = [i for i in range(len(parts[0])) if len({p[i] for p in parts}) > 1]
    if len(varying) != 1:
        return f"{units[0].name} …"
    parts[0][varying[0]] = listed(tuple(int(p[varying[0]]) for p in parts)).replace(", ", ",")
    return "".join(parts[0])
