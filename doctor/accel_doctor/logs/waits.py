"""Reads what ranks say of collectives that did not end: torch's NCCL watchdog, from 2.0 to 2.13."""

import re

import msgspec

from accel_doctor.evidence.log import LogWait

_WORK = re.compile(
    r"WorkNCCL\((?:SeqNum=(?P<number>\d+), )?OpType=(?P<op>\w+)(?:, TensorShape=\[[^\]]*\])?"
    r"(?:, NumelIn=(?P<in>\d+), NumelOut=(?P<out>\d+))?(?:, Timeout\(ms\)=(?P<ms>\d+))?"
)
_RANK = re.compile(
    r"\[(?:PG (?:ID )?(?P<group>\d+(?: PG GUID \w+)?(?:\([\w ]*\))?(?: \([\w ]*\))?) )?[Rr]ank (?P<rank>\d+)\]"
)
_STATUS = re.compile(
    r"[Ll]ast enqueued (?:NCCL )?work: (?P<enqueued>-?\d+), last completed (?:NCCL )?work: (?P<completed>-?\d+)"
)
_AT = re.compile(r"(?:at (?:NCCL )?work:|work sequence id:) (?P<number>\d+)")
MOST = 8192


class Waits:
    """What each rank said, the first of a kind kept."""

    def __init__(self) -> None:
        self._found: dict[tuple[int, int | None], LogWait] = {}
        self._status: dict[tuple[int, str], tuple[int, int, int | None, int]] = {}

    def take(self, text: str, line: int, rank: int | None) -> bool:
        """Note what a line says; return whether it speaks of a collective."""
        work, status = _WORK.search(text), _STATUS.search(text)
        if not work and not status:
            return False
        who = _RANK.search(text)
        number = int(who["rank"][:9]) if who and rank is None else rank  # within a group ranks count from 0
        if number is None or len(self._found) > MOST:
            return True
        group = (who["group"] or "") if who else ""
        if work:
            key = (number, int(work["number"]) if work["number"] else None)
            self._found.setdefault(key, _wait(work, number, group, line))
        if status:
            at = _AT.search(text)
            self._status.setdefault(
                (number, group),
                (int(status["enqueued"]), int(status["completed"]), int(at["number"]) if at else None, line),
            )
        return True

    def all(self) -> tuple[LogWait, ...]:
        """Return one record a rank and collective, with where the rank stood; and the ranks that only told that."""
        waits = list(self._found.values())
        nameless = any(not w.group for w in waits)
        for (rank, named), (enqueued, completed, number, line) in self._status.items():
            # torch 2.3 names the group where it tells how a rank stands, and not where it tells what it waits in.
            group = "" if nameless else named
            own = [w for w in waits if w.rank == rank and (number is None or w.number == number)]
            if own:
                at = waits.index(own[0])
                waits[at] = _standing(own[0], group, enqueued, completed)
            else:
                waits.append(
                    LogWait(
                        rank=rank,
                        group=group,
                        enqueued=enqueued,
                        completed=completed,
                        line=line,
                        number=number,
                        timed_out=number is not None,
                    )
                )
        return tuple(sorted(waits, key=lambda w: w.line))


def _standing(wait: LogWait, group: str, enqueued: int, completed: int) -> LogWait:
    return msgspec.structs.replace(wait, group=wait.group or group, enqueued=enqueued, completed=completed)


def _wait(work: re.Match[str], rank: int, group: str, line: int) -> LogWait:
    numbers = {name: int(work[name]) if work[name] else None for name in ("in", "out", "ms")}
    return LogWait(
        rank=rank,
        group=group,
        number=int(work["number"]) if work["number"] else None,
        op=work["op"],
        elements_in=numbers["in"],
        elements_out=numbers["out"],
        timeout_ms=numbers["ms"],
        line=line,
    )
