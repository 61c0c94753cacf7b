"""Which machine of a job over several this doctor examines, by its launch and by what its scheduler says."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from accel_doctor.errors import DoctorError
from accel_doctor.evidence import Launch, Value
from accel_doctor.launch.ports import DEFAULT_PORT
from accel_doctor.launch.resolve import resolve

SEAT = (
    *("SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_NNODES", "SLURM_NODEID", "SLURM_NTASKS", "SLURM_STEP_NUM_TASKS"),
    *("SLURM_STEP_TASKS_PER_NODE", "SLURM_TASKS_PER_NODE", "SLURM_PROCID", "SLURM_LOCALID"),
    *("OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_LOCAL_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK"),
    *("PMI_SIZE", "PMI_RANK", "MPI_LOCALNRANKS", "MPI_LOCALRANKID"),
    *("JOB_COMPLETION_INDEX", "PET_NNODES", "PET_NODE_RANK", "GROUP_RANK"),
)
"""What schedulers say of one task; no secrets."""
_PROCESSES = (
    ("RANK", "WORLD_SIZE"),
    ("PMI_RANK", "PMI_SIZE"),
    ("OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"),
    ("MV2_COMM_WORLD_RANK", "MV2_COMM_WORLD_SIZE"),
)
"""Where accelerate looks for the rank of a process that no launcher of torch's started, in its order."""
_HINTS = ("SLURM_NODEID", "JOB_COMPLETION_INDEX", "PET_NODE_RANK")


class Place(NamedTuple):
    """One machine, or one process, among those of a job."""

    unit: str
    """``machine``, or ``process`` where each doctor starts one rank."""
    rank: int | None
    """``None`` where only the rendezvous tells."""
    rank_source: str
    size: int
    size_source: str
    seat: dict[str, str]
    main_host: str
    main_port: int | None

    @property
    def first(self) -> bool | None:
        """Return whether it is the first; ``None`` where that is not known."""
        return None if self.rank is None else self.rank == 0


def find_place(words: Sequence[str], environment: Mapping[str, str], cwd: Path) -> Place | None:
    """Return the place of a launch that other doctors of the same job share; ``None`` where it is of one machine.

    A launch that cannot be read is of one machine: its exam says what is wrong with it.
    """
    try:
        launch = resolve(words, environment=environment, device_count=0, torch_build=None, cwd=cwd).launch
    except DoctorError:
        return None
    return place_of_launch(launch, environment)


def place_of_launch(launch: Launch, environment: Mapping[str, str]) -> Place | None:
    """Return the place that a launch and its environment name; ``None`` where they are of one machine."""
    seat = {name: environment[name] for name in SEAT if name in environment}
    if launch.launcher == "python":
        return _process(environment, seat)
    machines = _number(launch.value("num_machines")) or 1
    if _starts_elsewhere(launch):
        return None
    if machines < 2:
        return _repeated(launch, seat)
    meets = launch.value("rdzv_backend") == "c10d"
    index = _hint(environment) if meets else _number(launch.value("machine_rank"))
    host, port = _main(launch)
    return Place(
        unit="machine",
        rank=None if meets else index or 0,
        rank_source="the rendezvous" if meets else launch.source("machine_rank"),
        size=machines,
        size_source=launch.source("num_machines"),
        seat=seat,
        main_host=host,
        main_port=port,
    )


def _starts_elsewhere(launch: Launch) -> bool:
    """Return whether this machine's launcher starts the other machines' ranks itself, by ssh or pdsh."""
    if launch.launcher == "deepspeed":
        return launch.value("machine_rank") is None
    multinode = launch.value("deepspeed_multinode_launcher")
    return launch.strategy == "DEEPSPEED" and launch.launcher == "accelerate" and multinode != "standard"


def _process(environment: Mapping[str, str], seat: dict[str, str]) -> Place | None:
    for rank, size in _PROCESSES:
        index, count = environment.get(rank, ""), environment.get(size, "")
        if index.isdecimal() and count.isdecimal() and int(count) > 1:
            port = environment.get("MASTER_PORT", "")
            return Place(
                unit="process",
                rank=int(index),
                rank_source=f"environment {rank}",
                size=int(count),
                size_source=f"environment {size}",
                seat=seat,
                main_host=environment.get("MASTER_ADDR", ""),
                main_port=int(port) if port.isdecimal() else None,
            )
    return None


def _repeated(launch: Launch, seat: Mapping[str, str]) -> Place | None:
    """Return the place of a launch of one machine that a scheduler starts several times: each would be a world."""
    tasks = seat.get("SLURM_STEP_NUM_TASKS") or (seat.get("SLURM_NTASKS") if "SLURM_STEP_ID" in seat else None)
    index, source = seat.get("SLURM_PROCID", ""), "environment SLURM_PROCID"
    if tasks is None:
        tasks, index, source = seat.get("OMPI_COMM_WORLD_SIZE"), seat.get("OMPI_COMM_WORLD_RANK", ""), "mpirun"
    if tasks is None or not tasks.isdecimal() or int(tasks) < 2 or not index.isdecimal():
        return None
    host, port = _main(launch)
    return Place(
        unit="task",
        rank=int(index),
        rank_source=source,
        size=int(tasks),
        size_source=source,
        seat=dict(seat),
        main_host=host,
        main_port=port,
    )


def _hint(environment: Mapping[str, str]) -> int | None:
    found = next((environment[name] for name in _HINTS if environment.get(name, "").isdecimal()), None)
    return None if found is None else int(found)


def _main(launch: Launch) -> tuple[str, int | None]:
    """Return where the ranks go to meet."""
    endpoint = launch.value("rdzv_endpoint")
    if isinstance(endpoint, str) and endpoint:
        host, colon, port = endpoint.rpartition(":")
        return (host.strip("[]"), int(port)) if colon and port.isdecimal() else (endpoint, DEFAULT_PORT)
    host_value = launch.value("main_process_ip")
    return str(host_value or ""), _number(launch.value("main_process_port")) or DEFAULT_PORT


def _number(value: Value) -> int | None:
    if isinstance(value, str) and value.isdecimal():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) else None
