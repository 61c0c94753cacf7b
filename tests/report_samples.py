"""Diagnoses for tests of reports, over recorded evidence: what a report shows must not change with the catalogue."""

import os
from pathlib import Path

import msgspec

from accel_doctor.check import Finding, Location, Severity
from accel_doctor.diagnose import Diagnosis, Outcome, Result, Verdict
from accel_doctor.evidence import Candidate, Evidence, Rank, Setting
from accel_doctor.evidence.file import read_evidence

GOLDEN = Path(__file__).parent / "golden"
EVIDENCE = GOLDEN / "evidence-v1.json"
NO_GPU = "no device on this machine"


def matches_golden(name: str, text: str) -> bool:
    """Return whether text is what the golden file holds; with UPDATE_GOLDEN=1 it becomes that."""
    path = GOLDEN / name
    if os.environ.get("UPDATE_GOLDEN"):
        path.write_text(text)
    return path.read_text() == text


def result(check_id: str, name: str, outcome: Outcome = Outcome.PASSED, reason: str = "", *found: Finding) -> Result:
    return Result(
        id=check_id, name=name, invariant="equal", title="…", outcome=outcome, reason=reason, findings=tuple(found)
    )


def diagnosis(evidence: Evidence, verdict: Verdict, *results: Result, why: tuple[str, ...] = ()) -> Diagnosis:
    return Diagnosis(
        evidence=evidence,
        verdict=verdict,
        exit_code={Verdict.PASSED: 0, Verdict.FAILED: 1, Verdict.INCOMPLETE: 2}[verdict],
        results=tuple(sorted(results, key=lambda r: r.id)),
        why_incomplete=why,
        doctor_version="0.1.0",
    )


def recorded(**changes: object) -> Evidence:
    return msgspec.structs.replace(read_evidence(EVIDENCE), **changes)


PASSED = (
    result("RNK001", "missing-rank"),
    result("RNK005", "frozen-rank"),
    result("LCH002", "fewer-ranks-than-requested"),
    result("LCH003", "disconnected-ranks"),
    result("DAT003", "uneven-batches"),
    result("NET001", "wrong-collective-result"),
    result("ENV001", "version-skew"),
    result("SPD001", "straggler"),
)
SKIPPED = (
    result("GPU001", "idle-gpu", Outcome.SKIPPED, NO_GPU),
    result("GPU004", "throttled-gpu", Outcome.SKIPPED, NO_GPU),
    result("GPU008", "occupied-gpu", Outcome.SKIPPED, NO_GPU),
    result("SHD001", "no-wrap-policy", Outcome.SKIPPED, "the launch does not ask for FSDP"),
    result("CKP007", "slow-checkpoint-storage", Outcome.SKIPPED, "give --checkpoint-dir"),
)
SLOW_NOTE = Finding(
    message="all_reduce reaches 0.65 GB/s busbw at 1 MiB over 2 gloo ranks; no reference says what it should",
    severity=Severity.NOTE,
    values={"busbw_gb_s": 0.65},
    fix="say what you expect with --min-bus-bandwidth",
)


def healthy_pair() -> Diagnosis:
    return diagnosis(
        recorded(),
        Verdict.PASSED,
        *PASSED,
        *SKIPPED,
        result("DAT001", "unsharded-loader"),
        result("DAT004", "wrong-effective-batch"),
        result("GRD004", "diverged-replicas"),
        result("NET002", "slow-all-reduce", Outcome.PASSED, "", SLOW_NOTE),
    )


UNSHARDED = Finding(
    message="Ranks 0 and 1 fetched 6 of 6 samples in common",
    seen="rank 0: 0, 1, 2, 3, 4, 5; rank 1: 0, 1, 2, 3, 4, 5",
    wanted="no sample on two ranks",
    values={"common_samples": 6, "samples": 6},
    fix="pass the loader through accelerator.prepare, or give it a DistributedSampler",
    command="accelerate launch --multi_gpu --num_processes 2 --mixed_precision bf16 train.py --lr 1e-4 --epochs 3",
    ranks=(0, 1),
    host="ws1",
    location=Location(path="train.py", line=41, column=5),
    evidence=(
        "mind: steps per epoch halve, the effective batch doubles",
        "DAT004 wrong-effective-batch: 8 rows a step instead of 4",
        "GRD004 diverged-replicas: parameters differ after step 0",
    ),
)
FEW_FILES = Finding(
    message="RLIMIT_NOFILE is 256; 2 ranks with 8 workers each need about 1200",
    severity=Severity.WARNING,
    seen="256",
    wanted="1200",
    values={"open_files": 256, "needed": 1200},
    fix="raise the limit",
    command="ulimit -n 65536",
    host="ws1",
)


def one_cause() -> Diagnosis:
    """One failing cause that carries two consequences, and a warning beside it."""
    return diagnosis(
        recorded(),
        Verdict.FAILED,
        *PASSED,
        *SKIPPED,
        result("DAT001", "unsharded-loader", Outcome.FAILED, "", UNSHARDED),
        result("DAT004", "wrong-effective-batch", Outcome.SKIPPED, "a consequence of DAT001"),
        result("GRD004", "diverged-replicas", Outcome.SKIPPED, "a consequence of DAT001"),
        result("ENV004", "few-open-files", Outcome.WARNED, "", FEW_FILES),
    )


def incomplete() -> Diagnosis:
    ranks = tuple(msgspec.structs.replace(r, compute=None, sweep=None) for r in recorded().world)
    return diagnosis(
        recorded(cut="deadline", ranks=ranks),
        Verdict.INCOMPLETE,
        *PASSED[:4],
        *SKIPPED,
        result("NET001", "wrong-collective-result", Outcome.SKIPPED, "not seen on rank 0, rank 1"),
        result("SPD001", "straggler", Outcome.BROKEN, "ZeroDivisionError: float division by zero"),
        why=(
            "SPD001 is broken: ZeroDivisionError: float division by zero",
            "NET001 was required and not examined",
            "the exam was ended by the deadline",
        ),
    )


def single_rank() -> Diagnosis:
    one = recorded().world[0]
    assert one.group
    assert one.data
    alone = msgspec.structs.replace(
        one,
        group=msgspec.structs.replace(one.group, world_size=1, device="cuda:0", backend="nccl"),
        data=msgspec.structs.replace(one.data, data_parallel_size=1, rows_per_step=(2, 2)),
        sweep=None,
    )
    return diagnosis(
        recorded(ranks=(alone,), launch=alone_launch()),
        Verdict.PASSED,
        *(r for r in PASSED if r.id[:3] in ("RNK", "LCH", "ENV")),
        result("DAT004", "wrong-effective-batch"),
        result("DAT001", "unsharded-loader", Outcome.SKIPPED, "one rank"),
        result("GRD004", "diverged-replicas", Outcome.SKIPPED, "one rank"),
        result("NET002", "slow-all-reduce", Outcome.SKIPPED, "one rank"),
    )


def alone_launch() -> object:
    launch = recorded().launch
    assert launch
    flag = Candidate(value=1, source="flag --num_processes")
    file = Candidate(value=2, source="conf/train.yaml:7")
    settings = {
        "num_processes": Setting(value=1, source="flag --num_processes", candidates=(flag, file)),
        "num_machines": Setting(value=1, source="conf/train.yaml:8"),
        "mixed_precision": Setting(value="bf16", source="conf/train.yaml:9"),
        "fsdp_reshard_after_forward": Setting(
            value=True,
            source="conf/train.yaml:12",
            reaches_ranks=False,
            note="FSDP version 1 takes fsdp_sharding_strategy instead",
        ),
    }
    argv = ("python", "-m", "accelerate.commands.launch", "--config_file", "conf/train.yaml", "--num_processes", "1")
    return msgspec.structs.replace(
        launch, argv=argv, settings=settings, chosen_by="user", assigned={}, asked_processes=1, strategy="NONE"
    )


def many_ranks(number: int) -> tuple[Rank, ...]:
    """Return ranks made from the recorded ones, on 8 to a host."""
    made = recorded().world
    ranks = []
    for index in range(number):
        twin = made[index % 2]
        assert twin.group
        assert twin.data
        group = msgspec.structs.replace(twin.group, rank=index, local_rank=index % 8, world_size=number)
        data = msgspec.structs.replace(twin.data, data_parallel_size=number)
        ranks.append(
            msgspec.structs.replace(
                twin, pid=index + 1000, rank=index, host=f"node{index // 8}", group=group, data=data
            )
        )
    return tuple(ranks)
