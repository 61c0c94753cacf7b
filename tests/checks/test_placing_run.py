"""LCH013, LCH014, LCH016, RNK003, RNK004 and RNK007 on what a run showed."""

from msgspec.structs import replace

from accel_checks.lch001_not_launched import CHECK as NOT_LAUNCHED
from accel_checks.lch003_disconnected_ranks import CHECK as APART
from accel_checks.lch013_visible_devices_set_late import CHECK as SET_LATE
from accel_checks.lch014_cuda_before_fork import CHECK as BEFORE_FORK
from accel_checks.lch016_dataparallel_fallback import CHECK as DATA_PARALLEL
from accel_checks.rnk003_hard_coded_device import CHECK as HARD_CODED
from accel_checks.rnk004_foreign_context import CHECK as FOREIGN
from accel_checks.rnk007_global_rank_as_device import CHECK as GLOBAL_RANK
from accel_checks.shd004_sharding_not_in_effect import CHECK as NOT_SHARDED
from accel_doctor.check import Check, Finding, Location, Severity
from accel_doctor.evidence import Evidence, Rank
from accel_doctor.evidence.run import Failure, Forked, Placed, Replicated, VisibleSet
from accel_doctor.testing import GIB, findings, healthy_rank, outcome
from accel_doctor.testing_gpu import gpu_rank, healthy_gpu, healthy_gpus, on_gpu
from accel_doctor.testing_trace import at, healthy_trace, healthy_traced_rank, healthy_user_run, sick_user_run


def one(check: Check, evidence: Evidence) -> Finding:
    (finding,) = findings(check, evidence)
    return finding


def reason(check: Check, evidence: Evidence) -> str:
    result = outcome(check, evidence)
    assert result.outcome.value == "skipped"
    return result.reason


def sets(value: str, **changes: object) -> dict[str, object]:
    return {"visible_sets": (replace(VisibleSet(value=value, site=at(3), torch_imported=True), **changes),)}


def test_lch013_one_device_for_all_ranks() -> None:
    found = one(SET_LATE, sick_user_run(sets("1")))
    assert (found.location, found.severity) == (Location("train.py", 3), Severity.WARNING)
    assert found.message.endswith("sets CUDA_VISIBLE_DEVICES to '1', and the same on all 2 ranks of the host: they "
                                  "share 1 device")  # fmt: skip


def test_lch013_after_cuda_on_one_rank() -> None:
    late = sick_user_run(sets("0,1"), **sets("0,1", initialised=True))
    assert "rank 1 had initialised CUDA before: it has no effect" in one(SET_LATE, late).message


def test_lch013_silent_where_it_does_no_harm() -> None:
    assert findings(SET_LATE, sick_user_run(sets("0,1"))) == ()
    assert findings(SET_LATE, sick_user_run(sets("0"), **sets("1"))) == ()
    assert findings(SET_LATE, sick_user_run(sets(""))) == ()
    assert outcome(SET_LATE, healthy_user_run()).outcome.value == "passed"


def forked(message: str, **changes: object) -> Evidence:
    failure = Failure(kind="RuntimeError", message=message, at_s=1.0, site=at(9, "train"))
    return sick_user_run({"failure": failure, **changes})


def test_lch014_names_the_line_that_initialised_cuda() -> None:
    parent = Forked(cuda_site=at(4), site=at(12))
    found = one(BEFORE_FORK, forked("Cannot re-initialize CUDA in forked subprocess. To use", forked=parent))
    assert found.location == Location("train.py", 4)
    assert found.message == (
        "train.py:4 initialises CUDA in the parent; ranks 0 and 1, forked from it by the launcher at train.py:12, "
        "cannot use it"
    )


def test_lch014_an_accelerator_before_the_launcher() -> None:
    text = "To launch a multi-device training from your notebook, the `Accelerator` should only be initialized inside"
    found = one(BEFORE_FORK, forked(text))
    assert (found.location, "an Accelerator was made at train.py:10" in found.message) == (
        Location("train.py", 10),
        True,
    )


def test_lch014_silent_where_ranks_fail_of_something_else_or_work() -> None:
    parent = Forked(cuda_site=at(4), site=at(12))
    assert findings(BEFORE_FORK, forked("out of memory", forked=parent)) == ()
    assert findings(BEFORE_FORK, sick_user_run({"forked": parent})) == ()


def replicated(devices: int, ranks: int = 1) -> Evidence:
    rows = (Replicated(class_name="Net", site=at(7), devices=devices),)
    return healthy_user_run(ranks=tuple(healthy_traced_rank(n, replicated=rows) for n in range(ranks)))


def test_lch016_several_devices_in_one_process() -> None:
    found = one(DATA_PARALLEL, replicated(4))
    assert found.message == "Net is in DataParallel: one process drives 4 devices, instead of one process a device"
    assert found.command == "accelerate launch --multi_gpu --num_processes 4 train.py"
    assert "one process would drive every GPU" in one(DATA_PARALLEL, replicated(0)).message
    assert "each of 2 processes drives 4 devices" in one(DATA_PARALLEL, replicated(4, ranks=2)).message


def test_lch016_one_device_is_no_fault_and_several_are_not_lch001() -> None:
    assert findings(DATA_PARALLEL, replicated(1)) == ()
    assert outcome(DATA_PARALLEL, healthy_user_run()).outcome.value == "passed"
    alone = replace(replicated(2), devices=healthy_gpus())
    alone = replace(alone, ranks=tuple(replace(r, env_world_size=None) for r in alone.world))
    assert "LCH016" in reason(NOT_LAUNCHED, alone)


def on(asked: str, got: str = "", call: str = "to", **changes: object) -> dict[str, object]:
    return {"placed": (Placed(call=call, asked=asked, got=got, site=at(12), count=1),), **changes}


def test_rnk003_the_same_device_on_every_rank() -> None:
    found = one(HARD_CODED, sick_user_run(on("cuda:0")))
    assert (found.location, found.severity) == (Location("train.py", 12), Severity.ERROR)
    assert found.message == "train.py:12 moves a module to cuda:0 on ranks 0 and 1 alike: they share it"
    assert "makes cuda:0 current" in one(HARD_CODED, sick_user_run(on("cuda:0", call="set_device"))).message
    assert "cuda:0" in one(HARD_CODED, sick_user_run(on("cuda", "cuda:0", "cuda"))).message


def test_rnk003_a_warning_where_accelerate_moves_it_on() -> None:
    (wrapped,) = healthy_trace().wrapped
    first, second = ({"wrapped": (replace(wrapped, device=f"cuda:{n}"),)} for n in (0, 1))
    found = one(HARD_CODED, sick_user_run(on("cuda:0", **first), **second))
    assert (found.severity, "of its own later" in found.message) == (Severity.WARNING, True)


def test_rnk003_silent_on_devices_of_their_own() -> None:
    assert findings(HARD_CODED, sick_user_run(on("cuda:0"), **on("cuda:1"))) == ()
    assert findings(HARD_CODED, sick_user_run(on("cuda", "cuda:0"), **on("cuda", "cuda:1"))) == ()
    assert findings(HARD_CODED, sick_user_run(on("cuda"))) == ()
    assert findings(HARD_CODED, sick_user_run(on("cuda:0", **sets("0")), **sets("1"))) == ()
    assert "one rank a host" in reason(HARD_CODED, healthy_user_run(ranks=(healthy_traced_rank(0, **on("cuda:0")),)))


def with_guest(**changes: object) -> Evidence:
    """Return a run on two devices, on the first of which the second rank holds memory too."""
    mine = on_gpu(1000, ours=True, rank=0, memory_bytes=20 * GIB)
    guest = on_gpu(1001, ours=True, rank=1, memory_bytes=30 * GIB)
    devices = healthy_gpus(healthy_gpu(0, processes_during=(mine, guest)), healthy_gpu(1))
    traces = [healthy_trace(n, **changes) for n in (0, 1)]
    return healthy_user_run(devices=devices, ranks=tuple(replace(gpu_rank(n), trace=traces[n]) for n in (0, 1)))


def test_rnk004_memory_on_the_device_of_another() -> None:
    found = one(FOREIGN, with_guest())
    assert found.message == "rank 1 also holds 30.0 GiB on GPU 0 (NVIDIA H100 80GB HBM3), the device of rank 0"
    assert (found.severity, found.ranks, found.location) == (Severity.WARNING, (1,), None)
    load = {"placed": (Placed(call="load", site=at(16), count=1),)}
    assert one(FOREIGN, with_guest(**load)).location == Location("train.py", 16)


def test_rnk004_silent_on_devices_of_their_own_and_on_two_for_one_rank() -> None:
    healthy = replace(with_guest(), devices=healthy_gpus())
    assert outcome(FOREIGN, healthy).outcome.value == "passed"
    second = healthy_gpu(1, processes_during=(on_gpu(1000, ours=True, rank=0, memory_bytes=GIB),))
    both = replace(healthy, devices=healthy_gpus(healthy_gpu(0), second), ranks=healthy.world[:1])
    assert findings(FOREIGN, both) == ()
    assert reason(FOREIGN, healthy_user_run()) == "no GPU on this machine"


def on_two_hosts(*asked: str) -> Evidence:
    """Return four ranks on two hosts; the ranks of the second asked for these devices."""
    ranks: list[Rank] = []
    for n in range(4):
        device = asked[n - 2] if n > 1 else f"cuda:{n}"
        rank = healthy_traced_rank(n, **on(device, call="set_device"))
        ranks.append(replace(rank, host=f"ws{1 + n // 2}", local_rank=n % 2))
    return healthy_user_run(ranks=tuple(ranks))


def test_rnk007_the_global_rank_on_the_second_machine() -> None:
    found = one(GLOBAL_RANK, on_two_hosts("cuda:2", "cuda:3"))
    assert found.message == (
        "train.py:12 asks for cuda:2 on rank 2, whose local rank is 0: the global rank picks the device"
    )
    assert (found.host, found.ranks) == ("ws2", (2, 3))


def test_rnk007_silent_for_local_ranks_and_mute_on_one_machine() -> None:
    assert findings(GLOBAL_RANK, on_two_hosts("cuda:0", "cuda:1")) == ()
    assert "on one machine" in reason(GLOBAL_RANK, sick_user_run(on("cuda:0"), **on("cuda:1")))


def test_lch003_a_partial_state_does_not_read_the_variable() -> None:
    alone = tuple(
        replace(
            healthy_traced_rank(n, accelerators=()),
            group=healthy_rank(0, 1).group,
            environment={"ACCELERATE_USE_CPU": "true"},
        )
        for n in (0, 1)
    )
    found = one(APART, healthy_user_run(ranks=alone))
    assert (found.command, "PartialState(cpu=True)" in found.fix) == ("", True)


def test_lch003_ranks_that_the_script_forks_itself() -> None:
    traced = [healthy_traced_rank(n, parents=("python", "bash")) for n in (0, 1)]
    alone = tuple(replace(r, group=healthy_rank(0, 1).group) for r in traced)
    run = healthy_user_run(ranks=alone)
    assert run.launch is not None
    found = one(APART, replace(run, launch=replace(run.launch, launcher="python", script=("train.py",))))
    assert found.command == "ACCELERATE_USE_CPU=1 python train.py"


def test_shd004_a_plugin_that_the_script_gives_and_accelerate_leaves_aside() -> None:
    (made,) = healthy_trace().accelerators
    found = one(NOT_SHARDED, sick_user_run({"accelerators": (replace(made, asked_sharding="FSDP"),)}))
    assert found.message.startswith("the script gives its Accelerator a plugin for FSDP and Net is in Distributed")
    assert found.location == Location("train.py", 10)
