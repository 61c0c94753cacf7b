import msgspec

from accel_doctor.evidence import Device, Devices, Evidence, Rank, Sample, StorageProbe, TrainingProbe
from accel_doctor.reports import summary
from accel_doctor.reports.summary import TOPICS, Seen, topic_of
from accel_doctor.testing import healthy_rank, healthy_run


def seen(evidence: Evidence) -> Seen:
    return Seen(evidence, evidence.world)


def ranks(*changed: dict[str, object]) -> Seen:
    made = tuple(msgspec.structs.replace(healthy_rank(i, len(changed)), **c) for i, c in enumerate(changed))
    return seen(healthy_run(ranks=made))


def on(device: str) -> dict[str, object]:
    group = healthy_rank().group
    assert group
    return {"group": msgspec.structs.replace(group, device=device)}


def test_nothing_is_said_of_what_was_not_seen() -> None:
    bare = Rank(pid=1, host="ws1", rank=0)
    for evidence in (healthy_run(ranks=None, hosts=None, devices=None), healthy_run(ranks=(bare,), hosts=())):
        assert {topic.numbers(seen(evidence)) for topic in TOPICS.values()} == {""}


def test_the_launch_says_how_many_joined_how_fast_and_where() -> None:
    assert summary.launch(ranks({}, {})) == "2 of 2 ranks joined in 2.0 s, on the CPU"
    assert summary.launch(ranks(on("cuda:0"), on("cuda:1"))).endswith("one device each")
    assert summary.launch(ranks(on("cuda:0"), on("cuda:0"))).endswith("on 1 device")
    assert summary.launch(ranks({}, {"group": None})).startswith("1 of 2 ranks joined")


def test_links_are_the_slowest_ranks_at_the_largest_and_smallest_size() -> None:
    sweep = healthy_rank().sweep
    assert sweep
    slower = msgspec.structs.replace(
        sweep, timings=tuple(msgspec.structs.replace(t, busbw_gb_s=0.1, time_ms=9.0) for t in sweep.timings)
    )
    assert summary.links(ranks({}, {"sweep": slower})) == "all_reduce 0.1 GB/s busbw at 16 MiB, 9 ms at 1 KiB, gloo"


def test_the_batch_is_called_measured_only_where_the_measure_agrees() -> None:
    assert summary.data(ranks({}, {})) == "effective batch 4 = 2 x 2 ranks x 1 accumulation, measured"
    data = healthy_rank().data
    assert data
    short = msgspec.structs.replace(data, rows_per_step=(1, 1))
    assert not summary.data(ranks({}, {"data": short})).endswith("measured")


def trained(**changes: object) -> dict[str, object]:
    training = healthy_rank().training
    assert training
    return {"training": msgspec.structs.replace(training, **changes)}


def test_replicas_are_called_equal_only_where_they_are_and_there_are_two() -> None:
    assert summary.gradients(ranks({}, {})) == "2 replicas equal after 3 steps"
    assert summary.gradients(ranks({})) == "1 replica ran 3 steps"
    training = healthy_rank().training
    assert training
    other = (*training.checksums[:-1], msgspec.structs.replace(training.checksums[-1], parameters="else"))
    assert summary.gradients(ranks({}, trained(checksums=other))) == "2 replicas ran 3 steps"
    assert "no replicas to compare" in summary.gradients(ranks(trained(sharded=True), trained(sharded=True)))


def test_guards_say_how_many_print() -> None:
    assert summary.logging(ranks({}, {})) == "1 of 2 ranks prints"


def test_storage_is_what_all_ranks_write_together() -> None:
    probe = StorageProbe(path="/ckpt", written_bytes=10**9, write_s=1.5, fsync_s=0.5)
    assert summary.checkpoints(ranks({"storage": probe}, {"storage": probe})) == "2 ranks wrote 1 GB/s together"


def test_sharding_without_a_plan_is_the_wrapper() -> None:
    sharded = trained(sharded=True, wrapper="FSDPMLP")
    assert isinstance(sharded["training"], TrainingProbe)
    assert summary.sharding(ranks(sharded, sharded)) == "parameters are sharded by FSDPMLP"


def test_gpus_are_judged_under_load_alone() -> None:
    samples = (
        Sample(at_s=0, busy_pct=0, power_w=20, phase="before"),
        Sample(at_s=1, busy_pct=90, power_w=300, phase="busy"),
        Sample(at_s=2, busy_pct=100, power_w=310, phase="training"),
    )
    device = Device(index=0, host="ws1", uuid="G", name="H200", samples=samples)
    hidden = msgspec.structs.replace(device, index=1, visible=False)
    assert summary.gpus(seen(healthy_run(devices=Devices(devices=(device, hidden))))) == "busy 95 %, 305 W"


def test_several_hosts_are_counted() -> None:
    host = (healthy_run().hosts or ())[0]
    assert summary.environment(seen(healthy_run())) == "16 CPUs, 50 of 64 GiB memory free, 32 GiB shared memory free"
    assert summary.environment(seen(healthy_run(hosts=(host, host)))) == "2 hosts"


def test_an_unknown_topic_is_named_by_its_letters() -> None:
    assert topic_of("XYZ001").name == "xyz"
