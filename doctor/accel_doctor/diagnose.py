"""Judges evidence: runs each check, folds consequences into their causes, and draws the verdict. Pure."""

import fnmatch
import posixpath
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum

import msgspec

from accel_doctor import __version__
from accel_doctor.check import Check, Finding, Judge, Location, NotApplicable, Severity
from accel_doctor.each_machine import at_home, each_machine, once
from accel_doctor.evidence import Evidence
from accel_doctor.evidence.exam import asked_in, brings

CUTS = {"disk": "the run directory is full: what the ranks wrote was lost in part"}
TOGETHER = ("machines", "peer", "stalled")
"""Why the doctors of several machines end their launches together."""
UNREAD = "SRC001"
"""What could not be read was not judged: it makes an exam incomplete, and is no fault of the run."""


class Outcome(str, Enum):
    """What became of a check."""

    FAILED = "failed"
    WARNED = "warned"
    PASSED = "passed"
    SKIPPED = "skipped"
    BROKEN = "broken"


class Verdict(str, Enum):
    """What became of the exam."""

    FAILED = "failed"
    INCOMPLETE = "incomplete"
    PASSED = "passed"


class Result(msgspec.Struct, frozen=True, kw_only=True):
    """One check's outcome."""

    id: str
    name: str
    invariant: str
    title: str
    outcome: Outcome
    reason: str = ""
    """Why it was skipped or is broken."""
    findings: tuple[Finding, ...] = ()


class PathIgnore(msgspec.Struct, frozen=True, kw_only=True):
    """Checks that are silent in some files."""

    pattern: str
    """A pattern of absolute paths; ``**/`` also stands for no folder at all."""
    ids: tuple[str, ...]

    def fits(self, path: str) -> bool:
        """Return whether it is meant for an absolute path."""
        return any(fnmatch.fnmatchcase(path, p) for p in (self.pattern, self.pattern.replace("**/", "")))


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """What the user wants judged, and how strictly."""

    select: tuple[str, ...] = ()
    """Ids or prefixes; empty selects all."""
    ignore: tuple[str, ...] = ()
    require: tuple[str, ...] = ()
    """Ids or prefixes that must not be skipped."""
    strict: bool = False
    exit_zero: bool = False
    cwd: str = ""
    """What the paths of findings are relative to."""
    path_ignores: tuple[PathIgnore, ...] = ()

    def ignored_in(self, path: str) -> tuple[str, ...]:
        """Return the ids and prefixes that are silent in a file."""
        full = posixpath.join(self.cwd, path) if self.path_ignores else path
        return tuple(i for ignore in self.path_ignores if ignore.fits(full) for i in ignore.ids)


class Diagnosis(msgspec.Struct, frozen=True, kw_only=True):
    """The judged exam."""

    evidence: Evidence
    verdict: Verdict
    exit_code: int
    results: tuple[Result, ...]
    why_incomplete: tuple[str, ...] = ()
    doctor_version: str = __version__


def diagnose(evidence: Evidence, checks: Iterable[Check], options: Options | None = None) -> Diagnosis:
    """Judge evidence by every check of its exam that is selected."""
    options = options or Options()
    chosen = [c for c in checks if belongs(c, evidence.exam) and wanted(c.id, options)]
    results = [examine(c, evidence, options) for c in chosen]
    if evidence.exam != "lint":  # a script's faults stand side by side; each is told once by the facts themselves
        results = fold({c.id: c for c in chosen}, results)
    verdict, why = conclude(evidence, results, options)
    code = {Verdict.PASSED: 0, Verdict.FAILED: 1, Verdict.INCOMPLETE: 2}[verdict]
    return Diagnosis(
        evidence=evidence,
        verdict=verdict,
        exit_code=0 if options.exit_zero else code,
        results=tuple(results),
        why_incomplete=tuple(why),
    )


def belongs(check: Check, exam: str) -> bool:
    """Return whether this exam can bring the evidence of at least one of the check's judges."""
    return any(
        asked_in(exam, judge.needs) and all(brings(exam, need) for need in judge.needs) for judge in check.judges
    )


def wanted(check_id: str, options: Options) -> bool:
    """Return whether ``--select`` and ``--ignore`` leave this check in."""
    return (not options.select or check_id.startswith(options.select)) and not check_id.startswith(
        options.ignore or ("-",)
    )


def examine(check: Check, evidence: Evidence, options: Options | None = None) -> Result:
    """Return one check's outcome: its findings, or why its silence is a pass or is not."""
    findings: list[Finding] = []
    reasons: list[str] = []
    passed = False
    asked = [j for j in check.judges if asked_in(evidence.exam, j.needs)]
    for judge, seen in ((j, seen) for j in asked for seen in each_launch(j, evidence)):
        if missing := absence(judge, seen):
            reasons.append(missing)
            continue
        try:
            findings += at_home(placed(judge.judge(seen), seen), seen, evidence)
        except NotApplicable as answer:
            reasons.append(str(answer))
            continue
        except Exception as error:  # noqa: BLE001 - a broken judge must not hide the others' findings
            return _result(check, Outcome.BROKEN, f"{type(error).__name__}: {error}", findings)
        partial = gaps(judge, seen)
        reasons += [partial] if partial else []
        passed = passed or not partial
    told = once(findings) if evidence.machines else findings
    return _conclude(check, merge(unsuppressed(check.id, told, evidence, options or Options())), reasons, passed=passed)


def each_launch(judge: Judge, evidence: Evidence) -> Iterator[Evidence]:
    """Return the evidence once for each machine, or launch that a lint read, that the judge is to look at."""
    yield from each_machine(judge, evidence)
    for launch in evidence.source.launches if evidence.source and "launch" in judge.needs else ():
        yield msgspec.structs.replace(evidence, launch=launch)


def placed(findings: Iterable[Finding], evidence: Evidence) -> Iterator[Finding]:
    """Return the findings, those without a place at the line that their launch was read from."""
    read_from = evidence.launch.read_from if evidence.launch else ""
    path, _, line = read_from.rpartition(":")
    here = Location(path, int(line)) if path and line.isdigit() else Location(read_from) if read_from else None
    for finding in findings:
        yield finding if finding.location or here is None else msgspec.structs.replace(finding, location=here)


def unsuppressed(check_id: str, findings: list[Finding], evidence: Evidence, options: Options) -> list[Finding]:
    """Return the findings that neither a comment of the user's on their line nor a setting for their file silences."""
    silenced = {
        (file.path, comment.line)
        for file in (evidence.source.files if evidence.source else ())
        for comment in file.suppressions
        if not comment.ids or check_id in comment.ids
    }
    return [
        f
        for f in findings
        if not f.location
        or (
            (f.location.path, f.location.line) not in silenced
            and not check_id.startswith(options.ignored_in(f.location.path) or ("-",))
        )
    ]


def _conclude(check: Check, findings: list[Finding], reasons: list[str], *, passed: bool) -> Result:
    worst = {f.severity for f in findings}
    if Severity.ERROR in worst:
        return _result(check, Outcome.FAILED, "", findings)
    if Severity.WARNING in worst:
        return _result(check, Outcome.WARNED, "", findings)
    if passed:
        return _result(check, Outcome.PASSED, "", findings)
    return _result(check, Outcome.SKIPPED, reasons[0] if reasons else "not examined", findings)


def _result(check: Check, outcome: Outcome, reason: str, findings: Iterable[Finding]) -> Result:
    filled = tuple(f if f.fix else msgspec.structs.replace(f, fix=check.fix) for f in findings)
    return Result(
        id=check.id,
        name=check.name,
        invariant=check.invariant.value,
        title=check.title,
        outcome=outcome,
        reason=reason,
        findings=filled,
    )


def absence(judge: Judge, evidence: Evidence) -> str:
    """Return why a judge cannot be asked at all, or an empty string."""
    for need in judge.needs:
        subject, _, part = need.partition(".")
        seen = getattr(evidence, subject, None)
        if evidence.part_of and (part or subject == "machines"):
            return f"{evidence.part_of} judges all machines together"
        if seen is None or (part and not any(getattr(item, part) is not None for item in seen)):
            return (
                evidence.absent.get(need) or evidence.absent.get(subject) or f"no evidence of {need.replace('.', ' ')}"
            )
    return ""


def gaps(judge: Judge, evidence: Evidence) -> str:
    """Return which ranks lack evidence that the judge needs of each, or an empty string."""
    parts = [need.partition(".")[2] for need in judge.needs if need.startswith("ranks.")]
    lacking = [r.name for r in evidence.world if any(getattr(r, part) is None for part in parts)]
    expected = evidence.asked_ranks if parts else None
    if expected is not None and len(evidence.world) < expected:
        lacking.append(f"{expected - len(evidence.world)} that never came")
    return f"not seen on {', '.join(lacking[:4])}{' …' if len(lacking) > 4 else ''}" if lacking else ""


def merge(findings: list[Finding]) -> list[Finding]:
    """Return one finding a site: the worst of those at the same place, carrying the others' messages as evidence."""
    rank = (Severity.ERROR, Severity.WARNING, Severity.NOTE)
    merged: dict[object, Finding] = {}
    for index, finding in enumerate(sorted(findings, key=lambda f: rank.index(f.severity))):
        site: object = index if finding.location is None else (finding.location.path, finding.location.line)
        first = merged.get(site)
        merged[site] = finding if first is None else _carry(first, [finding.message, *finding.evidence])
    return list(merged.values())


def _carry(finding: Finding, said: list[str]) -> Finding:
    new = [s for s in said if s != finding.message and s not in finding.evidence]
    return msgspec.structs.replace(finding, evidence=(*finding.evidence, *new))


def fold(checks: dict[str, Check], results: list[Result]) -> list[Result]:
    """Return the results with each consequence carried by its cause: one cause gives one finding."""
    fired = {r.id: r.outcome for r in results if r.outcome in (Outcome.FAILED, Outcome.WARNED)}
    causes = {check_id: _cause(checks, fired, check_id) for check_id in fired}
    folded = {r.id: _as_consequence(r, causes[r.id]) if causes.get(r.id, r.id) != r.id else r for r in results}
    for result in results:
        cause = causes.get(result.id, result.id)
        if cause != result.id:
            first, *rest = folded[cause].findings
            why = "why: " if result.id in checks[cause].explained_by else ""
            said = [f"{why}{result.id} {result.name}: {f.message}" for f in result.findings]
            first = _with_remedy(first, result.findings) if why else first
            folded[cause] = msgspec.structs.replace(folded[cause], findings=(_carry(first, said), *rest))
    return [folded[r.id] for r in results]


def _with_remedy(finding: Finding, why: tuple[Finding, ...]) -> Finding:
    """Return a finding with what its cause says is to be done, where it has no line to type of its own."""
    remedy = next((f for f in why if f.command), None)
    if finding.command or remedy is None:
        return finding
    return msgspec.structs.replace(finding, command=remedy.command, fix=remedy.fix)


def _as_consequence(result: Result, cause: str) -> Result:
    return msgspec.structs.replace(result, outcome=Outcome.SKIPPED, reason=f"a consequence of {cause}", findings=())


def _cause(checks: dict[str, Check], fired: Mapping[str, Outcome], check_id: str, seen: tuple[str, ...] = ()) -> str:
    """Return the id of the first cause that fired, followed to its own cause; the check itself when there is none.

    A warning never explains a failure away.
    """
    for cause in checks[check_id].consequence_of:
        if cause in seen:
            return min(*seen, check_id)
        if cause in fired:
            root = _cause(checks, fired, cause, (*seen, check_id))
            if fired[root] is Outcome.FAILED or fired[check_id] is Outcome.WARNED:
                return root
    return check_id


def conclude(evidence: Evidence, results: list[Result], options: Options) -> tuple[Verdict, list[str]]:
    """Return the verdict and, where it is incomplete, why."""
    outcomes = {r.outcome for r in results if r.id != UNREAD}
    if Outcome.FAILED in outcomes or (options.strict and Outcome.WARNED in outcomes):
        return Verdict.FAILED, []
    why = [f"{r.id} is broken: {r.reason}" for r in results if r.outcome is Outcome.BROKEN]
    why += [f"{name} was required and not examined" for name in options.require if not _examined(name, results)]
    why += [f"no units of {evidence.asked.model}: {evidence.absent['plan']}"] if _no_plan(evidence) else []
    why += [CUTS.get(evidence.cut, f"the exam was ended by the {evidence.cut}")] if evidence.cut else []
    why += _ended_by_others(evidence)
    why += [f.message for r in results if r.id == UNREAD for f in r.findings]
    if not outcomes & {Outcome.PASSED, Outcome.WARNED}:
        why.append(_unjudged(evidence, results))
    return (Verdict.INCOMPLETE if why else Verdict.PASSED), why


def _no_job(evidence: Evidence) -> str:
    return (evidence.absent.get("jobs") if evidence.jobs is None else "") or "nothing was judged"


def _no_plan(evidence: Evidence) -> bool:
    """Whether the user named a model that FSDP is to wrap and its units were not seen."""
    asked = evidence.asked.model and evidence.launch and evidence.launch.strategy == "FSDP"
    return bool(asked and evidence.plan is None and evidence.absent.get("plan"))


def _unjudged(evidence: Evidence, results: list[Result]) -> str:
    """Return why nothing was judged: of a log, what every check answered."""
    reasons = {r.reason for r in results}
    return reasons.pop() if evidence.exam == "explain_log" and len(reasons) == 1 else _no_job(evidence)


def _ended_by_others(evidence: Evidence) -> list[str]:
    """Return that this machine's launch was ended because of the others, where this is a part."""
    ended = evidence.part_of and evidence.ending is not None and evidence.ending.stopped_by in TOGETHER
    return [f"the launch was ended here because the job cannot go on: {evidence.part_of} says why"] if ended else []


def _examined(name: str, results: list[Result]) -> bool:
    named = [r for r in results if r.id.startswith(name)]
    return bool(named) and all(r.outcome is not Outcome.SKIPPED for r in named)
