"""The judges of a hang: each check of the family asks for the one explanation and speaks when it is its own. Pure."""

from collections.abc import Iterator

from accel_doctor.check import Finding, JudgeFunction
from accel_doctor.evidence import Evidence
from accel_doctor.hang import explain
from accel_doctor.traces import several


def hang_judge(check_id: str, wanted: str) -> JudgeFunction:
    """Return the judge of one check: it finds the hang that ``explain`` gives this id."""

    def judge(evidence: Evidence) -> Iterator[Finding]:
        several(evidence)
        hang = explain(evidence)
        if hang is not None and hang.id == check_id:
            yield Finding(
                message=hang.message,
                seen="; ".join(hang.evidence),
                wanted=wanted,
                ranks=hang.ranks,
                location=hang.location,
                values=hang.values,
            )

    return judge
