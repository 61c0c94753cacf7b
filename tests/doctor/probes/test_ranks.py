"""Probes on real gloo ranks: what they write when all is well, and what is left of it when a rank is not."""

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from accel_doctor.catalogue import load_checks
from accel_doctor.diagnose import diagnose
from accel_doctor.evidence import ProbeOptions, Rank
from accel_doctor.evidence.rank_file import read_now, read_ranks
from ranks import Ran, RunRanks

pytestmark = pytest.mark.ranks

QUICK = ProbeOptions(sweep_s=0.02)
PHASES = ("import", "join", "guards", "prepare", "data", "training", "sweep", "compute", "leave")
PROBES = ("guards", "data", "training", "sweep", "compute")


def probes_of(rank: Rank) -> tuple[str, ...]:
    return tuple(name for name in PROBES if getattr(rank, name) is not None)


def rank_of(ran: Ran, number: int) -> Rank:
    return next(r for r in ran.ranks if r.rank == number)


def test_a_healthy_world_is_seen_whole_and_no_check_speaks(run_ranks: RunRanks) -> None:
    ran = run_ranks(2)
    assert ran.codes == (0, 0), ran.output
    for rank in ran.ranks:
        assert tuple(p.name for p in rank.phases) == PHASES
        assert probes_of(rank) == PROBES
        assert rank.end
        assert rank.end.how == "finished"
        assert rank.versions.keys() >= {"python", "torch", "accelerate"}
        assert rank.cpus == tuple(sorted(os.sched_getaffinity(0)))
        assert rank.threads == 1
        assert rank.compute
        assert len(rank.compute.queued_ms) == len(rank.compute.arrival_ms)
    said = [f"{r.id}: {f.message}" for r in diagnose(ran.evidence, load_checks()).results for f in r.findings]
    assert said == []


def test_a_large_batch_is_counted_whole_and_trained_on_in_part(run_ranks: RunRanks) -> None:
    ran = run_ranks(2, options=ProbeOptions(batch_size=65536, gradient_accumulation_steps=8, sweep_s=0.02))
    assert ran.codes == (0, 0), ran.output
    for rank in ran.ranks:
        assert rank.data
        assert rank.data.rows_per_step == (65536 * 8, 65536 * 8)
        assert rank.training
        assert rank.training.optimizer_steps == 3


def test_what_a_healthy_rank_says_of_its_world(run_ranks: RunRanks) -> None:
    ran = run_ranks(4, options=ProbeOptions(batch_size=3, gradient_accumulation_steps=2, sweep_s=0.3))
    assert ran.codes == (0, 0, 0, 0), ran.output
    last = rank_of(ran, 3)
    assert last.group
    assert (last.group.world_size, last.group.rank, last.group.backend) == (4, 3, "gloo")
    assert (last.group.is_main, last.group.distributed_type) == (False, "MULTI_CPU")
    assert last.data
    assert last.data.rows_per_step == (6, 6, 6, 6)
    assert last.data.dataset_length == 3 * (4 * 8 - 1)
    samples = {s for r in ran.ranks if r.data for s in r.data.samples}
    assert samples == set(range(last.data.dataset_length))
    assert last.training
    assert last.training.optimizer_steps == 3
    assert last.sweep
    assert {t.op for t in last.sweep.timings} == {"all_reduce", "all_gather", "reduce_scatter", "broadcast"}
    assert last.sweep.checked == len(last.sweep.timings)
    assert last.sweep.wrong == ()


def test_guards_are_proved_and_nothing_is_printed(run_ranks: RunRanks) -> None:
    ran = run_ranks(2, options=QUICK)
    counts = [rank_of(ran, n).guards for n in range(2)]
    assert [(g.accelerator_print, g.logger, g.on_main, g.on_local_main) for g in counts if g] == [
        (1, 1, 1, 1),
        (0, 0, 0, 0),
    ]
    assert ran.output == ""


def test_a_rank_alone_has_no_collectives_to_sweep(run_ranks: RunRanks) -> None:
    ran = run_ranks(1, options=QUICK)
    assert ran.codes == (0,), ran.output
    assert probes_of(ran.ranks[0]) == ("guards", "data", "training", "compute")


def test_a_backend_without_reduce_scatter_is_no_crash(run_ranks: RunRanks) -> None:
    missing = dict.fromkeys(range(2), ("missing_collective", "reduce_scatter"))
    ran = run_ranks(2, sick=missing, options=QUICK)
    sweep = rank_of(ran, 1).sweep
    assert sweep
    assert sweep.unsupported == {"reduce_scatter": "Backend gloo does not support reduce_scatter"}
    assert "all_gather" in {t.op for t in sweep.timings}


@pytest.mark.parametrize(("version", "wrapper"), [("1", "FullyShardedDataParallel"), ("2", "FSDPProbeModel")])
def test_shards_are_not_compared_and_the_class_to_wrap_is_there(
    run_ranks: RunRanks, version: str, wrapper: str
) -> None:
    fsdp = {
        "FSDP_VERSION": version,
        "FSDP_AUTO_WRAP_POLICY": "TRANSFORMER_BASED_WRAP",
        "FSDP_TRANSFORMER_CLS_TO_WRAP": "LlamaDecoderLayer,LlamaEmbedding",
        "FSDP_SYNC_MODULE_STATES": "false",
        "FSDP_CPU_RAM_EFFICIENT_LOADING": "false",
    }
    both = dict.fromkeys(range(2), ("sharded_on_cpu",))
    ran = run_ranks(2, sick=both, environment=dict.fromkeys(range(2), fsdp), options=QUICK)
    assert ran.codes == (0, 0), ran.output
    training = rank_of(ran, 0).training
    assert training
    assert (training.wrapper, training.sharded, training.checksums) == (wrapper, True, ())
    assert next(r for r in diagnose(ran.evidence, load_checks()).results if r.id == "GRD004").outcome.value == "skipped"


@pytest.mark.parametrize(("phase", "kept"), [("import", ()), ("prepare", PROBES[:1]), ("sweep", PROBES[:3])])
def test_a_killed_rank_loses_nothing_it_has_seen(run_ranks: RunRanks, phase: str, kept: tuple[str, ...]) -> None:
    ran = run_ranks(2, sick={1: ("killed_in", phase)}, options=QUICK)
    dead = rank_of(ran, 1)
    assert ran.codes[1] == -signal.SIGKILL
    assert probes_of(dead) == kept
    assert dead.phases[-1].name == phase
    assert dead.end is None


def test_a_frozen_rank_leaves_its_peer_waiting_in_a_named_collective(run_ranks: RunRanks) -> None:
    ran = run_ranks(2, sick={1: ("stopped_in", "sweep")}, options=QUICK, limit_s=2.0)
    assert ran.codes == (-signal.SIGTERM, -signal.SIGKILL)
    frozen = rank_of(ran, 1)
    assert frozen.phases[-1].name == "sweep"
    assert frozen.end is None
    now = read_now(ran.run_dir / "ranks" / f"{frozen.host}-{frozen.pid}.now")
    assert now
    assert (now.phase, now.waiting) == ("sweep", "")
    assert frozen.training


def test_sigterm_is_recorded_by_a_rank_that_waits(run_ranks: RunRanks) -> None:
    ran = run_ranks(2, sick={1: ("asleep_in", "sweep")}, options=QUICK, limit_s=2.0)
    assert ran.codes == (-signal.SIGTERM, -signal.SIGTERM)
    ends = [r.end for r in ran.ranks]
    assert [(e.how, e.signal) for e in ends if e] == [("stopped", signal.SIGTERM)] * 2


def test_an_error_in_a_probe_is_evidence_and_ends_the_rank(run_ranks: RunRanks) -> None:
    ran = run_ranks(2, sick={0: ("raising_in", "data", "no such tensor")}, options=QUICK)
    failed = rank_of(ran, 0).end
    assert failed
    assert (failed.how, failed.error, failed.exit_code) == ("error", "ValueError: no such tensor", 1)
    assert failed.last_words[-1] == "ValueError: no such tensor"
    assert ran.codes[0] == 1
    assert "ValueError: no such tensor" in ran.output


def test_leaving_early_is_recorded_with_its_code(run_ranks: RunRanks) -> None:
    ran = run_ranks(2, sick={0: ("leaving_in", "data", 3)}, options=QUICK)
    left = rank_of(ran, 0).end
    assert left
    assert (left.how, left.exit_code, ran.codes[0]) == ("exit", 3, 3)


@pytest.mark.parametrize("orphaned", [ProbeOptions(doctor_pid=2**22 + 1), ProbeOptions(deadline_s=1.0)])
def test_ranks_nobody_waits_for_end_themselves(run_ranks: RunRanks, orphaned: ProbeOptions) -> None:
    options = replace(orphaned, doctor_host=socket.gethostname())
    ran = run_ranks(2, sick={0: ("asleep_in", "sweep")}, options=options, limit_s=10.0)
    assert 75 in ran.codes
    assert all(r.end is None for r in ran.ranks)


def test_load_is_kept_up_for_as_long_as_asked(run_ranks: RunRanks) -> None:
    ran = run_ranks(2, options=replace(QUICK, busy_s=0.5))
    assert ran.codes == (0, 0), ran.output
    for rank in ran.ranks:
        began = {p.name: p.at_s for p in rank.phases}
        assert began["sweep"] - began["training"] >= 0.5


def test_the_launched_module_writes_the_same(tmp_path: Path) -> None:
    """One rank as ``python -m accel_doctor.probes``, in an interpreter of its own."""
    (tmp_path / "ranks").mkdir()
    (tmp_path / "probe.json").write_text("{}")
    kept = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "PYTHONDONTWRITEBYTECODE")}
    command = [sys.executable, "-m", "accel_doctor.probes", str(tmp_path)]
    done = subprocess.run(
        command, env=kept | {"ACCELERATE_USE_CPU": "1"}, timeout=60, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    (rank,) = read_ranks(tmp_path)
    assert rank.rank is None
    assert rank.end
    assert rank.end.how == "finished"
