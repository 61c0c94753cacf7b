"""Which devices CUDA_VISIBLE_DEVICES leaves to the ranks, in CUDA's order, by CUDA's rules and without CUDA."""

import re
from collections.abc import Iterable, Iterator, Mapping
from itertools import takewhile
from typing import NamedTuple, TypeVar

import msgspec

from accel_doctor.evidence import Device, Devices, MigDevice, Rank

T = TypeVar("T")

VARIABLE = "CUDA_VISIBLE_DEVICES"
ORDER = "CUDA_DEVICE_ORDER"
NONE_MEANT = ("", "-1", "none", "void", "NoDevFiles")
"""How users and schedulers say that no device is to be seen."""


class Choice(NamedTuple):
    """A device that CUDA would hand out, with its MIG instance if it has any."""

    device: Device
    instance: MigDevice | None = None


def with_visible(devices: Devices, environment: Mapping[str, str]) -> Devices:
    """Return devices with ``visible`` and ``cuda_index`` as this environment makes them."""
    value = environment.get(VARIABLE)
    entries = None if value is None else [entry.strip() for entry in value.split(",")]
    chosen = _everything(devices.devices) if entries is None else _choose(entries, devices.devices)
    dropped = () if entries is None else _dropped(entries, len(chosen))
    known = _order_known(devices.devices, environment)
    seen = _as_cuda_counts(chosen)
    return msgspec.structs.replace(
        devices,
        devices=tuple(_marked(d, seen, numbered=known) for d in devices.devices),
        visible_variable=value,
        unresolved=dropped,
        visible_known=known
        or entries is None
        or not _is_number(entries[0])
        or len(chosen) in (0, len(devices.devices)),
    )


def as_ranks_say(devices: Devices, ranks: Iterable[Rank]) -> Devices:
    """Return devices with the numbers that ranks found them by, matched by UUID, where CUDA's order is not known here.

    Where the ranks name every device that torch counts, the others are hidden. Ranks that number the devices unlike
    each other (each with a variable of its own) say nothing of the launch.
    """
    told = dict(_numbers(devices, ranks))
    if devices.visible_known or not told or len(set(told.values())) < len(told):
        return devices
    counts = {r.group.torch_device_count for r in ranks if r.group}
    complete = counts == {len(told)}
    return msgspec.structs.replace(
        devices,
        visible_known=complete,
        devices=tuple(
            msgspec.structs.replace(
                d, cuda_index=told.get(d.index), visible=d.index in told or (d.visible and not complete)
            )
            for d in devices.devices
        ),
    )


def _numbers(devices: Devices, ranks: Iterable[Rank]) -> Iterator[tuple[int, int]]:
    """Yield the index of each device that a rank names by UUID, and the rank's number for it."""
    by_uuid = {d.uuid.removeprefix("GPU-").lower(): d.index for d in devices.devices if d.uuid}
    for rank in ranks:
        number = re.fullmatch(r"cuda:(\d+)", rank.group.device) if rank.group else None
        uuid = rank.group.device_uuid if rank.group else None
        if number and uuid and (index := by_uuid.get(uuid.removeprefix("GPU-").lower())) is not None:
            yield index, int(number[1])


def _everything(devices: tuple[Device, ...]) -> list[Choice]:
    return [choice for device in devices for choice in _first_choice(device)]


def _first_choice(device: Device) -> list[Choice]:
    """Return what a device is to CUDA when named as a whole: itself, its first instance, or nothing."""
    if not device.mig:
        return [Choice(device)]
    return [Choice(device, device.mig_devices[0])] if device.mig_devices else []


def _choose(entries: list[str], devices: tuple[Device, ...]) -> list[Choice]:
    """Return what the entries name, up to the first that names nothing; a repetition makes the list void."""
    if not _is_number(entries[0]):
        names = _unless_repeated(list(takewhile(lambda entry: entry.startswith(entries[0][:4]), entries)))
        return _unless_repeated(_until_none(_find(name, devices) for name in names))
    numbers = _unless_repeated(_until_none(_number(entry) for entry in entries))
    return _until_none(next(iter(_everything(devices[n : n + 1])), None) for n in numbers)


def _until_none(items: Iterable[T | None]) -> list[T]:
    found: list[T] = []
    for item in items:
        if item is None:
            break
        found.append(item)
    return found


def _unless_repeated(items: list[T]) -> list[T]:
    return [] if any(item in items[:at] for at, item in enumerate(items)) else items


def _number(entry: str) -> int | None:
    """Return the number that an entry begins with, as the C library reads it."""
    number = re.match(r"\+?(\d+)", entry)
    return int(number[1]) if number else None


def _find(entry: str, devices: tuple[Device, ...]) -> Choice | None:
    """Return the one device or instance whose UUID begins so."""
    places = [c for c in _named(devices) if any(name.startswith(entry) for name in _names(c))]
    return places[0] if len(places) == 1 else None


def _is_number(entry: str) -> bool:
    return not entry.startswith(("GPU-", "MIG-"))


def _named(devices: Iterable[Device]) -> list[Choice]:
    """Return everything that has a UUID of its own."""
    return [
        choice
        for device in devices
        for choice in (*_first_choice(device), *(Choice(device, instance) for instance in device.mig_devices[1:]))
    ]


def _names(choice: Choice) -> list[str]:
    device, instance = choice
    if instance is None:
        return [device.uuid]
    return [instance.uuid, f"MIG-{device.uuid}/{instance.gpu_instance}/0"] + (
        [device.uuid] if instance == device.mig_devices[0] else []
    )


def _dropped(entries: list[str], used: int) -> tuple[str, ...]:
    rest = entries[used:]
    return () if rest and rest[0] in NONE_MEANT else tuple(rest)


def _order_known(devices: tuple[Device, ...], environment: Mapping[str, str]) -> bool:
    return environment.get(ORDER) == "PCI_BUS_ID" or len({d.name for d in devices}) <= 1


def _as_cuda_counts(chosen: list[Choice]) -> list[Choice]:
    """Return what one process can enumerate: with any MIG instance in the list, the first of these and nothing else."""
    return next(([c] for c in chosen if c.instance), chosen)


def _marked(device: Device, seen: list[Choice], *, numbered: bool) -> Device:
    at = next((i for i, choice in enumerate(seen) if choice.device is device), None)
    instance = None if at is None else seen[at].instance
    return msgspec.structs.replace(
        device,
        visible=at is not None,
        cuda_index=at if numbered else None,
        mig_devices=tuple(msgspec.structs.replace(m, visible=m == instance) for m in device.mig_devices),
    )
