"""Puts the parts of a job's machines together, and says of each part who has the verdict on the whole. Pure."""

from collections.abc import Sequence

import msgspec

from accel_doctor.evidence import Evidence, Machine, Rank

FOR_THE_WHOLE = "judged for all machines together by {}"
GROUP_RANK = "GROUP_RANK"
"""What torch's agent gives its ranks: the machine's number as the rendezvous gave it."""


def part(own: Evidence, machine: Machine, judge: str) -> Evidence:
    """Return one machine's part: what needs all ranks is left to ``judge``, the host that has the verdict."""
    return msgspec.structs.replace(own, machines=(_with(machine, own),), part_of=judge)


def whole(own: Evidence, machine: Machine, others: Sequence[tuple[Machine, Evidence | None]]) -> Evidence:
    """Return the evidence of all machines, the one that has the verdict first.

    ``others`` are those that came, each with its part, or with ``None`` where it left none.
    """
    parts = [evidence for _, evidence in others if evidence is not None]
    first = _with(machine, own)
    rest = [_with(_own_word(other, evidence), evidence) if evidence else other for other, evidence in others]
    return msgspec.structs.replace(
        own,
        machines=(first, *sorted(rest, key=lambda m: (m.rank is None, m.rank or 0, m.id))),
        hosts=_unique(own, parts),
        ranks=_all_ranks([own, *parts]),
        code=tuple({c.site: c for e in (own, *parts) for c in e.code or ()}.values()) or own.code,
        stall=next((e.stall for e in (own, *parts) if e.stall and e.stall.stalled), own.stall),
        absent=_absent([own, *parts]),
    )


def _own_word(machine: Machine, evidence: Evidence) -> Machine:
    """Return what a machine said last of itself, which lies in its part."""
    said = evidence.machines[0] if evidence.machines else machine
    return msgspec.structs.replace(said, ended=True, silent=False)


def _with(machine: Machine, evidence: Evidence) -> Machine:
    """Return a machine with what its doctor saw of it alone."""
    return msgspec.structs.replace(
        machine,
        rank=_given_rank(machine, evidence.ranks or ()),
        launch=evidence.launch,
        devices=evidence.devices,
        storage=evidence.storage,
        ending=evidence.ending,
        absent=evidence.absent,
        ended=True,
    )


def _given_rank(machine: Machine, ranks: Sequence[Rank]) -> int | None:
    """Return the rank that was claimed, or the one that the rendezvous gave."""
    given = next((r.environment[GROUP_RANK] for r in ranks if GROUP_RANK in r.environment), "")
    return int(given) if machine.rank is None and given.isdecimal() else machine.rank


def _all_ranks(parts: Sequence[Evidence]) -> tuple[Rank, ...] | None:
    seen = [e.ranks for e in parts if e.ranks is not None]
    return tuple(rank for ranks in seen for rank in ranks) if seen else None


def _unique(own: Evidence, parts: Sequence[Evidence]) -> tuple[object, ...] | None:
    """Return each host once: several doctors of one host read the same."""
    hosts = {host.name: host for evidence in reversed((own, *parts)) for host in evidence.hosts or ()}
    order = dict.fromkeys(host.name for evidence in (own, *parts) for host in evidence.hosts or ())
    return tuple(hosts[name] for name in order) or None


def _absent(parts: Sequence[Evidence]) -> dict[str, str]:
    """Return the first machine's reasons, without those for parts of ranks that another machine's ranks have."""
    absent = dict(parts[0].absent)
    return {
        subject: why
        for subject, why in absent.items()
        if not subject.startswith("ranks") or all(subject in e.absent for e in parts)
    }
