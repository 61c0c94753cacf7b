"""LOG004, CKP003 and CKP011 share one look at written paths. Pure."""

import posixpath
import re
from collections.abc import Iterator
from typing import NamedTuple

from accel_doctor.evidence import Site
from accel_doctor.evidence.run import Written
from accel_doctor.traces import Traced

VARYING = r"tmp\w{6,8}|[0-9a-fA-F-]{6,}|\d+"
CHECKPOINTS = (".pt", ".pth", ".bin", ".ckpt", ".safetensors", ".pkl", ".tar", ".npz", ".h5")


class Contested(NamedTuple):
    """A path that several ranks wrote."""

    path: str
    site: Site | None
    ranks: tuple[Traced, ...]
    how: str
    checkpoint: bool


def contested(ranks: list[Traced]) -> Iterator[Contested]:
    """Yield each path that several ranks of one host wrote in the same stretch between two collectives."""
    writers: dict[str, list[tuple[Traced, Written]]] = {}
    for t in ranks:
        for written in t.trace.written:
            if not any(t is seen for seen, _ in writers.get(written.path, ())):
                writers.setdefault(written.path, []).append((t, written))
    for path, each in writers.items():
        stretches = {written.collective for _, written in each}
        if len(each) > 1 and len({t.rank.host for t, _ in each}) == 1 and len(stretches) < len(each):
            how = next((w.how for _, w in each if w.how not in ("open", "append")), each[0][1].how)
            checkpoint = (how not in ("open", "append") or path.endswith(CHECKPOINTS)) and not _prepared(each)
            yield Contested(path, each[0][1].site, tuple(t for t, _ in each), how, checkpoint)


def _prepared(each: list[tuple[Traced, Written]]) -> bool:
    """Return whether the path was written once, before a training that followed: data made ready, no checkpoint."""
    trained = all(any(o.steps for o in t.trace.optimizers) for t, _ in each)
    return trained and all(not (w.step or w.via) and w.count == 1 and w.how != "safetensors" for _, w in each)


class OwnPaths(NamedTuple):
    """A site that writes another path on each rank."""

    site: Site
    paths: tuple[str, ...]
    """One a rank."""


def own_paths(ranks: list[Traced]) -> Iterator[OwnPaths]:
    """Yield sites whose paths differ by rank in something else than the rank's own number."""
    sites = {w.site for t in ranks for w in t.trace.written if w.site is not None}
    for site in sorted(sites):
        each = [next((w.path for w in t.trace.written if w.site == site and not w.via), None) for t in ranks]
        paths = [path for path in each if path is not None]
        if len(paths) == len(ranks) and len(set(paths)) == len(paths) and _same_shape(ranks, paths):
            yield OwnPaths(site, tuple(paths))
        elif not paths:
            yield from _own_folders(ranks, site)


def _own_folders(ranks: list[Traced], site: Site) -> Iterator[OwnPaths]:
    """Yield folders of one save_state that no two ranks share: its files are named by rank, its folder is one."""
    each = [
        {posixpath.dirname(w.path) for w in t.trace.written if w.site == site and w.via == "save_state"} for t in ranks
    ]
    paths = [min(folders) for folders in each if folders]
    apart = len(set().union(*each)) == sum(map(len, each))
    if len(paths) == len(ranks) > 1 and apart and _same_shape(ranks, paths):
        yield OwnPaths(site, tuple(paths))


def _same_shape(ranks: list[Traced], paths: list[str]) -> bool:
    """Return whether the paths are alike but for numbers and hashes that are not the ranks' numbers."""
    if len({re.sub(VARYING, "#", path) for path in paths}) > 1:
        return False
    return not set.intersection(*(_without(t.rank.rank, path) for t, path in zip(ranks, paths, strict=True)))


def _without(rank: int | None, path: str) -> set[str]:
    """Return the path without the rank's number: without all of them, and without each (``__1_0.distcp``)."""
    number = rf"(?<!\d)0*{rank}(?!\d)"
    found = list(re.finditer(number, path))
    return {path[: m.start()] + "#" + path[m.end() :] for m in found} | (
        {re.sub(number, "#", path)} if found else set()
    )
