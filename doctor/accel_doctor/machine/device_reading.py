"""What one device says of itself, and one look at what it does."""

import time
from pathlib import Path
from typing import TypeVar

from accel_doctor.evidence import Device, MigDevice, Sample
from accel_doctor.machine import nvml
from accel_doctor.machine.nvml_activity import Activity
from accel_doctor.machine.nvml_links import (
    MAX_NVLINKS,
    NVLINK_GB_S,
    NvLinks,
    ends,
    nvlink_end,
    nvlink_errors,
    nvlink_up,
)
from accel_doctor.machine.pci import seat

T = TypeVar("T")


class Interview:
    """Questions to one device (or a pair); keeps why an answer is missing."""

    def __init__(self, door: nvml.Nvml, *handles: nvml.Handle) -> None:
        self._door = door
        self._handles = handles
        self.absent: dict[str, str] = {}
        self.lost = False

    def __call__(self, field: str, question: nvml.Question[T]) -> T | None:
        """Return the answer that fills ``field``, or ``None``."""
        reply = self._door.ask(question, *self._handles)
        self.lost = self.lost or reply.lost
        if reply.value is None and reply.reason:
            self.absent[field] = reply.reason
        return reply.value


def read_device(ask: Interview, index: int, host: str, root: Path) -> Device:
    """Return what a device is; what it does not say is left in ``ask.absent``."""
    bus_id = ask("pci_bus_id", nvml.BUS_ID) or ""
    place = seat(root, bus_id)
    memory, links = ask("memory_total_bytes", nvml.MEMORY), nvlinks(ask)
    fabric, rows = ask("fabric", nvml.FABRIC), ask("remap_pending", nvml.REMAPPED)
    return Device(
        index=index,
        host=host,
        uuid=ask("uuid", nvml.UUID) or "",
        name=ask("name", nvml.NAME) or "",
        pci_bus_id=bus_id,
        numa_node=place.numa_node,
        memory_total_bytes=memory and memory.total_bytes,
        compute_capability=ask("compute_capability", nvml.COMPUTE_CAPABILITY),
        display=ask("display", nvml.DISPLAY),
        mig=ask("mig", nvml.MIG),
        compute_mode=ask("compute_mode", nvml.COMPUTE_MODE),
        power_limit_w=ask("power_limit_w", nvml.POWER_LIMIT_W),
        sm_clock_max_mhz=ask("sm_clock_max_mhz", nvml.SM_CLOCK_MAX_MHZ),
        pcie_generation_max=ask("pcie_generation_max", nvml.PCIE_GENERATION_MAX),
        pcie_width_max=ask("pcie_width_max", nvml.PCIE_WIDTH_MAX),
        pcie_slot_width=place.slot_width,
        nvlinks_active=links and links.active,
        nvlinks_total=links and links.total,
        nvlink_gb_s=ask("nvlink_gb_s", NVLINK_GB_S) if links else None,
        nvlink_peers=links and links.peers,
        nvlink_errors=links and links.errors,
        fabric=fabric and fabric.state,
        fabric_error=fabric.error if fabric and fabric.state else None,
        fabric_degraded=fabric and fabric.degraded,
        pcie_replays=ask("pcie_replays", nvml.PCIE_REPLAYS),
        ecc_corrected=ask("ecc_corrected", nvml.ECC_CORRECTED),
        ecc_uncorrected=ask("ecc_uncorrected", nvml.ECC_UNCORRECTED),
        remapped_rows=rows and rows.rows,
        remap_pending=rows and rows.pending,
        remap_failed=rows and rows.failed,
        retired_pages_pending=ask("retired_pages_pending", nvml.RETIRED_PAGES_PENDING),
        recovery_action=ask("recovery_action", nvml.RECOVERY_ACTION),
    )


def read_mig_devices(door: nvml.Nvml, handle: nvml.Handle) -> tuple[MigDevice, ...]:
    """Return a device's MIG instances."""
    found = []
    for instance in door.mig_handles(handle):
        memory = door.ask(nvml.MEMORY, instance).value
        found.append(
            MigDevice(
                uuid=door.ask(nvml.UUID, instance).value or "",
                name=door.ask(nvml.NAME, instance).value or "",
                gpu_instance=door.ask(nvml.GPU_INSTANCE, instance).value,
                memory_total_bytes=memory and memory.total_bytes,
            )
        )
    return tuple(found)


def nvlinks(ask: Interview) -> NvLinks | None:
    """Return how many links there are, are up, and the errors they counted; ``None`` for a device without."""
    states: list[bool] = []
    for link in range(MAX_NVLINKS):
        up = ask("nvlinks_total", nvlink_up(link))
        if up is None:
            break
        states.append(up)
    if not states:
        return None
    ask.absent.pop("nvlinks_total", None)
    alive = [link for link, up in enumerate(states) if up]
    return NvLinks(len(alive), len(states), _errors(ask, alive), _peers(ask, alive))


def _peers(ask: Interview, links: list[int]) -> dict[str, int] | None:
    told = [ask("nvlink_peers", nvlink_end(link)) for link in links]
    known = [end for end in told if end]
    return ends(known) if len(known) == len(links) else None


def _errors(ask: Interview, links: list[int]) -> int | None:
    counted = [ask("nvlink_errors", question) for link in links for question in nvlink_errors(link)]
    known = [count for count in counted if count is not None]
    return sum(known) if known else None


def look(ask: Interview, phase: str, activity: Activity = Activity()) -> Sample:  # noqa: B008 - immutable
    """Return one look at what a device does, and what it did since the last look at its activity."""
    use, memory = ask("busy_pct", nvml.UTILIZATION), ask("memory_used_bytes", nvml.MEMORY)
    return Sample(
        at_s=time.time(),
        busy_pct=use and use.busy_pct,
        memory_busy_pct=use and use.memory_busy_pct,
        power_w=ask("power_w", nvml.POWER_W),
        memory_used_bytes=None if memory is None else memory.used_bytes,
        sm_clock_mhz=ask("sm_clock_mhz", nvml.SM_CLOCK_MHZ),
        temperature_c=ask("temperature_c", nvml.TEMPERATURE_C),
        event_reasons=ask("event_reasons", nvml.EVENT_REASONS),
        pcie_generation=ask("pcie_generation", nvml.PCIE_GENERATION),
        pcie_width=ask("pcie_width", nvml.PCIE_WIDTH),
        phase=phase,
        **activity._asdict(),
    )
