"""Evidence of jobs over several machines, made from the healthy run: what the judges are tested on."""

import msgspec

from accel_doctor.evidence import Bound, Ending, Evidence, Interface, Machine, Rank, Reach, Setting
from accel_doctor.testing import changed, healthy_host, healthy_launch, healthy_rank, healthy_run

PORT = 29500


def address(number: int) -> str:
    return f"10.0.0.{number + 1}"


def machine(number: int, count: int = 2, **changes: object) -> Machine:
    """Return machine ``number`` of ``count``, which reached whom it should."""
    launch = healthy_launch(1)
    settings = {
        "num_processes": count,
        "num_machines": count,
        "machine_rank": number,
        "main_process_ip": address(0),
        "main_process_port": PORT,
    }
    named = {name: Setting(value=value, source=f"flag --{name}") for name, value in settings.items()}
    tried = ["main", *(f"node{n}-7" for n in (range(1, count) if number == 0 else (0,)))]
    healthy = Machine(
        id=f"node{number}-7",
        host=f"node{number}",
        rank=number,
        rank_source="flag --machine_rank",
        count=count,
        count_source="flag --num_machines",
        main_host=address(0),
        main_port=PORT,
        ended=True,
        ranks_seen=1,
        bound=Bound(backend="gloo", interface="eth0", address=address(number), host_name=f"node{number}"),
        listens=4000,
        reaches=tuple(reach(to, own=number == 0 and to == "main") for to in tried),
        launch=msgspec.structs.replace(launch, chosen_by="user", settings={**launch.settings, **named}),
        ending=Ending(exit_code=0),
    )
    return msgspec.structs.replace(healthy, **changes)


def reach(to: str = "main", how: str = "open", **changes: object) -> Reach:
    return msgspec.structs.replace(Reach(to=to, host=address(0), port=PORT, address=address(0), how=how), **changes)


def together(*machines: Machine, **changes: object) -> Evidence:
    """Return the healthy run on these machines, one rank each; on two healthy ones without any."""
    machines = machines or (machine(0), machine(1))
    host = healthy_host()
    hosts = tuple(
        msgspec.structs.replace(
            host,
            name=m.host,
            interfaces=(
                Interface(name="eth0", addresses=(address(n),), physical=True, speed_mbit_s=100_000),
                Interface(name="lo", addresses=("127.0.0.1",), loopback=True),
            ),
            bound=(m.bound,) if m.bound else (),
        )
        for n, m in enumerate(machines)
    )
    ranks = tuple(_alone_on(m.host, healthy_rank(n, len(machines))) for n, m in enumerate(machines))
    first = machines[0]
    evidence = healthy_run(hosts=hosts, ranks=ranks, machines=machines, launch=first.launch, ending=first.ending)
    return msgspec.structs.replace(evidence, **changes)


def _alone_on(host: str, rank: Rank) -> Rank:
    """Return a rank as the only one of its host."""
    here = changed(
        changed(rank, "group", local_rank=0, is_local_main=True), "guards", on_local_main=1, accelerator_print=1
    )
    return msgspec.structs.replace(here, host=host, local_rank=0)


def in_trouble(*machines: Machine) -> Evidence:
    """Return the same with launches that were stopped before a rank had joined."""
    stopped = tuple(msgspec.structs.replace(m, ending=Ending(stopped_by="stalled")) for m in machines)
    evidence = together(*stopped)
    waiting = tuple(msgspec.structs.replace(r, group=None, sweep=None) for r in evidence.world)
    return msgspec.structs.replace(evidence, ranks=waiting)
