"""ENV014: a cache or temporary folder is on a disk that races, is full, cannot be written, or is empty and offline."""

from collections.abc import Iterator

from accel_checks._log import from_log
from accel_doctor.bandwidth import size_text
from accel_doctor.check import Check, Finding, Invariant, Judge, Severity, Threshold
from accel_doctor.evidence import Evidence, Folder, Host

FREE_GIB = Threshold("ENV014.free_gib", 1.0, "kernels, temporary files and one small model")
RACING = ("TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR")
"""Written by every rank at once while it compiles."""
DOWNLOADS = ("HF_HOME", "HF_HUB_CACHE")
OFFLINE = ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_DATASETS_OFFLINE")


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Look at each cache of each host; the first thing wrong with a folder is the one reported."""
    for host in evidence.hosts or ():
        told: set[str] = set()
        for cache in host.caches or ():
            finding = _fault(evidence, host, cache)
            if finding and finding.message not in told:
                told.add(finding.message)
                yield finding


def _fault(evidence: Evidence, host: Host, cache: Folder) -> Finding | None:
    offline = _is_offline(host)
    if cache.error and not (offline and cache.exists and cache.name in DOWNLOADS):
        return _finding(host, cache, f"cannot be used: {cache.error}", "a folder that can be written")
    free = cache.free_bytes
    if free is not None and free < FREE_GIB.of(evidence) * 2**30 and not offline:
        return _finding(host, cache, f"has {size_text(free)} left", f"{FREE_GIB.of(evidence):g} GiB", float(free))
    if cache.free_inodes is not None and cache.free_inodes < 1000:
        return _finding(host, cache, f"can take {cache.free_inodes} more files", "1000", float(cache.free_inodes))
    if cache.network and cache.name in RACING:
        return _finding(host, cache, f"lies on {cache.file_system}, where ranks race for its files", "a local disk")
    if offline and cache.name == "HF_HUB_CACHE" and (cache.empty or cache.exists is False):
        return _finding(
            host, cache, f"is empty and {offline} forbids to fill it", "the models and data, fetched before"
        )
    return None


def _is_offline(host: Host) -> str:
    """Return the variable that keeps the Hugging Face libraries off the network, or an empty string."""
    return next((n for n in OFFLINE if host.environment.get(n, "").upper() in ("1", "ON", "YES", "TRUE")), "")


def _finding(host: Host, cache: Folder, what: str, wanted: str, number: float | None = None) -> Finding:
    unit = "free_inodes" if "files" in what else "free_bytes"
    return Finding(
        message=f"{cache.name} ({cache.path}) {what}",
        severity=Severity.WARNING,
        seen=f"{cache.path} on {cache.file_system or 'an unknown file system'}",
        wanted=wanted,
        values={} if number is None else {unit: number},
        host=host.name,
        command="" if cache.name in DOWNLOADS else f"export {cache.name}=/path/on/a/local/disk",
    )


CHECK = Check(
    id="ENV014",
    name="unfit-cache",
    invariant=Invariant.FITS,
    title="A cache or temporary folder is on a disk that races, is full, cannot be written, or is empty and offline",
    why="Every rank compiles into these folders and downloads into them at once: on a network disk they overwrite each "
    "other's files, and on a full one the run dies in the middle of a step.",
    fix="move it to a local disk with room, or fill it before the run",
    severity=Severity.WARNING,
    judges=(Judge(needs=("hosts.caches",), judge=judge), from_log("ENV014")),
    thresholds=(FREE_GIB,),
)
