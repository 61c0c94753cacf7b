"""What logs tell: real ones of two gloo ranks that died in many ways, and the formats of others."""

import io
from pathlib import Path

import pytest

from accel_doctor.logs.cause import explain
from accel_doctor.logs.naming import Cause
from accel_doctor.logs.scan import read_log
from log_texts import QUIET, SICK, UNCLEAR, steps, table, traceback, watchdog

LOGS = Path(__file__).parents[2] / "logs"
"""Of torch 2.13 and accelerate 1.15, as they came out; paths are shortened."""

REAL = {
    "raise": ("HNG003", (1,), "/home/me/train.py:36: ValueError: bad sample 37"),
    "tee_raise": ("HNG003", (1,), "/home/me/train.py:36: ValueError: bad sample 37"),
    "index": ("HNG003", (0, 1), "train.py:72: IndexError: Target 2 is out of bounds."),
    "worker_raises": ("HNG003", (1,), "train.py:17: KeyError: 'no label for sample 41'"),
    "kill": ("HNG004", (1,), "signal 9, SIGKILL"),
    "segv": ("HNG004", (1,), "segmentation fault"),
    "abort": ("HNG004", (1,), "SIGABRT"),
    "hard_exit": ("RNK001", (1,), "exit code 7"),
    "worker_killed": ("RNK001", (1,), "exit code 1"),
    "memory": ("ENV006", (1,), "no host memory for 8589934592 bytes"),
    "nofile": ("ENV004", (1,), "file descriptors"),
    "disk": ("CKP008", (0,), "a full or flaky disk"),
    "corrupt": ("CKP006", (1,), "cut or damaged"),
    "missing_keys": ("CKP006", (0, 1), "into Sequential"),
    "unused": ("GRD006", (0, 1), "got no gradient"),
    "nan": ("GRD012", (1, 0), "not finite"),
    "sleep": ("HNG001", (1,), "did not come to the collective in which rank 0 waited"),
    "uneven": ("NET007", (), "rank 0 at /home/me/train.py:64; rank 1 at /home/me/train.py:79"),
    "shapes": ("NET007", (), "another size"),
    "port_torchrun": ("LCH009", (), "29777"),
    "port_accelerate": ("LCH009", (), "29777"),
    "gai": ("LCH010", (), "node[01-02]"),
    "refused": ("LCH010", (), "127.0.0.1"),
    "clients": ("RNK001", (), "1 of 2 joined"),
    "rdzv_timeout": ("RNK001", (), "rendezvous"),
    "ifname": ("NET005", (0,), "ib9"),
}


def told(data: bytes | str) -> Cause | str:
    log, cut = read_log("run.log", io.BytesIO(data.encode() if isinstance(data, str) else data))
    assert not cut
    return explain(log)


def named(data: bytes | str) -> Cause:
    cause = told(data)
    assert isinstance(cause, Cause), cause
    return cause


@pytest.mark.parametrize("name", REAL)
def test_a_real_log_names_the_first_rank_and_its_cause(name: str) -> None:
    check, ranks, words = REAL[name]
    cause = named((LOGS / f"{name}.log").read_bytes())
    assert (cause.check, cause.ranks) == (check, ranks)
    assert words in cause.message


def test_every_real_log_is_looked_at() -> None:
    assert {p.stem for p in LOGS.glob("*.log")} == {*REAL, "ok"}


def test_a_real_healthy_log_is_silent() -> None:
    assert told((LOGS / "ok.log").read_bytes()) == "nothing in it tells of a failure"


@pytest.mark.parametrize("name", SICK)
def test_a_known_format_names_the_first_rank_and_its_cause(name: str) -> None:
    cause = named(SICK[name].text)
    assert (cause.check, cause.ranks) == (SICK[name].check, SICK[name].ranks)
    assert SICK[name].says in cause.message


@pytest.mark.parametrize("name", QUIET)
def test_a_healthy_log_with_alarming_words_is_silent(name: str) -> None:
    why = told(QUIET[name])
    assert isinstance(why, str)
    assert why.startswith("nothing in it tells of a")


@pytest.mark.parametrize("name", UNCLEAR)
def test_echoes_alone_name_nobody(name: str) -> None:
    why = told(UNCLEAR[name])
    assert isinstance(why, str)
    assert why.startswith("unclear: ")


def test_the_place_is_that_of_the_error_and_the_survivors_stand_beside_it() -> None:
    text = traceback("KeyError: 'x'", prefix="[rank1]: ") + traceback("ConnectionError: y", prefix="[rank0]: ")
    cause = named(steps(0, 3) + text)
    assert cause.line == 3 + 8
    assert cause.evidence == ("rank 0 failed later, as a consequence (line 19): ConnectionError: y",)


def test_a_launcher_that_blames_a_survivor_is_contradicted() -> None:
    cause = named(SICK["torchelastic blames a survivor"].text)
    assert any(e.startswith("mind: torchelastic names rank 0") for e in cause.evidence)


@pytest.mark.parametrize("name", [n for n in REAL if REAL[n][1]])
def test_lines_marked_by_srun_change_nothing(name: str) -> None:
    rows = (LOGS / f"{name}.log").read_text().splitlines()
    marked = "".join(f"{row[5] if row.startswith('[rank') else 0}: {row}\n" for row in rows)
    cause = named("1: starts\n0: starts\n" + marked)
    assert (cause.check, set(cause.ranks)) == (REAL[name][0], set(REAL[name][1]))


@pytest.mark.parametrize("name", [n for n in REAL if REAL[n][1]])
@pytest.mark.parametrize(
    "before",
    [
        "2026-12-01T00:55:57.123456789Z stderr F ",
        "[2026-12-01 00:55:57,123] ",
        "\x1b[33m\x1b[0m",
        "trainer-0  | ",
        "node-1: ",
    ],
)
def test_time_colour_and_host_before_each_line_change_nothing(name: str, before: str) -> None:
    rows = (LOGS / f"{name}.log").read_text().splitlines()
    cause = named("".join(f"{before}{row}\n" for row in rows))
    assert (cause.check, cause.ranks) == REAL[name][:2]


def test_logs_of_two_hosts_one_after_the_other_are_told_by_time() -> None:
    late = "".join(f"2026-11-20 10:15:4{n} {t}\n" for n, t in enumerate(traceback("ValueError: late").splitlines()))
    early = "".join(f"2026-11-20 10:15:0{n} {t}\n" for n, t in enumerate(traceback("ValueError: early").splitlines()))
    assert "ValueError: early" in named(late + early).message
    assert "ValueError: early" in named(early + late).message


def test_the_table_gives_a_killed_process_its_rank() -> None:
    kernel = "[12.345678] Out of memory: Killed process 4003 (python3) total-vm:1kB, anon-rss:9kB\n"
    assert named(table((3, 1), root=(0, 1)) + kernel).ranks == (3,)


def test_a_group_that_only_some_lines_name_parts_no_ranks() -> None:
    standing = (
        "[rank0]:[E1120 10:15:27.000000 ProcessGroupNCCL.cpp:1537] [PG 0 (default_pg) Rank 0] Timeout at NCCL work: 7, "
        "last enqueued NCCL work: 7, last completed NCCL work: 6.\n"
    )
    bare = "".join(
        f"[rank{rank}]:[E1120 10:15:26.000000 ProcessGroupNCCL.cpp:563] [Rank {rank}] Watchdog caught collective "
        f"operation timeout: WorkNCCL(SeqNum={number}, OpType={op}, NumelIn=4, NumelOut=4, Timeout(ms)=600000) ran for "
        "600034 milliseconds before timing out.\n"
        for rank, number, op in ((0, 7, "ALLREDUCE"), (1, 6, "BROADCAST"), (2, 7, "ALLREDUCE"))
    )
    cause = named(bare + standing)
    assert "ranks 0 and 2 waited in ALLREDUCE #7" in cause.message


FOUR = "world_size = 4\n"
CLOSING = "W1120 10:15:39.1 7 torch/distributed/elastic/api.py:897] Sending process {} closing signal SIGTERM\n"
WAITS: dict[str, tuple[str, tuple[int, ...], str]] = {
    "rank 0 is never seen": ("".join(watchdog(r, 12) for r in (1, 2, 3)), (0,), "rank 0 did not say that it waited"),
    "a rank above the highest, by the world size": (FOUR + "".join(watchdog(r, 12) for r in (0, 1, 2)), (3,), "rank 3"),
    "all of a world of known size": (FOUR + "".join(watchdog(r, 12) for r in range(4)), (), "no missing rank"),
    "all that speak, of a world of unknown size": (
        "".join(watchdog(r, 12) for r in range(3)),
        (),
        "or a rank above 2 that this log does not have",
    ),
    "the launcher ended one more than it saw fail": (
        "".join(watchdog(r, 12) for r in range(2)) + CLOSING.format(4002) + table((1, -6), root=(0, -6)),
        (2,),
        "rank 2",
    ),
    "the launcher ended as many as wait": (
        "".join(watchdog(r, 12) for r in range(2)) + CLOSING.format(4001) + table(root=(0, -6)),
        (),
        "no missing rank",
    ),
    "the log of one host of two": (
        "nranks 16\n" + "".join(watchdog(r, 12) for r in range(8, 16)),
        (),
        "for ranks 0-7 that this log does not have",
    ),
    "the log of one rank of two": ("world_size=2\n" + watchdog(1, 12), (), "for rank 0 that this log does not have"),
    "a quiet rank that the launcher of both ended": (
        watchdog(0, 12) + CLOSING.format(4001) + table(root=(0, -6)),
        (1,),
        "rank 1",
    ),
    "a group of some ranks": (
        "".join(watchdog(r, 88).replace(f"[Rank {r}]", f"[PG ID 1 PG GUID 3(tensor) Rank {r}]") for r in range(2))
        + steps(0, 3, "[rank2]: ")
        + steps(0, 3, "[rank3]: "),
        (),
        "which other ranks belong to that group",
    ),
    "ranks in two groups": (
        "".join(watchdog(r, 12) for r in (0, 1, 3))
        + watchdog(2, 88).replace("[Rank 2]", "[PG ID 1 PG GUID 3(tensor) Rank 0]"),
        (),
        "of another group",
    ),
    "a number of attempts, each with processes of its own": (
        "".join(
            CLOSING.format(4001 + 10 * n)
            + f"failed (exitcode: -6) local_rank: 0 (pid: {4000 + 10 * n}) of binary: python\n"
            for n in range(3)
        )
        + "".join(watchdog(r, 12) for r in range(2)),
        (),
        "no missing rank",
    ),
}


@pytest.mark.parametrize("name", WAITS)
def test_all_came_is_said_only_of_a_world_that_is_known_and_no_absent_host_is_blamed(name: str) -> None:
    text, ranks, words = WAITS[name]
    cause = named(text)
    assert (cause.check, cause.ranks) == ("HNG001", ranks)
    assert words in cause.message
