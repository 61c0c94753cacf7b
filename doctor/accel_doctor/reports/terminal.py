"""The report for people: worst first, folded when well, one verdict line, the next command."""

from collections import Counter, defaultdict

from accel_doctor.check import Finding, Severity
from accel_doctor.diagnose import Diagnosis, Outcome, Result, Verdict
from accel_doctor.evidence import Evidence
from accel_doctor.reports import attach
from accel_doctor.reports.headline import asked_line, headline, launch_lines, together_line
from accel_doctor.reports.layout import BOLD, CYAN, DIM, GREEN, RED, YELLOW, Page, counted, listed
from accel_doctor.reports.log import ending_lines, log_lines
from accel_doctor.reports.next_command import next_command
from accel_doctor.reports.plan import plan_lines
from accel_doctor.reports.summary import TOPICS, Seen, topic_of

LABELS = {Severity.ERROR: ("FAIL", RED), Severity.WARNING: ("WARN", YELLOW), Severity.NOTE: ("note", CYAN)}
TAGS = ("why", "not", "mind")
"""A finding's evidence that begins with one of these and a colon has that as its label."""
MAX_FINDINGS = 4
MAX_EVIDENCE = 4
MAX_REASONS = 6
FAULTY = (Outcome.FAILED, Outcome.WARNED, Outcome.BROKEN)
"""Worst first."""
CONSEQUENCE = "a consequence of "


def render(diagnosis: Diagnosis, *, width: int, color: bool, verbosity: int) -> str:
    """Return the report; ``verbosity`` is -1 (faults and verdict), 0, or 1 (every check and setting)."""
    seen = Seen(diagnosis.evidence, diagnosis.evidence.world)
    page = Page(width, color=color)
    if verbosity >= 0 and seen.evidence.exam == "explain_log":
        log_lines(page, seen.evidence)
    elif verbosity >= 0 and seen.evidence.exam == "attach":
        attach.head(page, seen.evidence)
    elif verbosity >= 0:
        headline(page, seen)
        together_line(page, seen.evidence)
        launch_lines(page, seen.evidence, verbose=verbosity > 0)
        asked_line(page, seen.evidence.asked)
        if seen.evidence.plan:
            plan_lines(page, seen.evidence.plan, verbose=verbosity > 0)
    _faults(page, diagnosis, verbose=verbosity > 0)
    if verbosity >= 0:
        _groups(page, diagnosis, seen)
        _notes(page, diagnosis, seen)
        if diagnosis.evidence.exam != "explain_log":
            _unexamined(page, diagnosis)
        elif diagnosis.verdict is Verdict.INCOMPLETE and diagnosis.evidence.log:
            ending_lines(page, diagnosis.evidence.log)
    if verbosity > 0:
        _every_check(page, diagnosis)
    page.blank()
    _verdict(page, diagnosis, seen)
    if verbosity >= 0:
        _next(page, diagnosis)
    return str(page)


def _faults(page: Page, diagnosis: Diagnosis, *, verbose: bool) -> None:
    place = {topic: index for index, topic in enumerate(TOPICS)}
    faulty = [r for r in diagnosis.results if r.outcome in FAULTY]
    for r in sorted(faulty, key=lambda r: (FAULTY.index(r.outcome), place.get(r.id[:3], len(place)), r.id)):
        if r.outcome is Outcome.BROKEN:
            page.blank()
            page.line("BROKEN ", f"{r.id} {r.name}    {r.reason} (the doctor's own fault)", RED, hang=7)
        _findings(page, r, verbose=verbose)


def _findings(page: Page, result: Result, *, verbose: bool) -> None:
    """Add the findings of one check: the first in full, the next few by their sentence alone."""
    shown = result.findings if verbose else result.findings[:MAX_FINDINGS]
    for index, finding in enumerate(shown):
        word, style = LABELS[finding.severity]
        if index == 0 or verbose:
            page.blank()
        page.line(f"{word} ", f"{result.id} {result.name}    {finding.message}", style)
        if index == 0 or verbose:
            _details(page, finding, verbose=verbose)
        elif finding.command not in ("", shown[0].command):
            page.verbatim("  type   ", finding.command, BOLD)
    if len(shown) < len(result.findings):
        page.line("     ", f"{result.id} found {len(result.findings) - len(shown)} more (-v)")


def _details(page: Page, finding: Finding, *, verbose: bool) -> None:
    tagged, also = _sorted_evidence(finding.evidence)
    _labelled(page, "where", _where(finding, verbose=verbose))
    _labelled(page, "seen", finding.seen)
    _labelled(page, "wanted", finding.wanted)
    _labelled(page, "why", *tagged["why"])
    _labelled(page, "not", *tagged["not"])
    _labelled(page, "fix", finding.fix)
    if finding.command:
        page.verbatim("  type   ", finding.command, BOLD)
    _labelled(page, "mind", *tagged["mind"])
    _labelled(page, "also", *(also if verbose else also[:MAX_EVIDENCE]))
    if not verbose and len(also) > MAX_EVIDENCE:
        _labelled(page, "also", f"{len(also) - MAX_EVIDENCE} more (-v)")
    if verbose:
        _labelled(page, "values", ", ".join(f"{name} {value:g}" for name, value in finding.values.items()))


def _labelled(page: Page, label: str, *texts: str) -> None:
    for text in texts:
        if text:
            page.line(f"  {label:6} ", text, DIM)


def _sorted_evidence(evidence: tuple[str, ...]) -> tuple[dict[str, list[str]], list[str]]:
    tagged: dict[str, list[str]] = defaultdict(list)
    also: list[str] = []
    for sentence in evidence:
        tag, colon, rest = sentence.partition(": ")
        (tagged[tag] if colon and tag in TAGS else also).append(rest if colon and tag in TAGS else sentence)
    return tagged, also


def _where(finding: Finding, *, verbose: bool) -> str:
    place = finding.location
    parts = [f"{place.path}{'' if place.line is None else f':{place.line}'}"] if place else []
    parts += [finding.host] if finding.host and (place or verbose) else []
    parts += [f"ranks {listed(finding.ranks)}"] if finding.ranks and verbose else []
    return " · ".join(parts)


def _groups(page: Page, diagnosis: Diagnosis, seen: Seen) -> None:
    topics = {t.name: t for t in (*TOPICS.values(), *(topic_of(r.id) for r in diagnosis.results))}
    outcomes = {name: Counter[Outcome]() for name in topics}
    for result in diagnosis.results:
        sick = result.outcome is Outcome.SKIPPED and result.reason.startswith(CONSEQUENCE)
        outcomes[topic_of(result.id).name][Outcome.FAILED if sick else result.outcome] += 1
    page.blank()
    for name, topic in topics.items():
        if outcomes[name][Outcome.PASSED] and not any(outcomes[name][o] for o in FAULTY):
            page.line(f" ok  {name:12} ", topic.numbers(seen) or _absent(diagnosis, name), GREEN)


def _absent(diagnosis: Diagnosis, topic: str) -> str:
    """Return which faults of a topic were looked for and not found."""
    passed = [r.name for r in diagnosis.results if r.outcome is Outcome.PASSED and topic_of(r.id).name == topic]
    more = f" and {len(passed) - MAX_REASONS} more" if len(passed) > MAX_REASONS else ""
    return f"no {', '.join(passed[:MAX_REASONS])}{more}"


def _notes(page: Page, diagnosis: Diagnosis, seen: Seen) -> None:
    for result in diagnosis.results:
        if result.outcome in (Outcome.PASSED, Outcome.SKIPPED):
            for finding in result.findings[:MAX_FINDINGS]:
                page.line(f" note {result.id:11} ", finding.message, CYAN)
    if len(seen.ranks) == 1 and not seen.evidence.part_of:
        page.line(
            " note one rank   ",
            "nothing between ranks was examined: no collective, no split of the data, no second replica, no guard",
            CYAN,
        )


def _unexamined(page: Page, diagnosis: Diagnosis) -> None:
    reasons = Counter(r.reason for r in _skipped(diagnosis))
    if not reasons:
        return
    shown = [f"{reason} ({number})" for reason, number in reasons.most_common(MAX_REASONS)]
    if len(reasons) > MAX_REASONS:
        shown.append(f"{len(reasons) - MAX_REASONS} more reasons (-v)")
    page.line(f" not examined {reasons.total()}  ", " · ".join(shown), DIM, hang=6)


def _skipped(diagnosis: Diagnosis) -> list[Result]:
    return [r for r in diagnosis.results if r.outcome is Outcome.SKIPPED and not r.reason.startswith(CONSEQUENCE)]


def _every_check(page: Page, diagnosis: Diagnosis) -> None:
    page.blank()
    styles = {Outcome.PASSED: GREEN, Outcome.SKIPPED: DIM, Outcome.WARNED: YELLOW}
    longest = max((len(r.name) for r in diagnosis.results), default=0)
    for r in diagnosis.results:
        said = r.reason or (r.findings[0].message if r.findings else "")
        page.line(f"{r.outcome.value:8}", f"{r.id} {r.name:{longest}}  {said}", styles.get(r.outcome, RED), hang=10)


def _verdict(page: Page, diagnosis: Diagnosis, seen: Seen) -> None:
    words = {Verdict.PASSED: _passed(seen), Verdict.FAILED: "FAILED  ", Verdict.INCOMPLETE: "INCOMPLETE  "}
    styles = {Verdict.PASSED: GREEN, Verdict.FAILED: RED, Verdict.INCOMPLETE: YELLOW}
    directory = seen.evidence.run_dir
    said = ", ".join([*_sick(diagnosis, seen), *_well(diagnosis), *_took(seen.evidence)])
    place = f"   {directory.rstrip('/')}/" if directory else ""
    page.line(words[diagnosis.verdict], said + place, f"{styles[diagnosis.verdict]};{BOLD}", hang=2)


def _passed(seen: Seen) -> str:
    if seen.evidence.part_of:
        return "PASSED HERE  "
    if on_cpu(seen.evidence):
        return "PASSED ON CPU: "
    return "PASSED ON ONE RANK  " if len(seen.ranks) == 1 else "PASSED  "


def on_cpu(evidence: Evidence) -> bool:
    """Return whether ranks were examined and none of them on a device."""
    devices = {r.group.device.partition(":")[0] for r in evidence.ranks or () if r.group}
    return devices == {"cpu"}


def _sick(diagnosis: Diagnosis, seen: Seen) -> list[str]:
    """Return how many faults and causes there are; consequences that a cause carries count as faults."""
    if diagnosis.verdict is Verdict.INCOMPLETE:
        more = len(diagnosis.why_incomplete) - MAX_REASONS
        why = [*diagnosis.why_incomplete[:MAX_REASONS], *([f"and {more} more"] if more > 0 else [])]
        return ["; ".join(why)]
    outcomes = Counter(r.outcome for r in diagnosis.results)
    warnings = [counted(outcomes[Outcome.WARNED], "warning")] if outcomes[Outcome.WARNED] else []
    if diagnosis.verdict is Verdict.PASSED:
        return [*(_on_cpu(seen) if on_cpu(seen.evidence) else []), *warnings]
    causes = {r.id for r in diagnosis.results if r.outcome is Outcome.FAILED}
    if not causes:
        return [*warnings, "which --strict fails"]
    carried = sum(r.reason.removeprefix(CONSEQUENCE) in causes for r in diagnosis.results if r.reason)
    return [counted(len(causes) + carried, "fault"), counted(len(causes), "cause"), *warnings]


def _on_cpu(seen: Seen) -> list[str]:
    backends = dict.fromkeys(r.group.backend for r in seen.ranks if r.group and r.group.backend)
    kind = f"{'/'.join(backends)} rank" if backends else "rank"
    return [counted(sum(r.group is not None for r in seen.ranks), kind), "no GPU examined"]


def _well(diagnosis: Diagnosis) -> list[str]:
    judged = (Outcome.PASSED, Outcome.WARNED, Outcome.FAILED)
    notes = sum(f.severity is Severity.NOTE for r in diagnosis.results for f in r.findings)
    skipped = len(_skipped(diagnosis))
    parts = [counted(sum(r.outcome in judged for r in diagnosis.results), "check")]
    parts += [counted(notes, "note")] if notes else []
    return parts + ([f"{skipped} not examined"] if skipped else [])


def _took(evidence: Evidence) -> list[str]:
    seconds = evidence.timings.get("exam_s")
    return [] if seconds is None else [f"{seconds:.0f} s"]


def _next(page: Page, diagnosis: Diagnosis) -> None:
    if diagnosis.evidence.part_of:
        return
    if on_cpu(diagnosis.evidence) and diagnosis.verdict is Verdict.PASSED:
        page.line("in CI: ", "with --require GPU001 an exam without a GPU is incomplete and exits 2", DIM)
    if command := next_command(diagnosis):
        page.verbatim("next: ", command, BOLD)
