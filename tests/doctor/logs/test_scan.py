"""How logs are read: of any size, encoding and kind, each line once."""

import gzip
import io
import random
import re
import time
import tracemalloc

import pytest

from accel_doctor.evidence.log import Log
from accel_doctor.logs.cause import explain
from accel_doctor.logs.lines import BLOCK_BYTES
from accel_doctor.logs.naming import Cause
from accel_doctor.logs.scan import read_log
from accel_doctor.logs.signatures import by_needle, find, signatures
from accel_doctor.logs.speakers import labelled, said
from accel_doctor.logs.telling import TELLING, redacted
from log_texts import LOST, QUIET, SICK, steps, table, traceback

DEATH = traceback("ValueError: bad sample 37", prefix="[rank1]: ") + table((0, -15), root=(1, 1))


def read(data: bytes) -> Log:
    log, cut = read_log("run.log", io.BytesIO(data))
    assert not cut
    return log


def cause_of(data: bytes) -> Cause:
    cause = explain(read(data))
    assert isinstance(cause, Cause), cause
    return cause


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16", "utf-16-le", "utf-16-be", "utf-32"])
def test_every_encoding_tells_the_same(encoding: str) -> None:
    cause = cause_of(("größe\n" + steps(0, 20) + DEATH).encode(encoding))
    assert (cause.check, cause.ranks, cause.line) == ("HNG003", (1,), 29)


def test_encodings_may_change_within_a_log() -> None:
    assert cause_of("größe\n".encode("latin-1") * 50 + DEATH.encode()).line == 58


def test_gzip_is_read_and_a_cut_one_as_far_as_it_goes() -> None:
    packed = gzip.compress((steps(0, 20_000) + DEATH).encode())
    assert cause_of(packed).check == "HNG003"
    log, cut = read_log("run.log.gz", io.BytesIO(packed[: len(packed) // 2]))
    assert cut
    assert log.lines > 100


def test_a_line_is_counted_by_its_line_feed_and_carriage_returns_write_over_it() -> None:
    bar = "".join(f"\r {n}%|##| {n}/100 [00:01<00:09, 9.1it/s]" for n in range(100))
    cause = cause_of(f"{bar}{DEATH}{bar}\n".encode())
    assert (cause.ranks, cause.line) == ((1,), 8)


def test_two_ranks_within_one_line() -> None:
    text = "step 3 loss 1.0Traceback (most recent call last):\n" + DEATH.split("\n", 1)[1].replace("[rank1]: ", "")
    assert cause_of(text.encode()).check == "HNG003"


def test_interleaved_tracebacks_keep_to_their_ranks() -> None:
    one = traceback("ValueError: of one", prefix="[rank1]: ", line=41).splitlines()
    two = traceback(LOST, prefix="[rank0]: ", line=57).splitlines()
    mixed = "\n".join(line for pair in zip(one, two, strict=True) for line in pair)
    cause = cause_of(mixed.encode())
    assert cause.ranks == (1,)
    assert "train.py:41: ValueError: of one" in cause.message


def test_interleaved_tracebacks_without_a_mark_give_no_place() -> None:
    one, two = traceback("ValueError: a").splitlines(), traceback("ValueError: a", line=57).splitlines()
    mixed = "\n".join(line for pair in zip(one, two, strict=True) for line in pair)
    cause = cause_of((mixed + "\n" + table((0, 1), root=(1, 1))).encode())
    assert "ValueError: a" in cause.message
    assert ".py:" not in cause.message


@pytest.mark.parametrize("seed", range(3))
def test_rubbish_ends_with_an_answer(seed: int) -> None:
    log = read(random.Random(seed).randbytes(300_000))  # noqa: S311 - rubbish, no secret
    assert log.binary_pct > 10
    assert isinstance(explain(log), str)


def test_an_empty_log_and_one_without_a_line_feed() -> None:
    assert read(b"").lines == 0
    assert read(b"\0" * 3_000_000).lines == 1
    assert cause_of(DEATH.rstrip("\n").encode()).ranks == (1,)


def test_one_line_of_many_megabytes_does_not_hide_what_follows() -> None:
    assert cause_of(b"x" * (5 * BLOCK_BYTES) + b"\n" + DEATH.encode()).ranks == (1,)
    bars = b"\r 1%|#| 1/100 [00:01<00:09, 9.1it/s, error=0.1]" * 100_000
    assert cause_of(bars + b"\n" + DEATH.encode()).line == 9


@pytest.mark.parametrize("cut", [1, 7, 100, 1000])
def test_a_death_at_the_edge_of_a_block_is_found(cut: int) -> None:
    filler = b"step 1 loss 0.5\n" * (BLOCK_BYTES // 16)
    assert cause_of(filler[: BLOCK_BYTES - cut] + b"\n" + DEATH.encode()).ranks == (1,)


def large(lines: int, *, alarming: bool) -> bytes:
    row = b"2026-12-01 00:57:34 INFO step 12345 loss 0.4311 lr 1.0e-4 grad_norm 0.83 tokens/s 12345.2\n"
    noisy = b"2026-12-01 00:57:34 INFO retry: Error while sending metrics, loss 0.4311 failed timeout\n"
    return (noisy if alarming else row) * lines + DEATH.encode()


@pytest.mark.parametrize("alarming", [False, True])
def test_time_grows_with_the_log_and_memory_does_not(*, alarming: bool) -> None:
    def seconds(lines: int) -> float:
        data = large(lines, alarming=alarming)
        began = time.process_time()
        assert cause_of(data).ranks == (1,)
        return time.process_time() - began

    lines = 5_000 if alarming else 12_000
    small = min(seconds(lines) for _ in range(3))
    assert min(seconds(4 * lines) for _ in range(2)) < 7 * small


class Endless(io.RawIOBase):
    """A log of some blocks that is nowhere whole; every line of it is new, and each block has one that tells."""

    def __init__(self, blocks: int) -> None:
        self.left, self.line = blocks, 0

    def read(self, _: int = -1) -> bytes:
        if not self.left:
            return b""
        self.left -= 1
        self.line += 9000
        rows = (
            b"step %d loss 0.4311 lr 1.0e-4 grad_norm 0.83 tokens/s 12345.2 and more words to fill it\n" % n
            for n in range(9000)
        )
        return b"".join(rows) + b"[rank%d]: %s_Error: new\n" % (self.line % 999, bytes(str(self.line), "ascii"))


def test_memory_does_not_grow_with_the_log() -> None:
    tracemalloc.start()
    try:
        kept = []
        for blocks in (2, 8):
            tracemalloc.reset_peak()
            log, _ = read_log("endless", Endless(blocks))  # type: ignore[arg-type]
            kept.append(tracemalloc.get_traced_memory()[1])
            assert log.lines == blocks * 9001
    finally:
        tracemalloc.stop()
    assert kept[1] < 1.2 * kept[0]


def test_no_needle_has_a_digit_since_lines_that_differ_in_numbers_alone_are_read_once() -> None:
    assert not [n for s in signatures().values() for n in s.needles if re.search(r"\d", n)]


def test_lines_that_differ_in_numbers_alone_all_count() -> None:
    quiet = "".join(f"Error rate of part {n} failed to fall\n" for n in range(50))
    told = "".join(f"[rank{n}]: RuntimeError: CUDA error: an illegal memory access was encountered\n" for n in range(9))
    assert cause_of((quiet + told).encode()).ranks == tuple(range(9))


def test_every_text_that_tells_is_among_the_lines_that_are_read_closely() -> None:
    for name, told in SICK.items():
        known = [line for line in told.text.splitlines() if find(line)]
        assert known or any(word in told.text for word in TELLING), name


@pytest.mark.parametrize("signature", signatures().values(), ids=lambda s: s.id)
def test_a_signature_is_whole(signature: object) -> None:
    (known,) = [s for s in by_needle()[1] if s is signature]
    assert known.role in ("root", "symptom", "echo")
    assert known.scope in ("rank", "machine", "world")
    assert known.seen_in
    assert all(known.needles)
    assert known.regex.groups >= 0
    assert known.role == "echo" or (known.check and (known.fix or known.role == "symptom"))
    assert not known.regex.search("")


def test_no_signature_knows_a_line_of_a_healthy_run() -> None:
    lines = [line for text in QUIET.values() for line in text.splitlines() if line.startswith("step")]
    assert len(lines) > 100
    assert not [line for line in lines if find(line)]


@pytest.mark.parametrize(
    ("line", "rank", "local_rank", "host", "text"),
    [
        ("[rank3]: hello", 3, None, "", "hello"),
        ("[default3]:hello", None, 3, "", "hello"),
        ("[default1]:[rank9]:   File", 9, 1, "", "  File"),
        ("[1,3]<stderr>:hello", 3, None, "", "hello"),
        ("[1,mpirank:3,algo-1]<stderr>:hello", 3, None, "algo-1", "hello"),
        ("[pod/train-worker-1/pytorch] [rank2]: hello", 2, None, "train-worker-1", "hello"),
        ("(RayTrainWorker pid=7, ip=10.0.0.2) hello", None, None, "10.0.0.2", "hello"),
        ("2026-12-01T00:55:57.1Z stderr F [rank2]: hello", 2, None, "", "hello"),
        ("Dec  1 00:50:34 node-b kernel: NVRM", None, None, "node-b", "NVRM"),
        (
            "worker-1: [rank4]:[E1120 10:15:26.083456 ProcessGroupNCCL.cpp:616] [Rank 4] x",
            4,
            None,
            "worker-1",
            "[Rank 4] x",
        ),
        ("cn-d004 [stderr] [rank14]: hello", 14, None, "", "hello"),
        ("epoch3: loss 1", None, None, "", "epoch3: loss 1"),
        ("0 | model | Net", None, None, "", "0 | model | Net"),
        ("urllib3.exceptions.MaxRetryError: x", None, None, "", "urllib3.exceptions.MaxRetryError: x"),
    ],
)
def test_what_stands_before_a_line_tells_who_wrote_it(
    line: str, rank: int | None, local_rank: int | None, host: str, text: str
) -> None:
    told = said(line)
    assert (told.speaker.rank, told.speaker.local_rank, told.speaker.host, told.text) == (rank, local_rank, host, text)


def test_task_numbers_are_told_from_numbered_lines() -> None:
    assert labelled([f"{n}: x" for n in (1, 0, 3, 2, 0, 1)])
    assert not labelled([f"{n}: x" for n in range(20)])
    assert not labelled(["step 1: x", "0: y", "z"])
    assert not labelled([])


@pytest.mark.parametrize(
    ("text", "world"),
    [
        ("world_size = 8", 8),
        ("tp world size: 2\nWORLD_SIZE=16", 16),
        ("comm 0x1 rank 3 nranks 4 cudaDev 3", 4),
        ("All distributed processes registered. Starting with 2 processes", 2),
        ("Initializing distributed: GLOBAL_RANK: 1, MEMBER: 2/4", 4),
        ("Num processes: 8", 8),
        ("Starting with 100 samples", None),
    ],
)
def test_the_number_of_ranks_is_the_largest_that_is_told(text: str, world: int | None) -> None:
    assert read(text.encode()).world_size == world


def test_credentials_are_left_out() -> None:
    assert "hf_abc" not in redacted("token hf_abcdefghijklmnopqrstuvwx leaked")
    assert redacted("WANDB_API_KEY=0123456789abcdef") == "WANDB_API_KEY=…"
    assert redacted("loss 0.3") == "loss 0.3"
