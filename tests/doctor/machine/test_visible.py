"""Which devices CUDA_VISIBLE_DEVICES leaves; torch's own parser is the oracle where it has one."""

import os
from unittest import mock

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from accel_doctor.evidence import Device, Devices, MigDevice
from accel_doctor.machine.visible import as_ranks_say, with_visible
from accel_doctor.testing_gpu import gpu_rank, gpu_uuid, healthy_gpu, healthy_gpus

UUIDS = ("GPU-8932f937-d72c", "GPU-8932f93e-4a11", "GPU-0b1c2d3e-9999")
FOUR = healthy_gpus(*(healthy_gpu(i) for i in range(4)))
LETTERED = healthy_gpus(*(healthy_gpu(i, uuid=uuid) for i, uuid in enumerate(UUIDS)))
MIXED = healthy_gpus(healthy_gpu(0, name="NVIDIA GeForce GTX 1650"), healthy_gpu(1, name="NVIDIA GeForce RTX 4090"))


def order(devices: Devices, value: str | None, **environment: str) -> list[int]:
    """Return NVML's indices in CUDA's order."""
    seen = _seen(devices, value, **environment)
    return [d.index for d in sorted((d for d in seen.devices if d.visible), key=lambda d: d.cuda_index or 0)]


def _seen(devices: Devices, value: str | None, **environment: str) -> Devices:
    return with_visible(devices, {**({} if value is None else {"CUDA_VISIBLE_DEVICES": value}), **environment})


@pytest.mark.parametrize(
    ("value", "indices", "unresolved"),
    [
        (None, [0, 1, 2, 3], ()),
        ("", [], ()),
        ("-1", [], ()),
        ("NoDevFiles", [], ()),
        ("3,1", [3, 1], ()),
        (" 2 , 0", [2, 0], ()),
        ("0,7,1", [0], ("7", "1")),
        ("0,-1,1", [0], ()),
        ("0,0", [], ("0", "0")),
        ("1gpu,2x", [1, 2], ()),
        ("GPU-00000002", [2], ()),
        ("GPU-00000002,GPU-00000000-1c0d", [2, 0], ()),
        ("GPU-0000", [], ("GPU-0000",)),
        ("GPU-deadbeef,GPU-00000000", [], ("GPU-deadbeef", "GPU-00000000")),
        ("0,GPU-00000001", [0], ("GPU-00000001",)),
        ("GPU-00000001,0", [1], ("0",)),
    ],
)
def test_the_list_ends_at_its_first_invalid_entry(
    value: str | None, indices: list[int], unresolved: tuple[str, ...]
) -> None:
    seen = _seen(FOUR, value)
    assert order(FOUR, value) == indices
    assert seen.unresolved == unresolved
    assert seen.visible_variable == value
    assert [d.cuda_index for d in seen.devices if not d.visible] == [None] * (4 - len(indices))


ENTRY = st.one_of(
    st.integers(-1, 4).map(str),
    st.sampled_from([*UUIDS, "GPU-8932f937", "GPU-8932f93", "GPU-0b", "GPU-", "x", "", "1a", "+2", "MIG-1"]),
)


@settings(deadline=None, derandomize=True, max_examples=300)
@given(st.lists(ENTRY, min_size=1, max_size=4))
@pytest.mark.ranks
def test_torch_reads_the_variable_alike(entries: list[str]) -> None:
    cuda = pytest.importorskip("torch.cuda")
    value = ",".join(entries)
    with mock.patch.dict(os.environ, {"CUDA_VISIBLE_DEVICES": value}):
        parsed = cuda._parse_visible_devices()
    if parsed and isinstance(parsed[0], str):
        expected = cuda._transform_uuid_to_ordinals(parsed, list(UUIDS))
    else:
        expected = parsed[: next((i for i, number in enumerate(parsed) if number >= len(UUIDS)), len(parsed))]
    assert order(LETTERED, value) == expected


def test_among_unlike_models_a_number_means_nothing_without_pci_order() -> None:
    assert not _seen(MIXED, "0").visible_known
    assert _seen(MIXED, "0", CUDA_DEVICE_ORDER="PCI_BUS_ID").visible_known
    assert order(MIXED, "1", CUDA_DEVICE_ORDER="PCI_BUS_ID") == [1]


@pytest.mark.parametrize("value", [None, "", "0,1", "GPU-00000001"])
def test_all_none_and_uuids_are_certain_among_unlike_models_too(value: str | None) -> None:
    seen = _seen(MIXED, value)
    assert seen.visible_known
    assert [d.cuda_index for d in seen.devices] == [None, None]


def _mig(index: int, *instances: str) -> Device:
    mig_devices = tuple(MigDevice(uuid=uuid, gpu_instance=i + 1) for i, uuid in enumerate(instances))
    return healthy_gpu(index, mig=True, mig_devices=mig_devices)


@pytest.mark.parametrize(
    ("value", "device", "instance"),
    [
        (None, 0, "MIG-aaaa"),
        ("0", 0, "MIG-aaaa"),
        ("1", 1, "MIG-cccc"),
        ("MIG-bbbb", 0, "MIG-bbbb"),
        ("MIG-cccc,MIG-aaaa", 1, "MIG-cccc"),
        ("GPU-00000001", 1, "MIG-cccc"),
        ("MIG-GPU-00000000-1c0d-4e6a-9f2b-7d3c5a1b0000/2/0", 0, "MIG-bbbb"),
    ],
)
def test_a_process_sees_one_mig_instance_at_most(value: str | None, device: int, instance: str) -> None:
    seen = _seen(healthy_gpus(_mig(0, "MIG-aaaa", "MIG-bbbb"), _mig(1, "MIG-cccc")), value)
    assert [d.index for d in seen.devices if d.visible] == [device]
    assert [m.uuid for d in seen.devices for m in d.mig_devices if m.visible] == [instance]


def test_a_mig_device_without_instances_is_of_no_use_and_a_whole_one_beside_instances_is_hidden() -> None:
    assert order(healthy_gpus(_mig(0), healthy_gpu(1)), None) == [1]
    assert order(healthy_gpus(_mig(0, "MIG-aaaa"), healthy_gpu(1)), None) == [0]


def test_the_launch_may_set_it_anew() -> None:
    assert order(_seen(FOUR, "0"), "2,3") == [2, 3]


def test_ranks_say_in_which_order_cuda_put_unlike_models_and_which_it_left_out() -> None:
    models = [healthy_gpu(i, name=f"model {i}") for i in range(3)]
    unknown = with_visible(healthy_gpus(*models), {"CUDA_VISIBLE_DEVICES": "0,1"})
    assert not unknown.visible_known
    ranks = [
        gpu_rank(0, 2, device_uuid=gpu_uuid(2).removeprefix("GPU-"), torch_device_count=2),
        gpu_rank(1, 2, device_uuid=gpu_uuid(0), torch_device_count=2),
    ]
    known = as_ranks_say(unknown, ranks)
    assert [(d.cuda_index, d.visible) for d in known.devices] == [(1, True), (None, False), (0, True)]
    assert known.visible_known
    partly = as_ranks_say(unknown, ranks[:1])
    assert [d.cuda_index for d in partly.devices] == [None, None, 0]
    assert not partly.visible_known


def test_ranks_that_each_see_one_device_say_nothing_of_the_launch() -> None:
    models = [healthy_gpu(i, name=f"model {i}") for i in range(2)]
    unknown = with_visible(healthy_gpus(*models), {"CUDA_VISIBLE_DEVICES": "1"})
    alone = [gpu_rank(i, device="cuda:0", device_uuid=gpu_uuid(i), torch_device_count=1) for i in range(2)]
    assert as_ranks_say(unknown, alone) == unknown
    certain = with_visible(healthy_gpus(), {})
    assert as_ranks_say(certain, [gpu_rank(0, device_uuid=gpu_uuid(1))]) == certain
