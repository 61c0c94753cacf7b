"""The rank contract of each known operation: which ranks must, or may, reach it. The linter and the tracer share it."""

from enum import Enum
from typing import NamedTuple


class Contract(str, Enum):
    """Which ranks an operation is for."""

    ALL = "all"
    """Every rank must reach it, as often as its peers and in the same order."""
    ONE = "one"
    """One rank does it for all; on every rank it is done, or shown, once a rank."""
    ONE_FIRST = "one_first"
    """One rank first, then the others find it done: downloads, caches."""
    ANY = "any"
    """Safe on every rank and on some: it guards itself, or is the rank's own."""


class Kind(str, Enum):
    """What an operation does."""

    COLLECTIVE = "collective"
    BARRIER = "barrier"
    PRINT = "print"
    LOG = "log"
    BAR = "bar"
    TRACKER = "tracker"
    WRITE = "write"
    SAVE = "save"
    STATE = "state"
    """A checkpoint that all ranks write or read together."""
    LOAD = "load"
    DOWNLOAD = "download"
    PUSH = "push"
    FOLDER = "folder"
    DELETE = "delete"
    """Deletes or renames."""
    GUARDED = "guarded"
    """Does its own guarding."""


class Operation(NamedTuple):
    """One operation by its full name, with its contract."""

    name: str
    """Dotted, by its public home: ``torch.distributed.all_reduce``; ``*.push_to_hub`` for a method that is known by its
    name alone."""
    contract: Contract
    kind: Kind
    strategies: tuple[str, ...] = ()
    """The strategies under which the contract binds; empty for all."""

    @property
    def short(self) -> str:
        """Return the last part of the name."""
        return self.name.rpartition(".")[2]


SHARDED = ("FSDP", "DEEPSPEED")

_ACCELERATOR_COLLECTIVES = (
    "gather gather_for_metrics reduce pad_across_processes check_trigger backward prepare prepare_model "
    "join_uneven_inputs"
)
_ACCELERATOR_STATE = "save_state load_state save_model get_state_dict"
_ACCELERATOR_GUARDED = (
    "print log init_trackers end_training save log_images set_trigger unwrap_model autocast no_sync accumulate "
    "free_memory clear prepare_data_loader prepare_optimizer prepare_scheduler register_for_checkpointing "
    "skip_first_batches split_between_processes get_tracker unscale_gradients"
)
_DIST_COLLECTIVES = (
    "all_reduce all_reduce_coalesced all_gather all_gather_into_tensor all_gather_object all_gather_coalesced "
    "reduce reduce_scatter reduce_scatter_tensor all_to_all all_to_all_single broadcast broadcast_object_list "
    "gather gather_object scatter scatter_object_list init_process_group new_group"
)
_OPERATIONS_COLLECTIVES = "gather gather_object reduce broadcast broadcast_object_list pad_across_processes"
_LOG_LEVELS = "debug info warning error critical exception log"
_WANDB = "init log watch save log_artifact summary alert"
_MLFLOW = (
    "start_run log_metric log_metrics log_param log_params log_artifact log_artifacts log_dict log_text log_figure "
    "set_experiment set_tag set_tags"
)


def _table(
    prefix: str, names: str, contract: Contract, kind: Kind, strategies: tuple[str, ...] = ()
) -> list[Operation]:
    return [Operation(f"{prefix}.{name}", contract, kind, strategies) for name in names.split()]


_C, _K = Contract, Kind
OPERATIONS: dict[str, Operation] = {
    operation.name: operation
    for operation in (
        *_table("accelerate.Accelerator", _ACCELERATOR_COLLECTIVES, _C.ALL, _K.COLLECTIVE),
        *_table("accelerate.Accelerator", "clip_grad_norm_ clip_grad_value_", _C.ALL, _K.COLLECTIVE, SHARDED),
        *_table("accelerate.Accelerator", _ACCELERATOR_STATE, _C.ALL, _K.STATE, SHARDED),
        *_table("accelerate.Accelerator", _ACCELERATOR_GUARDED, _C.ANY, _K.GUARDED),
        *_table("accelerate.Accelerator", "wait_for_everyone main_process_first", _C.ALL, _K.BARRIER),
        *_table("accelerate.Accelerator", "local_main_process_first", _C.ALL, _K.BARRIER),
        *_table("accelerate.PartialState", "wait_for_everyone main_process_first", _C.ALL, _K.BARRIER),
        *_table("accelerate.PartialState", "local_main_process_first", _C.ALL, _K.BARRIER),
        *_table("accelerate.PartialState", "print split_between_processes", _C.ANY, _K.GUARDED),
        *_table("accelerate.utils", _OPERATIONS_COLLECTIVES, _C.ALL, _K.COLLECTIVE),
        *_table("accelerate.utils", "wait_for_everyone", _C.ALL, _K.BARRIER),
        *_table("accelerate.utils", "save_fsdp_model load_fsdp_model save_fsdp_optimizer", _C.ALL, _K.STATE),
        *_table("accelerate.utils", "load_fsdp_optimizer", _C.ALL, _K.STATE),
        *_table("accelerate.utils", "tqdm save", _C.ANY, _K.GUARDED),
        *_table("torch.distributed", _DIST_COLLECTIVES, _C.ALL, _K.COLLECTIVE),
        *_table("torch.distributed", "barrier monitored_barrier", _C.ALL, _K.BARRIER),
        *_table(
            "torch.distributed.checkpoint", "save load async_save save_state_dict load_state_dict", _C.ALL, _K.STATE
        ),
        *_table("torch.distributed.checkpoint.state_dict", "get_state_dict get_model_state_dict", _C.ALL, _K.STATE),
        *_table("torch.distributed.checkpoint.state_dict", "set_state_dict set_model_state_dict", _C.ALL, _K.STATE),
        *_table("deepspeed.DeepSpeedEngine", "backward step", _C.ALL, _K.COLLECTIVE),
        *_table("deepspeed.DeepSpeedEngine", "save_checkpoint load_checkpoint", _C.ALL, _K.STATE),
        *_table("deepspeed.DeepSpeedEngine", "save_16bit_model", _C.ALL, _K.STATE),
        *_table("transformers.Trainer", "train evaluate predict save_model", _C.ALL, _K.STATE),
        *_table("transformers.Trainer", "save_state push_to_hub log", _C.ANY, _K.GUARDED),
        *_table("lightning.Trainer", "fit test validate predict save_checkpoint", _C.ALL, _K.STATE),
        *_table("lightning.Fabric", "barrier", _C.ALL, _K.BARRIER),
        *_table("lightning.Fabric", "all_gather all_reduce broadcast backward", _C.ALL, _K.COLLECTIVE),
        *_table("lightning.Fabric", "save load", _C.ALL, _K.STATE),
        *_table("builtins", "print", _C.ONE, _K.PRINT),
        *_table("pprint", "pprint pp", _C.ONE, _K.PRINT),
        *_table("rich", "print", _C.ONE, _K.PRINT),
        *_table("click", "echo secho", _C.ONE, _K.PRINT),
        *_table("*", "print_trainable_parameters", _C.ONE, _K.PRINT),
        *_table("torchinfo", "summary", _C.ANY, _K.PRINT),
        *_table("logging.Logger", _LOG_LEVELS, _C.ONE, _K.LOG),
        *_table("logging", _LOG_LEVELS, _C.ONE, _K.LOG),
        *_table("loguru.logger", f"{_LOG_LEVELS} success trace", _C.ONE, _K.LOG),
        *_table("accelerate.logging.MultiProcessAdapter", _LOG_LEVELS, _C.ANY, _K.GUARDED),
        *_table("tqdm", "tqdm trange", _C.ONE, _K.BAR),
        *_table("rich.progress", "track", _C.ONE, _K.BAR),
        *_table("wandb", _WANDB, _C.ONE, _K.TRACKER),
        *_table("swanlab", "init log", _C.ONE, _K.TRACKER),
        *_table("trackio", "init log", _C.ONE, _K.TRACKER),
        *_table("mlflow", _MLFLOW, _C.ONE, _K.TRACKER),
        *_table("neptune", "init_run init", _C.ONE, _K.TRACKER),
        *_table("comet_ml", "Experiment start", _C.ONE, _K.TRACKER),
        *_table("aim", "Run", _C.ONE, _K.TRACKER),
        *_table("clearml.Task", "init", _C.ONE, _K.TRACKER),
        *_table("torch.utils.tensorboard", "SummaryWriter", _C.ONE, _K.TRACKER),
        *_table("tensorboardX", "SummaryWriter", _C.ONE, _K.TRACKER),
        *_table("builtins", "open", _C.ONE, _K.WRITE),
        *_table("numpy", "save savez savez_compressed savetxt", _C.ONE, _K.WRITE),
        *_table("matplotlib.pyplot", "savefig", _C.ONE, _K.WRITE),
        *_table("torchvision.utils", "save_image", _C.ONE, _K.WRITE),
        *_table("torchaudio", "save", _C.ONE, _K.WRITE),
        *_table("imageio", "imwrite mimsave imsave", _C.ONE, _K.WRITE),
        *_table("cv2", "imwrite", _C.ONE, _K.WRITE),
        *_table("joblib", "dump", _C.ONE, _K.WRITE),
        *_table("*", "to_csv to_json to_parquet to_pickle to_excel write_text write_bytes", _C.ONE, _K.WRITE),
        *_table("*", "savefig save_to_disk", _C.ONE, _K.WRITE),
        *_table("torch", "save", _C.ONE, _K.SAVE),
        *_table("safetensors.torch", "save_file save_model", _C.ONE, _K.SAVE),
        *_table("*", "save_pretrained save_weights", _C.ONE, _K.SAVE),
        *_table("shutil", "copy copy2 copyfile copytree make_archive", _C.ONE, _K.WRITE),
        *_table("shutil", "move rmtree", _C.ONE, _K.DELETE),
        *_table("os", "remove unlink rename replace rmdir removedirs", _C.ONE, _K.DELETE),
        *_table("*", "unlink rmdir", _C.ONE, _K.DELETE),
        *_table("os", "mkdir makedirs", _C.ONE_FIRST, _K.FOLDER),
        *_table("*", "mkdir", _C.ONE_FIRST, _K.FOLDER),
        *_table("torch", "load", _C.ANY, _K.LOAD),
        *_table("datasets", "load_dataset", _C.ONE_FIRST, _K.DOWNLOAD),
        *_table("*", "from_pretrained", _C.ONE_FIRST, _K.DOWNLOAD),
        *_table("huggingface_hub", "snapshot_download hf_hub_download", _C.ONE_FIRST, _K.DOWNLOAD),
        *_table("torch.hub", "load load_state_dict_from_url download_url_to_file", _C.ONE_FIRST, _K.DOWNLOAD),
        *_table("urllib.request", "urlretrieve", _C.ONE_FIRST, _K.DOWNLOAD),
        *_table("gdown", "download download_folder", _C.ONE_FIRST, _K.DOWNLOAD),
        *_table("wget", "download", _C.ONE_FIRST, _K.DOWNLOAD),
        *_table("nltk", "download", _C.ONE_FIRST, _K.DOWNLOAD),
        *_table("huggingface_hub", "create_repo upload_folder upload_file", _C.ONE, _K.PUSH),
        *_table("huggingface_hub.HfApi", "create_repo upload_folder upload_file", _C.ONE, _K.PUSH),
        *_table("huggingface_hub.Repository", "push_to_hub git_push", _C.ONE, _K.PUSH),
        *_table("*", "push_to_hub", _C.ONE, _K.PUSH),
    )
}

ALIASES = {
    "accelerate.accelerator.Accelerator": "accelerate.Accelerator",
    "accelerate.state.PartialState": "accelerate.PartialState",
    "accelerate.state.AcceleratorState": "accelerate.PartialState",
    "accelerate.utils.operations": "accelerate.utils",
    "accelerate.utils.tqdm.tqdm": "accelerate.utils.tqdm",
    "torch.distributed.distributed_c10d": "torch.distributed",
    "tqdm.auto": "tqdm",
    "tqdm.notebook": "tqdm",
    "tqdm.std": "tqdm",
    "tqdm.rich": "tqdm",
    "tqdm.asyncio": "tqdm",
    "io.open": "builtins.open",
    "pytorch_lightning": "lightning",
    "lightning.pytorch": "lightning",
    "lightning.fabric": "lightning",
    "torch.utils.tensorboard.writer": "torch.utils.tensorboard",
    "huggingface_hub.hf_api": "huggingface_hub",
    "datasets.load": "datasets",
}
"""Where a name is found, and its public home; prefixes, longest first."""


def canonical(name: str) -> str:
    """Return the public name of what was imported from elsewhere: ``tqdm.auto.tqdm`` is ``tqdm.tqdm``."""
    head = name
    while head:
        if head in ALIASES:
            return ALIASES[head] + name[len(head) :]
        head = head.rpartition(".")[0]
    return name


def operation(name: str) -> Operation | None:
    """Return what is known of an operation by its full name; a method may be known by its own name."""
    name = canonical(name)
    return OPERATIONS.get(name) or OPERATIONS.get(f"*.{name.rpartition('.')[2]}")


def extended(settings: dict[str, str]) -> dict[str, Operation]:
    """Return the operations a user adds: ``{"mylib.save": "one"}``; the kind follows the contract.

    Raises:
        ValueError: no contract has that name.
    """
    kinds = {Contract.ALL: Kind.COLLECTIVE, Contract.ONE: Kind.WRITE, Contract.ONE_FIRST: Kind.DOWNLOAD}
    contracts = {name: Contract(value) for name, value in settings.items()}
    return {name: Operation(name, c, kinds.get(c, Kind.GUARDED)) for name, c in contracts.items()}
