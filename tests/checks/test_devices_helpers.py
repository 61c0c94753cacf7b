from statistics import median

import pytest
from msgspec.structs import replace

from accel_checks._devices import bare, gpus, needed_s, peer_medians, placement, span_s
from accel_doctor.check import Threshold
from accel_doctor.evidence import Asked
from accel_doctor.testing import healthy_run
from accel_doctor.testing_gpu import gpu_rank, gpu_run, gpu_uuid, healthy_gpu, healthy_gpus, load, on_gpu


@pytest.mark.parametrize(
    "values",
    [[1.0, 2.0], [3.0, 1.0, 2.0], [5.0, 5.0, 5.0, 1.0], [1.0, 2.0, 2.0, 9.0, 4.0], [float(i % 7) for i in range(50)]],
)
def test_each_value_is_compared_with_the_median_of_the_others(values: list[float]) -> None:
    expected = [median(values[:i] + values[i + 1 :]) for i in range(len(values))]
    assert peer_medians(values) == expected


def test_uuids_of_torch_and_of_the_driver_are_the_same() -> None:
    assert bare("GPU-8932F937-d72c") == bare("8932f937-d72c")
    assert bare("MIG-1b0b") == bare("GPU-1b0b") == "1b0b"


def test_gpus_are_listed_briefly() -> None:
    devices = [healthy_gpu(i) for i in range(9)]
    assert [gpus(devices[:1]), gpus(devices[:3]), gpus(devices)] == [
        "GPU 0",
        "GPUs 0, 1 and 2",
        "GPUs 0, 1, 2 and 6 more",
    ]


def test_span_of_nothing() -> None:
    assert (span_s(()), span_s(load(6.0))) == (0.0, 6.0)


def test_where_the_ranks_are() -> None:
    places = placement(gpu_run())
    assert [r.rank for r in places.on(healthy_gpu(1))] == [1]
    assert places.complete
    assert not placement(gpu_run(ranks=(gpu_rank(0), gpu_rank(1, device_uuid=None)))).complete
    assert not placement(healthy_run(ranks=())).complete


@pytest.mark.parametrize(
    ("processes", "uuids", "occupied"), [((), True, True), ((), False, False), (None, False, None), (None, True, True)]
)
def test_a_device_is_occupied_by_what_ranks_or_driver_say(
    *, processes: tuple[()] | None, uuids: bool, occupied: bool | None
) -> None:
    device = healthy_gpu(1, processes_during=processes)
    ranks = tuple(gpu_rank(i, device_uuid=gpu_uuid(i) if uuids else None) for i in range(2))
    assert placement(gpu_run(ranks=ranks)).occupied(device) is occupied


def test_in_a_run_ranks_are_placed_by_the_numbers_that_accelerate_gave_them() -> None:
    ranks = tuple(gpu_rank(i, device_uuid=None) for i in range(2))
    numbered = placement(gpu_run(ranks=ranks, exam="run"))
    assert [[r.rank for r in numbered.on(healthy_gpu(i))] for i in range(2)] == [[0], [1]]
    by_hand = tuple(gpu_rank(i, device_uuid=None, distributed_type="") for i in range(2))
    hidden = tuple(replace(r, environment={"CUDA_VISIBLE_DEVICES": "1"}) for r in ranks)
    mute = [healthy_gpu(i, processes_during=None) for i in range(2)]
    unordered = healthy_gpus(*mute, visible_known=False)
    for evidence in (
        gpu_run(*mute, ranks=by_hand),
        gpu_run(*mute, ranks=hidden),
        gpu_run(ranks=ranks, devices=unordered),
    ):
        assert placement(replace(evidence, exam="run")).by_device == {}


def test_the_users_own_run_is_watched_for_longer_before_a_gpu_is_called_idle() -> None:
    load_s = Threshold("GPU001.load_s", 5, "")
    assert needed_s(gpu_run(), load_s) == 5
    assert needed_s(gpu_run(exam="run"), load_s) == 20
    assert needed_s(gpu_run(exam="run", asked=Asked(thresholds={"GPU001.load_s": 1})), load_s) == 1


def test_ranks_that_say_nothing_are_where_the_driver_sees_most_of_their_memory() -> None:
    ours = [on_gpu(1000 + i, ours=True, rank=i, memory_bytes=40 << 30) for i in range(2)]
    stray = on_gpu(1001, ours=True, rank=1, memory_bytes=400 << 20)
    devices = healthy_gpu(0, processes_during=(ours[0], stray)), healthy_gpu(1, processes_during=(ours[1],))
    silent = tuple(gpu_rank(i, device_uuid=None, device="cuda") for i in range(2))
    places = placement(gpu_run(*devices, ranks=silent, exam="run"))
    assert [[r.rank for r in places.on(d)] for d in devices] == [[0], [1]]
