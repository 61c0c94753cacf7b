"""The judges of jobs that run already, on literal evidence: each cause told right, none of them on a healthy job."""

from collections.abc import Callable, Mapping

import pytest
from msgspec.structs import replace

from accel_doctor.catalogue import load_checks
from accel_doctor.check import Severity
from accel_doctor.diagnose import Diagnosis, Outcome, diagnose
from accel_doctor.evidence import (
    Candidate,
    Evidence,
    Job,
    Launch,
    Look,
    MigDevice,
    Seen,
    Setting,
    Shadow,
    Value,
    Wait,
)
from accel_doctor.evidence.processes import Recorded
from accel_doctor.evidence.run import Frame
from accel_doctor.reports.terminal import render
from accel_doctor.testing_attach import (
    ALL_REDUCE,
    BACKWARD,
    BARRIER,
    FETCH,
    SLEEP,
    alone,
    attach_run,
    busy_pair,
    frame,
    gpu_of,
    healthy_seen,
    idle_gpu,
    inner,
    launched,
    looks,
)
from accel_doctor.testing_gpu import idle, load, on_gpu

CHECKS = load_checks()
SPIN: Mapping[str, object] = {"busy_pct": 100.0, "memory_busy_pct": 1.0, "power_w": 122.0}


def judged(evidence: Evidence) -> Diagnosis:
    diagnosis = diagnose(evidence, CHECKS)
    assert not [r for r in diagnosis.results if r.outcome is Outcome.BROKEN], diagnosis.results
    return diagnosis


def speaking(evidence: Evidence) -> dict[str, str]:
    """Return the worst severity of each check that found something."""
    order = ["error", "warning", "note"]
    found = {r.id: [f.severity.value for f in r.findings] for r in judged(evidence).results if r.findings}
    return {check: min(severities, key=order.index) for check, severities in found.items()}


def said(evidence: Evidence) -> str:
    return render(judged(evidence), width=200, color=False, verbosity=0)


def waiting(rank: int, stack: tuple[Frame, ...], **changes: object) -> Seen:
    seconds = changes.pop("seconds", 6.0)
    wait, text, state = changes.pop("wait", None), changes.pop("text", ""), changes.pop("state", "")
    assert isinstance(seconds, float)
    assert isinstance(text, str)
    assert isinstance(state, str)
    assert wait is None or isinstance(wait, Wait)
    return healthy_seen(rank, looks=looks(stack, seconds=seconds, wait=wait, text=text, state=state), **changes)


def settled(name: str, value: Value, source: str, **more: object) -> Launch:
    setting = Setting(value=value, source=source, candidates=(Candidate(value=value, source=source),))
    launch = Launch(launcher="accelerate", argv=("accelerate", "launch", "train.py"), settings={name: setting})
    return replace(launch, asked_processes=1, script=("train.py",), **more)


def one_of_accelerate(source: str) -> Job:
    seen = replace(alone().ranks[0], environment={})
    typed = ("accelerate", "launch", "train.py")
    return replace(alone(), ranks=(seen,), how="accelerate", typed=typed, launch=settled("num_processes", 1, source))


def test_a_healthy_job_raises_nothing() -> None:
    assert speaking(attach_run(launched(), devices=busy_pair())) == {}
    assert judged(attach_run(launched(), devices=busy_pair())).exit_code == 0


def test_a_healthy_job_without_devices_raises_nothing() -> None:
    ranks = [healthy_seen(i, devices=(), device_bytes={}) for i in range(2)]
    assert speaking(attach_run(launched(*ranks))) == {}


def test_plain_python_beside_a_free_gpu() -> None:
    evidence = attach_run(alone(), devices=(gpu_of(0, 5000), idle_gpu()))
    assert speaking(evidence) == {"GPU001": "error"}
    text = said(evidence)
    assert "why    LCH001 not-launched: 5000 was started by `python train.py --lr 1e-4`; WORLD_SIZE is unset" in text
    assert "not    hidden (CUDA_VISIBLE_DEVICES unset) · occupied · faulty" in text
    assert "type   accelerate launch --multi_gpu --num_processes 2 train.py --lr 1e-4" in text


@pytest.mark.parametrize(
    ("other", "expected"),
    [
        (idle_gpu(processes_during=(on_gpu(77, user="ann"),)), {"GPU001": "note"}),
        (idle_gpu(display=True), {"GPU001": "note"}),
        (gpu_of(1, samples=load(), processes_during=(on_gpu(77, user="ann"),)), {"GPU001": "note"}),
        (idle_gpu(ecc_uncorrected=3), {"GPU005": "error"}),
        (idle_gpu(lost=True), {"GPU005": "error"}),
    ],
    ids=["somebody else's", "display", "somebody else's and busy", "failing", "lost"],
)
def test_a_gpu_that_is_not_free_is_no_fault_of_the_launch(other: object, expected: dict[str, str]) -> None:
    assert speaking(attach_run(alone(), devices=(gpu_of(0, 5000), other))) == expected  # type: ignore[arg-type]


def test_a_notebook_is_told_and_not_blamed() -> None:
    job = replace(alone(), how="notebook", typed=("python", "-m", "ipykernel_launcher"))
    assert speaking(attach_run(job, devices=(gpu_of(0, 5000), idle_gpu()))) == {"GPU001": "note"}


def test_a_server_is_left_alone() -> None:
    job = replace(alone(), how="server", typed=("vllm", "serve"))
    assert speaking(attach_run(job, devices=(gpu_of(0, 5000), idle_gpu()))) == {}


def test_one_process_by_a_config_is_a_warning_at_its_line() -> None:
    evidence = attach_run(one_of_accelerate("default_config.yaml:8"), devices=(gpu_of(0, 5000), idle_gpu()))
    assert speaking(evidence) == {"LCH004": "warning", "GPU001": "note"}
    (finding,) = next(r.findings for r in judged(evidence).results if r.id == "LCH004")
    assert finding.location
    assert (finding.location.path, finding.location.line) == ("default_config.yaml", 8)


def test_one_process_by_a_flag_was_meant() -> None:
    evidence = attach_run(one_of_accelerate("flag --num_processes"), devices=(gpu_of(0, 5000), idle_gpu()))
    assert speaking(evidence) == {"LCH004": "note", "GPU001": "note"}


@pytest.mark.parametrize(("by", "severity"), [("command", "note"), ("scheduler", "note"), ("shell", "warning")])
def test_a_hidden_gpu_is_told_with_whose_environment_hides_it(by: str, severity: str) -> None:
    job = replace(alone(), visible=(0,), shadow=Shadow(value="0", by=by, who="tmux: server (pid 9)"))
    evidence = attach_run(job, devices=(gpu_of(0, 5000), idle_gpu()))
    assert speaking(evidence) == {"GPU001": severity}
    assert "GPU 1 is hidden from job 5000 by CUDA_VISIBLE_DEVICES=0" in said(evidence)
    assert "tmux: server (pid 9)" in said(evidence)


def test_a_gpu_hidden_by_the_script_or_the_launcher_is_told_with_the_line() -> None:
    by_code = replace(alone(), visible=(0,), shadow=Shadow(value="0", by="code", who="train.py:3"))
    evidence = attach_run(by_code, devices=(gpu_of(0, 5000), idle_gpu()))
    assert speaking(evidence) == {"GPU001": "warning"}
    assert "CUDA_VISIBLE_DEVICES=0, set by the script itself (train.py:3)" in said(evidence)
    assert "type   accelerate launch --multi_gpu --num_processes 2 train.py --lr 1e-4" in said(evidence)
    shadow = Shadow(value="0", by="launcher", who="accelerate (pid 4999) for gpu_ids: one.yaml:4")
    job = replace(one_of_accelerate("one.yaml:5"), visible=(0,), shadow=shadow)
    evidence = attach_run(job, devices=(gpu_of(0, 5000), idle_gpu()))
    assert speaking(evidence) == {"GPU001": "note"}
    assert "set by accelerate (pid 4999) for gpu_ids: one.yaml:4" in said(evidence)


@pytest.mark.parametrize(
    ("job", "why"),
    [
        (replace(alone(), shadow=Shadow(value="", by="code", who="train.py:3", certain=False)), "train.py:3 sets CUDA"),
        (alone(environment=None), "the environment of job 5000 may not be read"),
    ],
    ids=["a line that may not be reached", "ptrace is refused"],
)
def test_where_it_is_not_known_what_a_job_sees_nobody_is_blamed(job: Job, why: str) -> None:
    evidence = attach_run(job, devices=(gpu_of(0, 5000), idle_gpu()))
    assert speaking(evidence) == {"GPU001": "note"}
    assert f"it may be hidden, {why}" in " ".join(said(evidence).split())
    both = launched(*(healthy_seen(i, devices=(0,), environment=None) for i in range(2)))
    results = {r.id: r for r in judged(attach_run(both, devices=(gpu_of(0, 5000, 5001), idle_gpu()))).results}
    assert results["RNK003"].outcome is Outcome.SKIPPED


def test_a_gpu_that_lets_nobody_in_is_no_fault_of_the_launch() -> None:
    prohibited = attach_run(alone(), devices=(gpu_of(0, 5000), idle_gpu(compute_mode="prohibited")))
    assert speaking(prohibited) == {"GPU001": "note"}
    assert "its compute mode is prohibited" in said(prohibited)
    taken = idle_gpu(compute_mode="exclusive process", processes_during=(on_gpu(77, user="ann"),))
    exclusive = attach_run(alone(), devices=(gpu_of(0, 5000), taken))
    assert speaking(exclusive) == {"GPU001": "note"}
    assert "and its compute mode lets one process in" in " ".join(said(exclusive).split())


def test_a_gpu_beside_an_instance_is_out_of_reach() -> None:
    part = gpu_of(0, 5000, mig=True, mig_devices=(MigDevice(uuid="MIG-0", gpu_instance=1),))
    evidence = attach_run(replace(alone(), visible=(0,)), devices=(part, idle_gpu()))
    assert speaking(evidence) == {"GPU001": "note"}
    assert "GPU 1 is out of reach of job 5000: GPU 0 is cut into MIG instances" in said(evidence)


def test_all_ranks_on_the_first_gpu() -> None:
    ranks = [healthy_seen(i, devices=(0,)) for i in range(2)]
    evidence = attach_run(launched(*ranks), devices=(gpu_of(0, 5000, 5001), idle_gpu()))
    assert speaking(evidence) == {"GPU001": "error"}
    assert "all 2 ranks compute on GPU 0 (cuda:0 of each), and none on GPU 1, which they see too" in said(evidence)


def test_a_context_on_the_peers_gpu() -> None:
    ranks = (healthy_seen(0), healthy_seen(1, devices=(0, 1), device_bytes={"0": 2**29, "1": 2**35}))
    evidence = attach_run(launched(*ranks), devices=(gpu_of(0, 5000, 5001), gpu_of(1, 5001)))
    assert speaking(evidence) == {"RNK004": "warning"}


def test_two_ranks_on_instances_of_one_gpu_are_apart() -> None:
    ranks = [healthy_seen(i, devices=(0,)) for i in range(2)]
    parts = tuple(MigDevice(uuid=f"MIG-{i}", gpu_instance=i) for i in range(2))
    device = gpu_of(0, 5000, 5001, mig=True, mig_devices=parts)
    assert "RNK002" not in speaking(attach_run(launched(*ranks, visible=(0,)), devices=(device,)))
    on = [
        tuple(on_gpu(5000 + i, ours=True, rank=i, gpu_instance=at) for i, at in enumerate(each))
        for each in ((1, 2), (1, 1))
    ]
    apart, same = (
        attach_run(launched(*ranks, visible=(0,)), devices=(replace(device, processes_during=o),)) for o in on
    )
    assert "RNK002" not in speaking(apart)
    assert speaking(same) == {"RNK002": "error"}
    assert "both compute on GPU 0, MIG instance 1" in said(same)


def test_ranks_without_a_connection_are_apart() -> None:
    ranks = [
        healthy_seen(i, peers=(), rendezvous=False, devices=(), looks=looks(BACKWARD, state="R")) for i in range(2)
    ]
    evidence = attach_run(launched(*ranks, how="accelerate"))
    assert speaking(evidence) == {"LCH003": "error"}
    assert "type   ACCELERATE_USE_CPU=1 accelerate launch --multi_gpu --num_processes 2" in said(evidence)


@pytest.mark.parametrize(
    "changes",
    [
        {"peers": None},
        {"rendezvous": True},
        {"looks": looks((inner("torch/distributed/rendezvous.py", "_env_rendezvous_handler"), frame(9)))},
        {"started_s": 1000.0},
    ],
    ids=["sockets may not be read", "they met", "they are joining", "they have just begun"],
)
def test_ranks_that_may_be_connected_are_not_called_apart(changes: dict[str, object]) -> None:
    base: dict[str, object] = {"peers": (), "rendezvous": False, "devices": ()}
    ranks = [healthy_seen(i, **{**base, **changes}) for i in range(2)]
    assert "LCH003" not in speaking(attach_run(launched(*ranks)))


def test_dataparallel_is_named_where_it_stands() -> None:
    job = replace(alone(devices=(0, 1)), parallel_site="train.py:12")
    evidence = attach_run(job, devices=(gpu_of(0, 5000), gpu_of(1, 5000)))
    assert speaking(evidence) == {"LCH016": "warning"}
    assert "train.py:12" in said(evidence)
    sharded = replace(alone(devices=(0, 1)), parallel_site="")
    assert speaking(attach_run(sharded, devices=(gpu_of(0, 5000), gpu_of(1, 5000)))) == {}


def test_dataparallel_on_one_gpu_or_none_is_as_good_as_none() -> None:
    stack = (inner("torch/nn/parallel/data_parallel.py", "forward"), frame(12))
    stacks = tuple(replace(look, stack=stack) for look in looks())
    on_one = replace(alone(devices=(0,), looks=stacks), parallel_site="train.py:12")
    assert speaking(attach_run(on_one, devices=(gpu_of(0, 5000),))) == {}
    apply = (inner("torch/nn/parallel/parallel_apply.py", "parallel_apply"), *stack)
    unseen = alone(devices=(), looks=tuple(replace(look, stack=apply) for look in looks()))
    assert speaking(attach_run(unseen)) == {"LCH016": "warning"}


def test_a_torch_without_gpu_support() -> None:
    job = alone(devices=(), torch_version="2.13.0+cpu", torch_cuda=None)
    assert speaking(attach_run(job, devices=(idle_gpu(0), idle_gpu(1)))) == {"ENV013": "error"}
    asked = replace(job, ranks=(replace(job.ranks[0], environment={"ACCELERATE_USE_CPU": "true"}),))
    assert speaking(attach_run(asked, devices=(idle_gpu(0), idle_gpu(1)))) == {}


CAUSES: tuple[tuple[str, Seen, dict[str, str], str], ...] = (
    ("sleep", waiting(1, SLEEP, text="time.sleep(600)"), {"HNG001": "error"}, "it sleeps at train.py:30"),
    (
        "prompt",
        waiting(1, SLEEP, wait=Wait(call="read", target="terminal", name="/dev/pts/3")),
        {"HNG001": "error"},
        "it waits for an answer at a prompt (/dev/pts/3) at train.py:30",
    ),
    (
        "deadlock",
        waiting(1, SLEEP, wait=Wait(call="lock", target="file", name="/data/x.lock", holder=5000)),
        {"HNG001": "error"},
        "it waits for a lock (/data/x.lock, held by pid 5000)",
    ),
    (
        "somebody's lock",
        waiting(1, SLEEP, wait=Wait(call="lock", target="file", name="/data/x.lock", holder=7)),
        {"HNG001": "warning"},
        "held by pid 7",
    ),
    (
        "network",
        waiting(1, SLEEP, wait=Wait(call="receive", target="socket", name="10.0.0.7:443")),
        {"HNG001": "warning"},
        "it waits for the network (10.0.0.7:443)",
    ),
    ("a long wait", waiting(1, SLEEP, wait=Wait(call="receive"), seconds=33.0), {"HNG001": "error"}, "the network"),
    ("data", waiting(1, FETCH), {"HNG001": "warning"}, "it reads its data itself at data.py:12"),
    ("stopped", waiting(1, SLEEP, state="T"), {"RNK005": "error"}, "rank 1 (pid 5001) is stopped (state T"),
    ("another collective", waiting(1, BARRIER), {"NET007": "error"}, "waits in barrier at train.py:60"),
    ("unseen", waiting(1, ()), {"HNG001": "warning"}, "it sleeps in a call that was not seen"),
)


@pytest.mark.parametrize(("_", "odd", "expected", "text"), CAUSES, ids=[c[0] for c in CAUSES])
def test_who_is_waited_for_and_why(_: str, odd: Seen, expected: dict[str, str], text: str) -> None:
    seconds = odd.looks[-1].at_s - odd.looks[0].at_s
    peer = waiting(0, ALL_REDUCE, seconds=seconds, devices=())
    evidence = attach_run(launched(peer, replace(odd, devices=())))
    assert speaking(evidence) == expected
    assert text in said(evidence)


def test_a_flight_recorder_tells_the_number_of_the_call() -> None:
    peer = waiting(
        0, ALL_REDUCE, devices=(), recorded=Recorded(called=7, completed=6, pending="all_reduce", pending_seq=7)
    )
    odd = waiting(1, SLEEP, text="time.sleep(600)", devices=(), recorded=Recorded(called=6, completed=6))
    evidence = attach_run(launched(peer, odd))
    assert speaking(evidence) == {"HNG001": "error"}
    text = " ".join(said(evidence).split())
    assert "rank 1 (pid 5001) never reached all_reduce #7" in text
    assert "flight recorder: rank 0 has called 7, rank 1 has called 6" in text


WORKING: dict[str, Callable[[], Seen]] = {
    "computes": lambda: healthy_seen(1),
    "reads a file": lambda: replace(waiting(1, SLEEP), looks=tuple(moved(waiting(1, SLEEP).looks, "io_bytes", 10**6))),
    "its workers compute": lambda: replace(
        waiting(1, SLEEP), looks=tuple(moved(waiting(1, SLEEP).looks, "workers_cpu_s", 1))
    ),
    "was seen for a moment": lambda: waiting(1, SLEEP, seconds=1.5),
}


def moved(each: tuple[Look, ...], field: str, step: float) -> list[Look]:
    return [replace(look, **{field: step * i}) for i, look in enumerate(each)]


@pytest.mark.parametrize("name", WORKING)
def test_a_rank_at_work_keeps_nobody_waiting_for_good(name: str) -> None:
    peer = waiting(0, BACKWARD, seconds=1.5) if name == "was seen for a moment" else waiting(0, BACKWARD)
    evidence = attach_run(launched(replace(peer, devices=()), replace(WORKING[name](), devices=())))
    assert speaking(evidence) == {}


def test_sleepers_without_a_stack_are_no_pass() -> None:
    ranks = [healthy_seen(i, devices=(), looks=looks((), wait=Wait(call="futex"))) for i in range(2)]
    results = {r.id: r for r in judged(attach_run(launched(*ranks))).results}
    assert results["HNG001"].outcome is Outcome.SKIPPED
    assert "where they are was not seen" in results["HNG001"].reason


def test_a_spinning_gpu_and_whom_it_waits_for() -> None:
    item = (frame(50),)
    peer = healthy_seen(0, looks=tuple(replace(look, state="R", cpu_s=50 + i, main_cpu_s=40 + i)
                                       for i, look in enumerate(looks(item, text="loss.item()"))))  # fmt: skip
    spinning = gpu_of(0, 5000, samples=load(**SPIN))
    evidence = attach_run(launched(peer, waiting(1, SLEEP, text="sleep(1)")), devices=(spinning, idle_gpu(1)))
    assert speaking(evidence) == {"HNG001": "error"}
    assert "GPU003 spinning-gpu: GPU 0 (NVIDIA H100 80GB HBM3) is busy without work: rank 0 waits for rank 1" in said(
        evidence
    )


def test_small_kernels_are_no_spinning() -> None:
    spinning = tuple(gpu_of(i, 5000 + i, samples=load(**SPIN)) for i in range(2))
    assert speaking(attach_run(launched(), devices=spinning)) == {}


def test_a_rank_that_is_gone() -> None:
    left = replace(waiting(0, ALL_REDUCE), devices=())
    by_hand = launched(left, how="environment", launcher=None, asked=2)
    assert speaking(attach_run(by_hand)) == {"RNK001": "error"}
    with_launcher = launched(left, asked=2)
    assert speaking(attach_run(with_launcher)) == {"HNG005": "error"}
    at_work = launched(healthy_seen(0, devices=()), how="environment", launcher=None, asked=2)
    assert speaking(attach_run(at_work)) == {}


def test_a_straggler_by_its_own_work() -> None:
    def pace(rank: int, waits: int, cpu_s: float, stack: tuple[Frame, ...] = ()) -> Seen:
        each = looks()
        mine = [stack or each[0].stack if i >= waits else BACKWARD for i in range(len(each))]
        return healthy_seen(rank, devices=(), looks=tuple(
            replace(look, stack=s, state="S" if s is BACKWARD else "R", main_cpu_s=cpu_s * i, cpu_s=cpu_s * i)
            for i, (look, s) in enumerate(zip(each, mine, strict=True))
        ))  # fmt: skip

    slow = pace(1, 0, 0.5)
    assert speaking(attach_run(launched(pace(0, 8, 0.1), slow))) == {"SPD001": "warning"}
    assert "rank 1 (pid 5001) is slower than its peers: rank 0 waits for it" in said(
        attach_run(launched(pace(0, 8, 0.1), slow))
    )
    assert "SPD001" not in speaking(attach_run(launched(pace(0, 4, 0.3), slow))), "half is usual"
    assert "SPD001" not in speaking(attach_run(launched(pace(0, 8, 0.1), pace(1, 1, 0.5)))), "it waits too"
    assert "SPD001" not in speaking(attach_run(launched(pace(0, 8, 0.0), slow))), "one step: a section of one rank"
    assert "SPD001" not in speaking(attach_run(launched(pace(0, 8, 0.1), pace(1, 0, 0.5, FETCH)))), "its data is late"
    on_gpus = [replace(r, devices=(r.rank or 0,)) for r in (pace(0, 8, 0.1), slow)]
    assert "SPD001" not in speaking(attach_run(launched(*on_gpus), devices=busy_pair()))


def test_a_starved_loader() -> None:
    loading = tuple(
        replace(look, state="S", stack=FETCH, io_bytes=1000 + i, cpu_s=50 + 0.1 * i)
        for i, look in enumerate(looks(FETCH))
    )
    hungry = [healthy_seen(i, looks=loading) for i in range(2)]
    low = tuple(gpu_of(i, 5000 + i, samples=load(busy_pct=31.0)) for i in range(2))
    evidence = attach_run(launched(*hungry), devices=low)
    assert speaking(evidence) == {"SPD002": "warning"}
    assert "the rank reads its samples itself" in said(evidence)
    assert speaking(attach_run(launched(*hungry), devices=busy_pair())) == {}
    few = tuple(replace(look, stack=FETCH if i % 4 == 0 else look.stack) for i, look in enumerate(looks()))
    assert speaking(attach_run(launched(*(healthy_seen(i, looks=few) for i in range(2))), devices=low)) == {}


def test_a_container_that_sees_other_pids() -> None:
    blind = {"processes_during": None, "absent": {"processes_during": "the driver names the host's pids"}}
    devices = (gpu_of(0, **blind), gpu_of(1, **{**blind, "samples": idle()}))
    evidence = attach_run(alone(devices=()), devices=devices)
    evidence = replace(evidence, devices=replace(evidence.devices, host_pids=False))
    assert speaking(evidence) == {"GPU001": "error"}
    assert "not told (pids are the host's)" in said(evidence)


def test_two_jobs_are_told_apart() -> None:
    other = replace(alone(devices=(1,)), pid=6000, ranks=(replace(alone().ranks[0], pid=6000, devices=(1,)),))
    devices = (gpu_of(0, 5000), gpu_of(1, 6000, processes_during=(on_gpu(6000, ours=True),)))
    assert set(speaking(attach_run(alone(), other, devices=devices)).values()) <= {Severity.NOTE.value}


def test_no_job_is_incomplete() -> None:
    evidence = replace(attach_run(), jobs=None, absent={"jobs": "no training process was found"})
    assert judged(evidence).exit_code == 2
    assert "INCOMPLETE  no training process was found" in said(evidence)


def test_ranks_between_which_nothing_goes_are_apart() -> None:
    base: dict[str, object] = {"devices": (), "looks": looks(BACKWARD, state="R")}
    quiet = [healthy_seen(i, peer_bytes=9, peer_bytes_during=0, **base) for i in range(2)]
    assert speaking(attach_run(launched(*quiet))) == {"LCH003": "error"}
    talking = [healthy_seen(i, peer_bytes=9_000_000, peer_bytes_during=0, **base) for i in range(2)]
    assert speaking(attach_run(launched(*talking))) == {}
    unknown = [healthy_seen(i, peer_bytes=None, **base) for i in range(2)]
    assert speaking(attach_run(launched(*unknown))) == {}


def test_ranks_whose_backward_takes_all_of_the_step_are_no_hang() -> None:
    busy = tuple(replace(look, stack=BACKWARD) for look in looks())
    ranks = [healthy_seen(i, devices=(), looks=busy) for i in range(2)]
    assert speaking(attach_run(launched(*ranks))) == {}
    on_gpus = [healthy_seen(i, looks=busy) for i in range(2)]
    assert speaking(attach_run(launched(*on_gpus), devices=busy_pair())) == {}
