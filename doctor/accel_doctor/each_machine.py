"""Shows a judge of what belongs to one machine the machines of a job one after another. Pure."""

from collections.abc import Iterable, Iterator

import msgspec

from accel_doctor.check import Finding, Judge
from accel_doctor.evidence import Evidence

OWN = frozenset({"launch", "devices", "storage"})
"""Subjects that each machine has for itself; hosts and ranks carry their host's name."""


def each_machine(judge: Judge, evidence: Evidence) -> Iterator[Evidence]:
    """Yield the evidence of each machine of the job where the judge looks at what is one machine's, else the whole.

    A judge that compares what the ranks were seen to do (``ranks.data``) compares them over all machines.
    """
    machines = evidence.machines or ()
    roots = {need.partition(".")[0] for need in judge.needs}
    across = any(need.startswith("ranks.") for need in judge.needs) and "devices" not in roots
    if len(machines) < 2 or evidence.part_of or not roots & OWN or across or "machines" in roots:
        yield evidence
        return
    hosts = {host.name: host for host in evidence.hosts or ()}
    for machine in machines:
        if machine.launch is not None:
            yield msgspec.structs.replace(
                evidence,
                launch=machine.launch,
                devices=machine.devices,
                storage=machine.storage,
                ending=machine.ending,
                hosts=(hosts[machine.host],) if machine.host in hosts else None,
                ranks=None if evidence.ranks is None else evidence.by_host.get(machine.host, ()),
                absent={**evidence.absent, **machine.absent},
                machines=None,
            )


def at_home(findings: Iterable[Finding], evidence: Evidence, whole: Evidence) -> Iterator[Finding]:
    """Return a machine's findings with its host's name."""
    host = evidence.hosts[0].name if whole.machines and evidence is not whole and evidence.hosts else ""
    for finding in findings:
        yield msgspec.structs.replace(finding, host=host) if host and not finding.host else finding


def once(findings: list[Finding]) -> list[Finding]:
    """Return what several machines say in the same words once, with the hosts that say it."""
    first: dict[tuple[object, ...], Finding] = {}
    hosts: dict[tuple[object, ...], list[str]] = {}
    for finding in findings:
        key = (finding.message, finding.severity, finding.location)
        first.setdefault(key, finding)
        hosts.setdefault(key, []).append(finding.host)
    return [_told(finding, list(dict.fromkeys(hosts[key]))) for key, finding in first.items()]


def _told(finding: Finding, hosts: list[str]) -> Finding:
    if len(hosts) < 2:
        return finding
    more = f" and {len(hosts) - 4} more" if len(hosts) > 4 else ""
    return msgspec.structs.replace(
        finding, host="", evidence=(*finding.evidence, f"so on {', '.join(hosts[:4])}{more}")
    )
