"""LCH017: a group of ranks that exchanges activations or gathers weights leaves its NVLink island or its host."""

from collections.abc import Iterator
from typing import NamedTuple

from accel_checks._launches import launch_of
from accel_doctor.check import Check, Finding, Invariant, Judge, NotApplicable, Severity
from accel_doctor.evidence import Evidence, Launch
from accel_doctor.places import place_of
from accel_doctor.topology import islands

PREFIX = "parallelism_config_"


class Group(NamedTuple):
    """One dimension of the mesh: which ranks form a group."""

    setting: str
    what: str
    size: int
    stride: int
    """Distance between two neighbours of one group."""

    def members(self, first: int) -> list[int]:
        """Return the ranks of the group that begins with a rank."""
        return [first + self.stride * n for n in range(self.size)]

    def firsts(self, world: int) -> list[int]:
        """Return the first rank of every group."""
        return [r for r in range(world) if (r // self.stride) % self.size == 0]


def judge(evidence: Evidence) -> Iterator[Finding]:
    """Lay the mesh over hosts and NVLink islands, as accelerate numbers the ranks."""
    launch = launch_of(evidence)
    world, machines = launch.value("num_processes"), launch.value("num_machines") or 1
    groups = list(_groups(launch))
    if not groups:
        raise NotApplicable("no model-parallel or hybrid-sharded group is asked for")
    if not (isinstance(world, int) and isinstance(machines, int) and world > 0 and 0 < machines <= world):
        raise NotApplicable("nobody says how many processes there are")
    per_host = world // machines
    island_of = _island_of(evidence, per_host)
    for group in groups:
        if world % (group.size * group.stride):
            continue
        if leaving := _leaving(group, world, per_host):
            yield _across_hosts(launch, group, leaving, per_host)
        elif group.what != "sharding" and (torn := _torn(group, per_host, island_of)):
            yield _across_islands(launch, group, torn, island_of)


def _groups(launch: Launch) -> Iterator[Group]:
    """Yield what is laid out, the innermost first; plain sharding over all hosts is meant to leave them."""
    if not launch.value("use_parallelism_config"):
        return
    stride = 1
    for name, what in (("tp", "tensor parallelism"), ("sp", "sequence parallelism"), ("cp", "context parallelism")):
        size = _size(launch, name)
        if size > 1:
            yield Group(f"{PREFIX}{name}_size", what, size, stride)
        stride *= size
    shard, replicate = _size(launch, "dp_shard"), _size(launch, "dp_replicate")
    if shard > 1 and replicate > 1:
        yield Group(f"{PREFIX}dp_shard_size", "sharding", shard, stride)


def _size(launch: Launch, name: str) -> int:
    value = launch.value(f"{PREFIX}{name}_size")
    return value if isinstance(value, int) and value > 1 else 1


def _leaving(group: Group, world: int, per_host: int) -> list[int]:
    """Return the first group whose ranks lie on several hosts."""
    found = (group.members(first) for first in group.firsts(world))
    return next((ranks for ranks in found if len({r // per_host for r in ranks}) > 1), [])


def _island_of(evidence: Evidence, per_host: int) -> dict[int, int]:
    """Return the NVLink island of each local rank; empty where devices have none, or their order is not known."""
    devices = evidence.devices
    seen = [d for d in devices.devices if d.cuda_index is not None] if devices else []
    by_number = {d.cuda_index: (d.host, d.index) for d in seen}
    joined = islands(devices) if devices else []
    if any(n not in by_number for n in range(per_host)) or all(len(group) == 1 for group in joined):
        return {}
    return {n: next(i for i, group in enumerate(joined) if by_number[n] in group) for n in range(per_host)}


def _torn(group: Group, per_host: int, island_of: dict[int, int]) -> list[int]:
    """Return the first group of one host whose devices lie in several islands."""
    if not island_of:
        return []
    found = (group.members(first) for first in group.firsts(per_host))
    return next((ranks for ranks in found if len({island_of[r] for r in ranks}) > 1), [])


def _across_hosts(launch: Launch, group: Group, ranks: list[int], per_host: int) -> Finding:
    hosts = len({r // per_host for r in ranks})
    return Finding(
        message=f"{launch.source(group.setting)} asks for {group.what} over {group.size} ranks, and with {per_host} "
        f"ranks a host the group of ranks {_listed(ranks)} spans {hosts} hosts",
        severity=Severity.WARNING,
        seen=f"{group.setting}={group.size}, {per_host} ranks a host",
        wanted=f"at most {per_host} ranks in a group, and a divisor of it",
        values={"group_size": group.size, "ranks_a_host": per_host, "hosts": hosts},
        ranks=tuple(ranks[:8]),
        location=place_of(launch, group.setting),
    )


def _across_islands(launch: Launch, group: Group, ranks: list[int], island_of: dict[int, int]) -> Finding:
    largest = max(list(island_of.values()).count(i) for i in set(island_of.values()))
    return Finding(
        message=f"{launch.source(group.setting)} asks for {group.what} over {group.size} ranks, and no NVLink joins "
        f"all GPUs of ranks {_listed(ranks)}: they exchange over PCIe",
        severity=Severity.WARNING,
        seen=f"{group.setting}={group.size}, at most {largest} GPUs joined by NVLink",
        wanted="a group within one NVLink island",
        values={"group_size": group.size, "island_gpus": largest},
        ranks=tuple(ranks[:8]),
        location=place_of(launch, group.setting),
    )


def _listed(ranks: list[int]) -> str:
    numbers = [str(r) for r in ranks]
    return ", ".join(numbers) if len(numbers) <= 8 else f"{', '.join(numbers[:7])} … {numbers[-1]}"


CHECK = Check(
    id="LCH017",
    name="model-parallel-across-hosts",
    invariant=Invariant.FITS,
    title="A model-parallel or hybrid-sharded group leaves its host or its NVLink island",
    why="These groups exchange in every layer, forward and backward: over a network or PCIe each exchange costs many "
    "times what it does over NVLink.",
    fix="make the group at most as large as the GPUs that NVLink joins, and let the data-parallel dimension span hosts",
    severity=Severity.WARNING,
    judges=(Judge(needs=("launch",), judge=judge),),
    consequence_of=("LCH007", "LCH011"),
)
