"""Loops in which ranks part: one runs out of data, leaves, or skips a backward. Pure."""

from accel_doctor.check import names
from accel_doctor.evidence import Evidence, Site
from accel_doctor.evidence.run import Loaded
from accel_doctor.hang.standing import Hang, Standing, numbers_of, told
from accel_doctor.traces import Traced, code_of, line_of, place, where


def uneven(evidence: Evidence, standing: list[Standing], ranks: list[Traced]) -> Hang | None:
    """Find a loop whose data ran out on one rank while another still has some."""
    del evidence, ranks
    for index in range(min(len(s.loaders) for s in standing)):
        each = [s.loaders[index] for s in standing]
        if len({loader.site for loader in each}) > 1 or not any(loader.backwards for loader in each):
            continue
        hang = _uneven_loop(standing, each)
        if hang is not None:
            return hang
    return None


def _uneven_loop(standing: list[Standing], each: list[Loaded]) -> Hang | None:
    epoch = min(loader.epoch_count for loader in each) - 1
    if epoch < 0 or any(len(loader.epochs) <= epoch for loader in each):
        return None
    seen = [loader.epochs[epoch] for loader in each]
    out = [e.batches for e in seen if e.exhausted]
    if not out or min(out) == max(e.batches for e in seen):
        return None
    short = [s for s, e in zip(standing, seen, strict=True) if e.exhausted and e.batches == min(out)]
    longer = [s for s in standing if s not in short]
    most = max(e.batches for e in seen)
    return Hang(
        "DAT003",
        f"the loop at {where(each[0].site)} ran out of data on {names([s.rank for s in short])} after {min(out)} "
        f"batches, while {names([s.rank for s in longer])} took batch {most} and waits for gradients that nobody sends",
        place(each[0].site),
        numbers_of(short),
        told(standing),
        {"batches_min": min(out), "batches_max": most},
    )


def left_loop(evidence: Evidence, standing: list[Standing], ranks: list[Traced]) -> Hang | None:
    """Find a loop that some ranks left before its end while others are still in it."""
    del ranks
    for index in range(max(len(s.loaders) for s in standing)):
        each = [s.loaders[index] if index < len(s.loaders) else None for s in standing]
        known = [loader for loader in each if loader is not None]
        code = code_of(evidence, known[0].site)
        if code is None or code.loop_end_line is None or not any(loader.backwards for loader in known):
            continue
        inside = [s for s in standing if _inside(s, code.site, code.loop_line, code.loop_end_line)]
        pairs = zip(standing, each, strict=True)
        left = [s for s, loader in pairs if s not in inside and _left(s, loader, code.site, code.loop_end_line)]
        if inside and left:
            way = next((e for e in code.exits if not e.skips), None)
            condition = f" by the condition at line {way.condition_line}: {way.condition}" if way else ""
            return Hang(
                "HNG002",
                f"{names([s.rank for s in left])} left the loop at {where(code.site)}{condition}, while "
                f"{names([s.rank for s in inside])} went on and waits for gradients that nobody sends",
                line_of(code.site, way.condition_line if way else None),
                numbers_of(left),
                told(standing),
            )
    return None


def _left(standing: Standing, loader: Loaded | None, loop: Site, loop_end: int) -> bool:
    """Return whether a rank outside of a loop had left it early; one killed before it told of it stands behind it."""
    if loader is not None:
        known = standing.ended or standing.site is not None
        return bool(known and loader.epochs and not loader.epochs[-1].exhausted)
    site = standing.site
    behind = site is not None and (site.path, site.function) == (loop.path, loop.function) and site.line > loop_end
    return behind and standing.collective


def skipped(evidence: Evidence, standing: list[Standing], ranks: list[Traced]) -> Hang | None:
    """Find a loop in which a rank left out backward calls that its peers made."""
    del ranks
    for index in range(min(len(s.loaders) for s in standing)):
        each = [s.loaders[index] for s in standing]
        missed = [loader.epochs[-1].batches - loader.epochs[-1].backwards if loader.epochs else 0 for loader in each]
        code = code_of(evidence, each[0].site)
        way = next((e for e in code.exits if e.skips), None) if code else None
        if way is None or not any(loader.backwards for loader in each) or max(missed) - min(missed) < 1:
            continue
        fewest = [s for s, n in zip(standing, missed, strict=True) if n == max(missed)]
        return Hang(
            "HNG002",
            f"{names([s.rank for s in fewest])} left out {max(missed)} backward calls in the loop at "
            f"{where(each[0].site)} by the condition at line {way.condition_line}: {way.condition}; the others left "
            f"out {min(missed)}, so their gradients do not meet",
            line_of(each[0].site, way.condition_line),
            numbers_of(fewest),
            told(standing),
            {"left_out_max": max(missed), "left_out_min": min(missed)},
        )
    return None


def _inside(standing: Standing, loop: Site, first: int | None, last: int | None) -> bool:
    if standing.ended or first is None or last is None:
        return False
    frames = standing.frames or (
        ((standing.site.path, standing.site.line, standing.site.function),) if standing.site else ()
    )
    return any(
        path == loop.path and first <= line <= last for path, line, function in frames if function == loop.function
    )
