"""What was asked of the launcher, and where each value came from."""

from accel_doctor.evidence.base import Record, Value


class Candidate(Record, frozen=True, kw_only=True):
    """One place that names a setting."""

    value: Value
    source: str
    """``flag --num_processes``, ``train.yaml:7``, ``environment ACCELERATE_USE_CPU``, ``default`` or ``doctor``."""
    ignored: str = ""
    """Why this place cannot set it at all; empty where it is in force or was only outranked."""


class Setting(Record, frozen=True, kw_only=True):
    """The value of one launch setting that is in force, and every place that named it."""

    value: Value
    source: str
    candidates: tuple[Candidate, ...] = ()
    """Every place that named it, the winner first."""
    reaches_ranks: bool = True
    note: str = ""
    """Why the value does not reach the ranks, or what changes it on the way."""


class ConfigKey(Record, frozen=True, kw_only=True):
    """One key of a config file as it stands there."""

    key: str
    """Dotted: ``num_processes``, ``fsdp_config.fsdp_version``."""
    value: Value
    line: int | None = None
    known: bool = True
    expected: str = ""
    """The values or type this key takes; empty when the value fits."""
    note: str = ""
    """What an unknown key may be: one of another version, misplaced or misspelt."""


class ConfigFile(Record, frozen=True, kw_only=True):
    """One file that configures the launch."""

    path: str
    kind: str
    """``accelerate`` or ``deepspeed``."""
    picked: str
    """``flag``, ``environment``, ``default`` (found unasked) or ``config`` (named by another file)."""
    keys: tuple[ConfigKey, ...] = ()
    error: str = ""
    """Why it could not be read; then there are no keys."""
    error_line: int | None = None


class Refusal(Record, frozen=True, kw_only=True):
    """Why a launch will fail by the launcher's own rules, known before it starts."""

    about: str
    """``config``, ``conflict``, ``machines``, ``program``: the launcher starts no rank; ``ranks``: each dies here;
    ``clash``: each dies anywhere, of settings that contradict each other."""
    why: str
    settings: tuple[str, ...] = ()
    """The settings it comes from."""


class Rendezvous(Record, frozen=True, kw_only=True):
    """Where the ranks meet, as it was before the launch."""

    port: int
    source: str
    taken: bool
    """Something on this machine listened there."""
    holder_pid: int | None = None
    """Who; ``None`` where the system does not say (another user's process)."""
    holder: str = ""
    """Its program and script, without its words."""


class Launch(Record, frozen=True, kw_only=True):
    """The resolved launch of one machine."""

    launcher: str
    """``accelerate``, ``torchrun``, ``deepspeed`` or ``python``."""
    argv: tuple[str, ...]
    """The command as it was started."""
    script: tuple[str, ...] = ()
    """The user's script or ``-m module`` and its words, secrets left out; empty where the launch names none."""
    assigned: dict[str, str] = {}
    """Variables set for this launch alone, by words before the launcher or by the doctor; those on the allow-list."""
    settings: dict[str, Setting]
    """By accelerate's own names (num_processes, num_machines, machine_rank, distributed_type, mixed_precision,
    use_cpu, gpu_ids, main_process_ip, main_process_port, fsdp_*, deepspeed_* …)."""
    config_files: tuple[ConfigFile, ...] = ()
    chosen_by: str = "user"
    """``user`` (flags or a config), ``accelerate`` (its defaults) or ``doctor`` (two gloo ranks: nothing else here)."""
    asked_processes: int | None = None
    """Ranks asked for on this machine; ``None`` where nobody chose a number."""
    strategy: str = "DDP"
    """``NONE``, ``DDP``, ``FSDP``, ``DEEPSPEED``, ``MEGATRON_LM``, ``XLA``."""
    refusals: tuple[Refusal, ...] = ()
    """Why this launch cannot work."""
    rendezvous: Rendezvous | None = None
    """``None`` where no port is fixed before the start, or another machine holds it."""
    read_from: str = ""
    """The file, and the line of the command where it has one, that a lint read it from: ``run.sh:3``."""
    devices_seen: int | None = None
    """Devices that torch sees under this launch, as resolved before it."""

    def value(self, name: str) -> Value:
        """Return the value in force of a setting, or ``None``."""
        setting = self.settings.get(name)
        return None if setting is None else setting.value

    def source(self, name: str) -> str:
        """Return where the value in force of a setting came from."""
        setting = self.settings.get(name)
        return "default" if setting is None else setting.source


class Ending(Record, frozen=True, kw_only=True):
    """How the launched command ended."""

    exit_code: int | None = None
    signal: int | None = None
    """The signal that killed the launcher, if one did."""
    stopped_by: str = ""
    """Empty when it ended by itself; else ``deadline``, ``frozen``, ``stalled``, ``dead-rank`` or ``interrupt``."""
    launcher_state: str = ""
    """State letter of the launcher's process at the last look."""
    output_tail: tuple[str, ...] = ()
    """The last lines of what the launcher and the ranks printed."""
    left_over: tuple[int, ...] = ()
    """Pids that were still alive after the stop."""
