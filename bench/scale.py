"""Measures how judging and rendering grow with the world: evidence of many ranks made from that of a real exam.

    python bench/scale.py RUN_DIR|evidence.json [--ranks 128 256 512 1024 2048]

Each rank of the real exam is copied with a rank, a pid and a host of its own, eight ranks a host. Printed is the
time to read, judge and render, and how it grew from one size to the next: 1.0 is linear.
"""

import argparse
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from accel_doctor.catalogue import load_checks
from accel_doctor.diagnose import diagnose
from accel_doctor.evidence import Evidence, Guards, Rank
from accel_doctor.evidence.file import read_evidence, write_evidence
from accel_doctor.reports.json import render as render_json
from accel_doctor.reports.terminal import render as render_terminal

PER_HOST = 8


def grown(evidence: Evidence, count: int) -> Evidence:
    """Return evidence of ``count`` ranks that behaved as the real ones did."""
    real = evidence.world
    ranks = tuple(_copy(real[min(n, 1) if len(real) > 1 else 0], n, count) for n in range(count))
    host = (evidence.hosts or ())[0]
    hosts = tuple(msgspec.structs.replace(host, name=f"node{n}") for n in range(-(-count // PER_HOST)))
    launch = evidence.launch and msgspec.structs.replace(evidence.launch, asked_processes=PER_HOST)
    return msgspec.structs.replace(evidence, ranks=ranks, hosts=hosts, launch=launch)


def _copy(rank: Rank, number: int, count: int) -> Rank:
    changes: dict[str, Any] = {"rank": number, "pid": 10_000 + number, "host": f"node{number // PER_HOST}"}
    changes |= {"local_rank": number % PER_HOST, "env_world_size": count}
    if rank.group:
        changes["group"] = msgspec.structs.replace(
            rank.group,
            rank=number,
            world_size=count,
            local_rank=number % PER_HOST,
            is_main=number == 0,
            is_local_main=number % PER_HOST == 0,
        )
    if rank.guards:
        main, local_main = int(number == 0), int(number % PER_HOST == 0)
        changes["guards"] = Guards(accelerator_print=local_main, logger=main, on_main=main, on_local_main=local_main)
    if rank.data:
        rows = len(rank.data.samples)
        changes["data"] = msgspec.structs.replace(
            rank.data,
            samples=tuple(range(number * rows, (number + 1) * rows)),
            dataset_length=count * rows,
            data_parallel_size=count,
        )
    return msgspec.structs.replace(rank, **changes)


def seconds(path: Path) -> tuple[float, str]:
    """Return the time to read, judge and render an evidence file both ways, and the verdict."""
    checks = load_checks()
    began = time.perf_counter()
    diagnosis = diagnose(read_evidence(path), checks)
    render_terminal(diagnosis, width=100, color=False, verbosity=0)
    render_json(diagnosis)
    return time.perf_counter() - began, diagnosis.verdict.value


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("evidence", type=Path)
    parser.add_argument("--ranks", type=int, nargs="*", default=[128, 256, 512, 1024, 2048])
    options = parser.parse_args()
    real = read_evidence(options.evidence)
    before: tuple[int, float] | None = None
    for count in options.ranks:
        with TemporaryDirectory() as folder:
            path = write_evidence(Path(folder), grown(real, count))
            took, verdict = min(seconds(path) for _ in range(3))
            size_mb = path.stat().st_size / 1e6
        growth = f", growth {took / before[1] / (count / before[0]):.2f} of linear" if before else ""
        print(f"{count} ranks: {took:.2f} s to read, judge and render, {size_mb:.1f} MB, {verdict}{growth}")
        before = (count, took)


if __name__ == "__main__":
    main()
