"""Several files of one run, read together: whose each is, and which failure came first."""

import io
import json
from typing import IO

import pytest

from accel_doctor.logs.cause import explain
from accel_doctor.logs.errorfile import told_by
from accel_doctor.logs.files import Place, at, file_of, in_order, place_of
from accel_doctor.logs.naming import Cause
from accel_doctor.logs.scan import read_files
from log_texts import LOST, steps, table, traceback, watchdog


def told(files: dict[str, str]) -> Cause | str:
    def opened(path: str) -> IO[bytes]:
        return io.BytesIO(files[path].encode())

    log, cuts = read_files("run", in_order(files), opened)
    assert not cuts
    return explain(log)


def stamped(text: str, clock: str) -> str:
    return "".join(f"2026-11-20 {clock} {line}\n" for line in text.splitlines())


OWN, OTHER = traceback("ValueError: bad sample 37"), traceback("KeyError: 'mask'", line=57)
RUN = "run/none_x1/attempt_0"
CASES: dict[str, tuple[dict[str, str], str, tuple[int, ...], str]] = {
    "the rank is that of the path": ({"rank0.log": traceback(LOST), "rank1.log": OWN}, "HNG003", (1,), "bad sample 37"),
    "torchrun's directories": (
        {f"{RUN}/0/stderr.log": traceback(LOST), f"{RUN}/1/stderr.log": OWN, f"{RUN}/1/stdout.log": steps(0, 9)},
        "HNG003",
        (1,),
        "bad sample 37",
    ),
    "marked lines tell what rank a local one is": (
        {f"{RUN}/0/stderr.log": "[rank8]: ready\n" + OWN, f"{RUN}/1/stderr.log": "[rank9]: ready\n" + traceback(LOST)},
        "HNG003",
        (8,),
        "bad sample 37",
    ),
    "the early one of two, by time, not by the order of the files": (
        {"rank0.log": stamped(OTHER, "10:15:40"), "rank1.log": stamped(OWN, "10:15:12")},
        "HNG003",
        (1,),
        "bad sample 37",
    ),
    "the launcher saw one first": (
        {"launcher.log": table((0, 1), root=(1, 1)), "rank0.log": OTHER, "rank1.log": OWN},
        "HNG003",
        (1,),
        "bad sample 37",
    ),
    "all failed of the same": ({"rank0.log": OWN, "rank1.log": OWN, "rank2.log": OWN}, "HNG003", (0, 1, 2), "alike"),
    "the last attempt counts": (
        {f"{RUN}/0/stderr.log": OTHER, f"{RUN[:-1]}1/1/stderr.log": OWN, f"{RUN[:-1]}1/0/stderr.log": traceback(LOST)},
        "HNG003",
        (1,),
        "bad sample 37",
    ),
    "a watchdog's words in each file, an error in the one that is missing": (
        {f"rank{r}.log": watchdog(r, 12) for r in range(3)} | {"rank3.log": OWN},
        "HNG003",
        (3,),
        "bad sample 37",
    ),
    "a rank whose file has nothing of it": (
        {f"rank{r}.log": watchdog(r, 12) for r in range(1, 4)} | {"rank0.log": "step 3\n"},
        "HNG001",
        (0,),
        "rank 0 did not say",
    ),
    "a survivor's error after its own watchdog": (
        {"rank0.log": watchdog(0, 12) + OWN, "rank1.log": watchdog(1, 12), "rank2.log": "step 3\n"},
        "HNG001",
        (2,),
        "rank 2 did not say",
    ),
    "a killed rank, and errors of the others": (
        {"launcher.log": table((0, 1), root=(1, -9)), "rank0.log": OTHER, "rank2.log": OWN, "rank1.log": "step 3\n"},
        "HNG004",
        (1,),
        "SIGKILL",
    ),
    "one file of many ranks, whatever its name": (
        {"rank0.log": traceback(LOST, prefix="[rank2]: ") + "[rank1]: x\n" + OWN, "rank1.log": "step 3\n"},
        "HNG003",
        (),
        "bad sample 37",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_the_first_failure_of_all_files_is_named(name: str) -> None:
    files, check, ranks, words = CASES[name]
    cause = told(files)
    assert isinstance(cause, Cause), cause
    assert (cause.check, cause.ranks) == (check, ranks)
    assert words in cause.message


@pytest.mark.parametrize(
    "files",
    [
        {"rank0.log": OTHER, "rank1.log": OWN},
        {"rank0.log": stamped(OTHER, "10:15:12"), "rank1.log": OWN},
        {"rank0.log": stamped(OTHER, "10:15:12"), "rank1.log": stamped(OWN, "10:15:12")},
        {"rank0.log": stamped(OTHER, "10:15:12").replace(" Trace", "Z Trace"), "a.log": OWN},
    ],
)
def test_which_of_two_came_first_is_unclear_without_times(files: dict[str, str]) -> None:
    why = told(files)
    assert isinstance(why, str)
    assert why.startswith("unclear: several files tell of a failure of their own")
    assert "rank0.log:8: " in why


def error_file(seconds: int, text: str) -> str:
    body = {"message": "x", "extraInfo": {"py_callstack": text, "timestamp": str(seconds)}}
    return told_by(io.BytesIO(json.dumps({"message": body}).encode())).decode()


def test_an_error_file_has_the_time_of_its_process() -> None:
    early, late = error_file(1_790_000_000, OWN), error_file(1_790_000_009, OTHER)
    assert early.startswith("2026-09-21T14:13:20Z Traceback")
    cause = told({f"{RUN}/0/stderr.log": OTHER, f"{RUN}/0/error.json": late, f"{RUN}/1/stderr.log": OWN,
                  f"{RUN}/1/error.json": early})  # fmt: skip
    assert isinstance(cause, Cause), cause
    assert cause.ranks == (1,)
    assert told_by(io.BytesIO(b"no json")) == b"no json"
    assert told_by(io.BytesIO(b'{"message": 3}')) == b'{"message": 3}'


@pytest.mark.parametrize(
    ("path", "place"),
    [
        ("logs/rank0.log", Place(rank=0)),
        ("logs/train.rank-12.err", Place(rank=12)),
        ("logs/global_rank_3/stderr.log", Place(rank=3)),
        ("logs/local_rank2.log", Place(local_rank=2)),
        ("d/run_x/attempt_1/3/stdout.log", Place(local_rank=3, attempt=1, run="d/run_x/")),
        ("logs/lora_rank16.log", Place()),
        ("logs/frank3.log", Place()),
        ("logs/train.log", Place()),
    ],
)
def test_a_path_tells_whose_its_lines_are(path: str, place: Place) -> None:
    assert place_of(path) == place


def test_one_file_alone_is_of_a_rank_only_if_its_whole_name_says_so() -> None:
    assert place_of("logs/rank3.log", alone=True).rank == 3
    assert place_of("logs/sweep_rank3.log", alone=True).rank is None


def test_files_come_by_attempt_and_number_and_error_files_last() -> None:
    files = ["a/attempt_1/0/stderr.log", "a/attempt_0/10/stderr.log", "a/attempt_0/9/error.json", "a/attempt_0/9/x.log"]
    assert in_order(files) == [files[3], files[2], files[1], files[0]]


def test_a_place_is_that_in_its_own_file() -> None:
    log, _ = read_files("run", ["a.log", "empty.log", "b.log"], lambda p: io.BytesIO(b"" if "e" in p else b"x\ny\n"))
    assert [at(log, line) for line in (1, 2, 3, 4)] == ["a.log:1", "a.log:2", "b.log:1", "b.log:2"]
    alone, _ = read_files("a.log", ["a.log"], lambda _: io.BytesIO(b"x\n"))
    assert file_of(alone, 1) is None
    assert at(alone, 1) == "line 1"
