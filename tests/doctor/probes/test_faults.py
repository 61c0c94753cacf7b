"""Each fault put into real ranks is found by its check, and by no other of those that judge the ranks' probes."""

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

from accel_doctor.catalogue import load_checks
from accel_doctor.check import Finding
from accel_doctor.diagnose import diagnose
from accel_doctor.evidence import Asked, Evidence, ProbeOptions
from accel_doctor.evidence.file import read_evidence, write_evidence
from ranks import Ran, RunRanks

pytestmark = pytest.mark.ranks

QUICK = ProbeOptions(sweep_s=0.02)
BOTH = (0, 1)


def verdicts(evidence: Evidence) -> dict[str, tuple[Finding, ...]]:
    return {r.id: r.findings for r in diagnose(evidence, load_checks()).results if r.findings}


def only(ran: Ran, check_id: str, **changes: object) -> Finding:
    """Return the first finding of the one check that spoke."""
    assert ran.codes == (0, 0), ran.output
    seen = verdicts(replace(ran.evidence, **changes))
    assert list(seen) == [check_id], seen
    return seen[check_id][0]


def test_equal_local_ranks(run_ranks: RunRanks) -> None:
    finding = only(run_ranks(2, environment={1: {"LOCAL_RANK": "0"}}, options=QUICK), "RNK006")
    assert finding.message.startswith("ranks 0 and 1 take themselves for the local main process")


def test_ranks_that_torch_joins_and_accelerate_leaves_alone(run_ranks: RunRanks) -> None:
    alone = {n: {"ACCELERATE_USE_CPU": "false", "ACCELERATE_USE_FSDP": "true"} for n in BOTH}
    ran = run_ranks(2, environment=alone, options=QUICK)
    finding = only(ran, "LCH003")
    assert "torch sees no device, so accelerate leaves torch's process group aside" in finding.evidence
    assert [(r.group.backend, r.sweep.backend) for r in ran.ranks if r.group and r.sweep] == [("gloo", "gloo")] * 2


def test_a_loader_that_was_not_prepared(run_ranks: RunRanks) -> None:
    finding = only(run_ranks(2, sick=dict.fromkeys(BOTH, ("unprepared_loader",)), options=QUICK), "DAT001")
    assert finding.values["shared_samples"] == finding.values["distinct_samples"] == 30
    assert finding.ranks == BOTH


def test_batches_that_end_when_a_rank_has_no_more(run_ranks: RunRanks) -> None:
    finding = only(run_ranks(2, sick=dict.fromkeys(BOTH, ("uneven_batches",)), options=QUICK), "DAT003")
    assert finding.ranks == (1,)
    assert finding.values == {"batches_min": 7, "batches_max": 8, "steps_min": 7, "steps_max": 8}


def test_accumulation_that_the_environment_overrides(run_ranks: RunRanks) -> None:
    override = {n: {"ACCELERATE_GRADIENT_ACCUMULATION_STEPS": "4"} for n in BOTH}
    ran = run_ranks(2, environment=override, options=replace(QUICK, gradient_accumulation_steps=2))
    finding = only(ran, "DAT004", asked=Asked(batch_size=2, gradient_accumulation_steps=2))
    assert finding.values["effective_batch"] == 16
    assert finding.values["expected_batch"] == 8
    assert finding.evidence[0].startswith("ACCELERATE_GRADIENT_ACCUMULATION_STEPS=4 in the ranks")


def test_another_effective_batch_than_expected(run_ranks: RunRanks) -> None:
    ran = run_ranks(2, options=replace(QUICK, batch_size=16, gradient_accumulation_steps=2))
    assert verdicts(replace(ran.evidence, asked=Asked(expect_batch_size=64))) == {}
    finding = only(ran, "DAT004", asked=Asked(expect_batch_size=128))
    assert finding.message.endswith("16 x 2 ranks x 2 accumulation = 64")


def test_gradients_that_never_meet(run_ranks: RunRanks) -> None:
    finding = only(run_ranks(2, sick=dict.fromkeys(BOTH, ("unwrapped_model",)), options=QUICK), "GRD004")
    assert finding.values["step"] == 0
    assert "they were not averaged" in finding.evidence[0]
    assert finding.evidence[1] == "prepare returned ProbeModel"


@pytest.mark.parametrize("op", ["all_reduce", "all_gather", "reduce_scatter", "broadcast"])
def test_a_collective_that_returns_wrong_values_on_one_rank(run_ranks: RunRanks, op: str) -> None:
    finding = only(run_ranks(2, sick={1: ("wrong_collective", op)}, options=QUICK), "NET001")
    assert finding.message.startswith(f"{op} returned wrong values on rank 1")
    assert finding.ranks == (1,)


@pytest.mark.parametrize("error", ["nan", "inf", "-inf"])
def test_a_collective_that_returns_no_number(run_ranks: RunRanks, tmp_path: Path, error: str) -> None:
    ran = run_ranks(2, sick={1: ("wrong_collective", "all_reduce", float(error))}, options=QUICK)
    finding = only(ran, "NET001")
    assert f"rank 1: {error} instead of 3" in finding.message
    assert read_evidence(write_evidence(tmp_path, ran.evidence)).ranks == ran.evidence.ranks


def test_a_bus_bandwidth_below_what_was_asked_for(run_ranks: RunRanks) -> None:
    ran = run_ranks(2, options=ProbeOptions(sweep_s=2.0))
    finding = only(ran, "NET002", asked=Asked(min_bus_bandwidth_gb_s=5000.0))
    assert finding.values["busbw_gb_s"] < 5000
    assert finding.severity.value == "error"


def test_a_rank_that_is_slow_inside_its_small_collectives(run_ranks: RunRanks) -> None:
    finding = only(run_ranks(2, sick={1: ("slow_collective", "all_reduce", 0.05)}, options=QUICK), "NET006")
    assert finding.values["latency_ms"] >= 50


def test_gathering_that_is_far_slower_than_reducing(run_ranks: RunRanks) -> None:
    slow = ("slow_collective", "all_gather", 0.3, 2**20)
    finding = only(run_ranks(2, sick={0: slow}, options=ProbeOptions(sweep_s=1.0)), "NET008")
    assert finding.message.startswith("all_gather reaches")


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs a core for each of two ranks")
def test_a_rank_that_shares_its_core(run_ranks: RunRanks) -> None:
    crowded, own = sorted(os.sched_getaffinity(0))[:2]
    cores = {0: ("crowded_core", own, 0), 1: ("crowded_core", crowded, 2)}
    ran = run_ranks(2, sick=cores, options=QUICK, limit_s=60.0)
    finding = verdicts(ran.evidence)["SPD001"][0]
    assert finding.ranks == (1,)
    assert finding.values["ratio"] > 2.5
    assert finding.severity.value == "warning"


def test_another_version_on_one_rank(run_ranks: RunRanks) -> None:
    finding = only(run_ranks(2, sick={1: ("other_version", "1.2.3")}, options=QUICK), "ENV001")
    assert finding.message.startswith("accelerate differs between ranks: ")
    assert "1.2.3 on rank 1" in finding.message


def test_another_environment_on_one_rank(run_ranks: RunRanks) -> None:
    finding = only(run_ranks(2, environment={1: {"NCCL_BUFFSIZE": "1048576"}}, options=QUICK), "ENV002")
    assert finding.message == "NCCL_BUFFSIZE differs between ranks: unset on rank 0, 1048576 on rank 1"
