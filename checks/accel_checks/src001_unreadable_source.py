"""SRC001: a file could not be read or parsed."""

from collections.abc import Iterator

from accel_doctor.check import Check, Finding, Invariant, Judge, Location
from accel_doctor.evidence import Evidence

PYTHON = (".py", ".ipynb", ">")
"""Of standard input, ``<stdin>``, too."""


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Name the files that were not judged, and why."""
    for file in evidence.source.files if evidence.source else ():
        if file.error or file.cut:
            yield Finding(
                message=f"{file.path} was not judged: {file.error}"
                if file.error
                else f"{file.path} was judged in part: {file.cut}",
                wanted="Python that its own parser takes" if file.path.endswith(PYTHON) else "a launch file",
                location=Location(file.path, file.error_line),
            )


CHECK = Check(
    id="SRC001",
    name="unreadable-source",
    invariant=Invariant.PRESENT,
    title="A file could not be read or parsed",
    why="What was not read is not healthy: the lint is incomplete without it.",
    fix="correct the file, or leave it out",
    judges=(Judge(needs=("source",), judge=judge),),
)
