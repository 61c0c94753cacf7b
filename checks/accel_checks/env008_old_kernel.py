"""ENV008: the Linux kernel is older than 5.5."""

import re
from collections.abc import Iterator

from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity
from accel_doctor.evidence import Evidence

OLDEST = (5, 5)
BACKPORTED = re.compile(r"\.el\d|\.uek|\.ocp|\.cray|[-.]default$|\.al\d|\.an\d")
"""Vendors whose old version numbers hide years of repairs: Red Hat and its rebuilds, Oracle, SUSE, HPE, Alibaba."""


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Compare each host's kernel with the one below which accelerate warns."""
    kernels = {h.name: (h.kernel, m) for h in evidence.hosts or () if (m := re.match(r"(\d+)\.(\d+)", h.kernel))}
    if not kernels:
        raise NotApplicable("no host runs Linux")
    for host, (kernel, version) in sorted(kernels.items()):
        if (int(version[1]), int(version[2])) < OLDEST:
            vendor = bool(BACKPORTED.search(kernel))
            yield Finding(
                message=f"Linux {kernel} is older than 5.5" + (", with its vendor's backports" if vendor else ""),
                severity=Severity.NOTE if vendor else Severity.WARNING,
                seen=kernel,
                wanted="5.5 or newer",
                host=host,
            )


CHECK = Check(
    id="ENV008",
    name="old-kernel",
    invariant=Invariant.PRESENT,
    title="The Linux kernel is older than 5.5",
    why="accelerate warns that the process may hang on kernels below 5.5.",
    fix="use a host with a newer kernel; a newer container image does not change it",
    severity=Severity.WARNING,
    judges=(Judge(needs=("hosts",), judge=judge),),
)
