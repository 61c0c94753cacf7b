"""What a script did about devices in a run: named them, hid them, and drove several from one process. Pure."""

import re
from collections.abc import Iterator
from itertools import groupby

from accel_doctor.check import Finding, NotApplicable, Severity, names, ranks_of
from accel_doctor.evidence import Evidence, Site
from accel_doctor.evidence.run import Placed, VisibleSet
from accel_doctor.traces import Traced, place, traced, where

NUMBERED = re.compile(r"cuda:(\d+)")
HIDES = ("", "-1")
"""Values of CUDA_VISIBLE_DEVICES that leave no device."""
FORKED = re.compile(
    r"Cannot re-initialize CUDA in forked subprocess|has been initialized before the `notebook_launcher"
)
TOO_EARLY = re.compile(r"`Accelerator` should only be initialized inside|Libraries known to initialize device")
NO_SUCH_DEVICE = re.compile(r"invalid device ordinal")


def on_each_host(evidence: Evidence) -> list[list[Traced]]:
    """Return the traced ranks of each host that has several.

    Raises:
        NotApplicable: no host has two.
    """
    ranks = sorted(traced(evidence), key=lambda t: t.rank.host)
    hosts = [list(each) for _, each in groupby(ranks, key=lambda t: t.rank.host)]
    if not any(len(each) > 1 for each in hosts):
        raise NotApplicable("one rank a host: none can be on another's device")
    return [each for each in hosts if len(each) > 1]


def set_late(evidence: Evidence) -> Iterator[Finding]:
    """LCH013: CUDA_VISIBLE_DEVICES set by the script, too late or with too few devices for the ranks of a host."""
    for ranks in on_each_host(evidence):
        for site in dict.fromkeys(v.site for t in ranks for v in t.trace.visible_sets):
            each = [(t, v) for t in ranks for v in t.trace.visible_sets if v.site == site]
            late = [t for t, v in each if v.initialised]
            values = {v.value for _, v in each}
            if late:
                yield _set(site, each, f"{names([t.rank for t in late])} had initialised CUDA before: it has no effect")
            elif len(each) >= len(ranks) and len(values) == 1 and 0 < _count(*values) < len(ranks):
                devices = f"{_count(*values)} device{'s' if _count(*values) > 1 else ''}"
                yield _set(site, each, f"the same on all {len(ranks)} ranks of the host: they share {devices}")


def _count(value: str) -> int:
    return 0 if value.strip() in HIDES else len(value.split(","))


def _set(site: Site | None, each: list[tuple[Traced, VisibleSet]], why: str) -> Finding:
    first = each[0][1]
    before = "unset" if first.before is None else f"{first.before!r}"
    return Finding(
        message=f"{where(site)} sets CUDA_VISIBLE_DEVICES to {first.value!r}, and {why}",
        severity=Severity.WARNING,
        seen=f"{before} before{', torch imported' if first.torch_imported else ''}"
        f"{', CUDA initialised' if first.initialised else ''}",
        wanted="the variable set outside, or accelerate launch --gpu_ids",
        ranks=ranks_of([t.rank for t, _ in each]),
        location=place(site),
        values={"ranks": len(each), "devices": _count(first.value)},
    )


def before_fork(evidence: Evidence) -> Iterator[Finding]:
    """LCH014: ranks that cannot use CUDA, or were never forked, because their parent had touched a device."""
    failed = [t for t in traced(evidence) if t.trace.failure is not None]
    refused = [t for t in failed if t.trace.failure and TOO_EARLY.search(t.trace.failure.message)]
    unfit = [t for t in failed if t.trace.failure and FORKED.search(t.trace.failure.message)]
    for first in refused[:1]:
        yield _refused(first)
    if unfit and not refused:
        yield _unfit(unfit)


def _refused(first: Traced) -> Finding:
    made = first.trace.accelerators[0].site if first.trace.accelerators else None
    failure = first.trace.failure
    said = failure.message.strip().splitlines() if failure is not None else [""]
    made_at = f"an Accelerator was made at {where(made)}" if made is not None else said[0][:120]
    return Finding(
        message=f"the launcher at {where(failure.site if failure else None)} started no rank: {made_at}, before it "
        "could fork",
        seen=said[0][:160],
        wanted="nothing that touches a device before the launcher; the Accelerator inside the launched function",
        location=place(made or (failure.site if failure else None)),
        evidence=tuple(line.strip() for line in said[1:4] if line.strip()),
    )


def _unfit(ranks: list[Traced]) -> Finding:
    forked = next((t.trace.forked for t in ranks if t.trace.forked is not None), None)
    failure = ranks[0].trace.failure
    failed_at = failure.site if failure is not None else None
    cuda = forked.cuda_site if forked is not None else None
    by = f" by the launcher at {where(forked.site)}" if forked is not None and forked.site is not None else ""
    initialised = f"{where(cuda)} initialises CUDA" if cuda is not None else "CUDA is initialised"
    return Finding(
        message=f"{initialised} in the parent; {names([t.rank for t in ranks])}, forked from it{by}, cannot use it",
        seen=f"RuntimeError at {where(failed_at)}: Cannot re-initialize CUDA in forked subprocess",
        wanted="no CUDA call before the launcher",
        ranks=ranks_of([t.rank for t in ranks]),
        host=ranks[0].rank.host,
        location=place(cuda or failed_at),
        values={"ranks": len(ranks)},
    )


def data_parallel(evidence: Evidence) -> Iterator[Finding]:
    """LCH016: a model in DataParallel over several devices, or over none that it would take if they were there."""
    ranks = traced(evidence)
    for site in dict.fromkeys(r.site for t in ranks for r in t.trace.replicated):
        here = [(t, r) for t in ranks for r in t.trace.replicated if r.site == site]
        first, devices = here[0][1], max(r.devices for _, r in here)
        if devices == 1:
            continue
        drives = f"one process drives {devices} devices" if devices else "one process would drive every GPU"
        drives = f"each of {len(here)} processes drives {devices or 'every'} devices" if len(here) > 1 else drives
        script = " ".join(here[0][0].trace.argv) or "train.py"
        yield Finding(
            message=f"{first.class_name} is in DataParallel: {drives}, instead of one process a device",
            severity=Severity.WARNING,
            seen=f"{len(here)} process{'es' if len(here) > 1 else ''}, {devices} devices",
            wanted="one process a device, and accelerator.prepare(model)",
            ranks=ranks_of([t.rank for t, _ in here]),
            location=place(site),
            values={"processes": len(here), "devices": devices},
            command=f"accelerate launch --multi_gpu --num_processes {devices} {script}" if devices else "",
        )


def hard_coded(evidence: Evidence) -> Iterator[Finding]:
    """RNK003: one call that put every rank of a host on the same device."""
    for ranks in on_each_host(evidence):
        if len({visible(t) for t in ranks}) > 1:
            continue
        calls = [[p for p in t.trace.placed if p.call != "load"] for t in ranks]
        for key in dict.fromkeys((p.site, p.call) for p in calls[0]):
            each = [{_target(p) for p in placed if (p.site, p.call) == key} for placed in calls]
            common = set.intersection(*each)
            if len(common) == 1 and all(len(targets) == 1 for targets in each) and "" not in common:
                yield _named(ranks, key[0], key[1], common.pop())


def visible(t: Traced) -> str | None:
    """Return CUDA_VISIBLE_DEVICES of a rank as its script left it."""
    sets = t.trace.visible_sets
    return sets[-1].value if sets else t.rank.environment.get("CUDA_VISIBLE_DEVICES")


def _target(placed: Placed) -> str:
    """Return the numbered device that a call put its module on; empty where none is known."""
    told = placed.got or placed.asked
    return told if NUMBERED.fullmatch(told) else ""


def _named(ranks: list[Traced], site: Site | None, call: str, device: str) -> Finding:
    last = [_last(t) for t in ranks]
    apart = all(last) and len(set(last)) == len(ranks)
    done = {"set_device": f"makes {device} current", "to": f"moves a module to {device}"}.get(call, "")
    done = done or f"moves a module to {device} by cuda()"
    after = "each goes on to a device of its own later, and leaves a context there" if apart else "they share it"
    return Finding(
        message=f"{where(site)} {done} on {names([t.rank for t in ranks])} alike: {after}",
        severity=Severity.WARNING if apart else Severity.ERROR,
        seen=f"{device} on {len(ranks)} ranks of one host",
        wanted="accelerator.device, or the local rank's",
        ranks=ranks_of([t.rank for t in ranks]),
        host=ranks[0].rank.host,
        location=place(site),
        values={"ranks": len(ranks)},
    )


def _last(t: Traced) -> str:
    """Return the device on which a rank's wrapped model is, else the one that accelerate gave it."""
    wrapped = [w.device for w in t.trace.wrapped if NUMBERED.fullmatch(w.device)]
    given = t.rank.group.device if t.rank.group is not None and t.trace.accelerators else ""
    return wrapped[-1] if wrapped else given if NUMBERED.fullmatch(given) and not t.trace.wrapped else ""


def global_rank(evidence: Evidence) -> Iterator[Finding]:
    """RNK007: ranks whose number is not that of their device asked for the device of their number."""
    apart = [t for t in traced(evidence) if t.rank.local_rank is not None and t.rank.rank != t.rank.local_rank]
    if not apart:
        raise NotApplicable("on one machine the global and the local rank are the same: two machines tell them apart")
    asked = [(t, _by_number(t)) for t in apart]
    odd = [(t, p) for t, p in asked if p is not None]
    if not any(t.trace.placed for t in apart):
        raise NotApplicable("no rank of the later machines named a device")
    if len(odd) > 1 or any(_has_no_such(t) for t, _ in odd):
        ranks = [t.rank for t, _ in odd]
        first, placed = odd[0]
        counts = [t.rank.group.torch_device_count for t, _ in odd if t.rank.group is not None]
        here = min((c for c in counts if c is not None), default=None)
        yield Finding(
            message=f"{where(placed.site)} asks for {placed.asked} on rank {first.rank.rank}, whose local rank is "
            f"{first.rank.local_rank}: the global rank picks the device",
            seen=f"{names(ranks)} asked for the device of their global number"
            + (f"; {first.rank.host} has {here}" if here else ""),
            wanted="the device of the local rank",
            ranks=ranks_of(ranks),
            host=first.rank.host,
            location=place(placed.site),
            values={"ranks": len(ranks), **({} if here is None else {"visible": here})},
        )


def _by_number(t: Traced) -> Placed | None:
    return next((p for p in t.trace.placed if p.asked == f"cuda:{t.rank.rank}"), None)


def _has_no_such(t: Traced) -> bool:
    """Return whether a rank's number is no device of its machine."""
    failure, group = t.trace.failure, t.rank.group
    count = group.torch_device_count if group is not None else None
    beyond = bool(count) and t.rank.rank is not None and t.rank.rank >= (count or 0)
    return beyond or bool(failure is not None and NO_SUCH_DEVICE.search(failure.message))
