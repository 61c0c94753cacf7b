"""Measures how judging and rendering grow with the world: evidence of many ranks made from that of a real exam.

    python bench/scale.py RUN_DIR|evidence.json [--ranks 128 256 512 1024 2048]
    python bench/scale.py RUN_DIR|evidence.json --machines [--ranks 4096]

Each rank of the real exam is copied with a rank, a pid and a host of its own, eight ranks a host. Printed is the
time to read, judge and render, and how it grew from one size to the next: 1.0 is linear. With ``--machines`` each
host's part lies in a shared run directory as its doctor would leave it, and what is measured is all that the first
machine does at the end: find, read and merge the parts, write the whole, judge and render it; and its peak memory.
"""

import argparse
import resource
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import msgspec

from accel_doctor.catalogue import load_checks
from accel_doctor.diagnose import diagnose
from accel_doctor.evidence import Ending, Evidence, Guards, Machine, Rank
from accel_doctor.evidence.file import read_evidence, write_evidence
from accel_doctor.exams.world import part, whole
from accel_doctor.launch.roster import BEGIN, MACHINES, Roster
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


def lay_out(shared: Path, real: Evidence, count: int) -> float:
    """Write the parts of ``count`` ranks as their doctors would, and return their megabytes."""
    world = grown(real, count)
    machines = -(-count // PER_HOST)
    size = 0
    for number, host in enumerate(world.hosts or ()):
        folder = shared / MACHINES / f"{host.name}-1"
        folder.mkdir(parents=True)
        (folder / BEGIN).touch()
        machine = Machine(
            id=folder.name, host=host.name, rank=number, rank_source="flag --machine_rank", count=machines, ranks_seen=8
        )
        (folder / "machine.json").write_bytes(msgspec.json.encode(machine))
        ranks = world.by_host[host.name]
        own = msgspec.structs.replace(world, hosts=(host,), ranks=ranks, ending=Ending(exit_code=0))
        size += write_evidence(folder, part(own, machine, "node0")).stat().st_size
    return size / 1e6


def collect(shared: Path) -> None:
    """Do what the first machine does when all parts are there, and print how long it took."""
    checks = load_checks()
    began = time.perf_counter()
    roster = Roster(shared, "node0-1")
    machine, own = roster.machine("node0-1"), roster.part("node0-1")
    if machine is None or own is None:
        raise SystemExit("the first machine's own part cannot be read")
    own = msgspec.structs.replace(own, part_of="", machines=None)
    others = roster.others()
    evidence = whole(own, machine, [(m, roster.part(m.id)) for m in others])
    merged = time.perf_counter()
    write_evidence(shared, evidence)
    diagnosis = diagnose(evidence, checks)
    render_terminal(diagnosis, width=100, color=False, verbosity=0)
    render_json(diagnosis)
    ended = time.perf_counter()
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024 / 1e6
    broken = [r.id for r in diagnosis.results if r.outcome.value == "broken"]
    print(
        f"{merged - began:.2f} s to merge, {ended - merged:.2f} s to write, judge and render, peak {peak_mb:.0f} MB, "
        f"{len(evidence.world)} ranks, {diagnosis.verdict.value}, broken: {broken or 'none'}"
    )


def main() -> None:
    """Print a line for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("evidence", type=Path)
    parser.add_argument("--ranks", type=int, nargs="*", default=[128, 256, 512, 1024, 2048])
    parser.add_argument("--machines", action="store_true", help="merge the parts of machines, too")
    parser.add_argument("--collect", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.collect:
        collect(options.evidence)
        return
    real = read_evidence(options.evidence)
    if options.machines:
        for count in options.ranks:
            with TemporaryDirectory() as folder:
                parts_mb = lay_out(Path(folder), real, count)
                print(
                    f"{count} ranks on {-(-count // PER_HOST)} hosts, {parts_mb:.1f} MB of parts: ", end="", flush=True
                )
                subprocess.run([sys.executable, __file__, folder, "--collect"], check=True)
        return
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
