"""The flags of the launchers, as data: accelerate 1.15, torchrun of torch 2.13, DeepSpeed 0.19.

Tests compare the first two with the launchers' own parsers.
"""

from typing import NamedTuple

from accel_doctor.evidence import Value


class Flag(NamedTuple):
    """One flag of a launcher."""

    name: str
    """Where the launcher keeps its value: ``num_processes``."""
    kind: str = "text"
    """``text``, ``int``, ``float``, ``bool`` (Python's ``bool(text)``), ``append``, ``switch`` or ``off``."""
    default: Value = None
    choices: tuple[str, ...] = ()
    spelled: tuple[str, ...] = ()
    """The spellings where they are not just ``--name``."""


class Program(NamedTuple):
    """A launcher's command line."""

    name: str
    flags: tuple[Flag, ...]
    abbreviates: bool = False
    """Unambiguous prefixes of a flag are taken for it."""
    hyphens: bool = True
    """``-`` may stand for ``_`` in a flag."""

    @property
    def defaults(self) -> dict[str, Value]:
        """Return the value of each flag that nobody gives."""
        return {flag.name: flag.default for flag in reversed(self.flags)}

    def flag(self, name: str) -> Flag | None:
        """Return the flag of this name, or ``None``."""
        return next((flag for flag in self.flags if flag.name == name), None)


def _texts(*names: str) -> tuple[Flag, ...]:
    return tuple(Flag(name) for name in names)


def _ints(*names: str, default: Value = None) -> tuple[Flag, ...]:
    return tuple(Flag(name, "int", default) for name in names)


def _switches(*names: str) -> tuple[Flag, ...]:
    return tuple(Flag(name, "switch", default=False) for name in names)


def _bools(*names: str) -> tuple[Flag, ...]:
    return tuple(Flag(name, "bool", default=False) for name in names)


DYNAMO_BACKENDS = (
    *("no", "eager", "aot_eager", "inductor", "aot_ts_nvfuser", "nvprims_nvfuser", "cudagraphs", "ofi", "fx2trt"),
    *("onnxrt", "tensorrt", "aot_torchxla_trace_once", "torhchxla_trace_once", "tvm"),
)

_COMMON = (
    *_texts("config_file"),
    Flag("quiet", "switch", spelled=("--quiet", "-q")),
    *_switches("cpu", "multi_gpu", "tpu"),
    Flag("mixed_precision", choices=("no", "fp16", "bf16", "fp8")),
    *_ints("num_processes", "num_machines", "num_cpu_threads_per_process"),
    *_switches("enable_cpu_affinity"),
    Flag("dynamo_backend", choices=DYNAMO_BACKENDS),
    Flag("dynamo_mode", default="default", choices=("default", "reduce-overhead", "max-autotune")),
    *_switches("dynamo_use_fullgraph", "dynamo_use_dynamic", "dynamo_use_regional_compilation"),
    *_switches("use_deepspeed", "use_fsdp", "use_parallelism_config", "use_megatron_lm"),
    *_texts("gpu_ids"),
    *_switches("same_network"),
    *_ints("machine_rank"),
    *_texts("main_process_ip"),
    *_ints("main_process_port"),
    Flag("tee", default="0", spelled=("-t", "--tee")),
    *_texts("log_dir"),
    Flag("role", default="default"),
    Flag("rdzv_backend", default="static"),
    Flag("rdzv_conf", default=""),
    *_ints("max_restarts", default=0),
    Flag("monitor_interval", "float", 0.1),
    Flag("module", "switch", spelled=("-m", "--module")),
    Flag("no_python", "switch"),
    Flag("debug", "switch"),
    *_texts("mpirun_hostfile", "aws_access_key_id", "aws_secret_access_key"),
)

_TPU = (
    Flag("tpu_use_cluster", "switch", default=False, spelled=("--tpu_cluster", "--tpu-cluster")),
    Flag("tpu_use_cluster", "off", default=True, spelled=("--no_tpu_cluster", "--no-tpu-cluster")),
    *_switches("tpu_use_sudo", "downcast_bf16"),
    Flag("vm", "append"),
    Flag("env", "append"),
    *_texts("main_training_function"),
)

_DEEPSPEED = (
    *_texts("deepspeed_config_file", "offload_optimizer_device", "offload_param_device"),
    *_texts("offload_optimizer_nvme_path", "offload_param_nvme_path", "zero3_init_flag", "zero3_save_16bit_model"),
    *_ints("zero_stage", "gradient_accumulation_steps"),
    Flag("gradient_clipping", "float"),
    *_texts("deepspeed_hostfile", "deepspeed_exclusion_filter", "deepspeed_inclusion_filter"),
    *_texts("deepspeed_multinode_launcher", "deepspeed_moe_layer_cls_names"),
)

_FSDP = (
    Flag("fsdp_version", default="1", choices=("1", "2")),
    *_ints("fsdp_min_num_params", default=100_000_000),
    Flag("fsdp_sharding_strategy", default="FULL_SHARD"),
    *_texts("fsdp_auto_wrap_policy", "fsdp_transformer_layer_cls_to_wrap"),
    *_texts("fsdp_backward_prefetch", "fsdp_state_dict_type"),
    Flag("fsdp_reshard_after_forward", default="true"),
    Flag("fsdp_use_orig_params", default="true"),
    Flag("fsdp_cpu_ram_efficient_loading", default="true"),
    Flag("fsdp_sync_module_states", default="true"),
    Flag("fsdp_offload_params", default="false"),
    Flag("fsdp_forward_prefetch", default="false"),
    Flag("fsdp_activation_checkpointing", default="false"),
    Flag("fsdp_activation_checkpointing_offload", default="false"),
)

_MEGATRON = (
    *_ints("megatron_lm_tp_degree", "megatron_lm_pp_degree", default=1),
    *_bools("megatron_lm_use_custom_fsdp", "megatron_lm_no_load_optim", "megatron_lm_eod_mask_loss"),
    *_bools("megatron_lm_overlap_cpu_optimizer_d2h_h2d", "megatron_lm_no_save_optim"),
    *_bools("megatron_lm_optimizer_cpu_offload", "megatron_lm_use_precision_aware_optimizer"),
    *_ints("megatron_lm_decoder_last_pipeline_num_layers", "megatron_lm_num_micro_batches"),
    *_ints("megatron_lm_recompute_num_layers", "megatron_lm_expert_model_parallel_size"),
    *_ints("megatron_lm_context_parallel_size", "megatron_lm_expert_tensor_parallel_size"),
    Flag("megatron_lm_gradient_clipping", "float", 1.0),
    Flag("megatron_lm_attention_dropout", "float"),
    Flag("megatron_lm_hidden_dropout", "float"),
    *_texts("megatron_lm_sequence_parallelism", "megatron_lm_recompute_activations"),
    *_texts("megatron_lm_use_distributed_optimizer", "megatron_lm_recompute_granularity"),
    *_texts("megatron_lm_recompute_method", "megatron_lm_attention_backend"),
    *_texts("megatron_lm_attention_softmax_in_fp32", "megatron_lm_calculate_per_token_loss"),
    *_texts("megatron_lm_use_rotary_position_embeddings"),
)

_FP8 = (
    Flag("fp8_backend", choices=("ao", "te", "msamp")),
    *_switches("fp8_use_autocast_during_eval"),
    *_ints("fp8_margin", default=0),
    *_ints("fp8_interval", default=1),
    Flag("fp8_format", default="HYBRID", choices=("HYBRID", "E4M3", "E5M2")),
    *_ints("fp8_amax_history_len", default=1024),
    Flag("fp8_amax_compute_algo", default="most_recent", choices=("max", "most_recent")),
    Flag("fp8_override_linear_precision", default="false,false,false"),
    Flag("fp8_opt_level", default="O2", choices=("O1", "O2")),
    Flag("fp8_enable_fsdp_float8_all_gather", default="true"),
    Flag("fp8_pad_inner_dim", default="true"),
)

_PARALLELISM = (
    *_ints("parallelism_config_dp_replicate_size", "parallelism_config_dp_shard_size", default=1),
    *_ints("parallelism_config_tp_size", "parallelism_config_cp_size", "parallelism_config_sp_size", default=1),
    Flag("parallelism_config_cp_backend", default="torch", choices=("torch",)),
    Flag("parallelism_config_cp_comm_strategy", default="allgather"),
    Flag("parallelism_config_sp_backend", default="deepspeed", choices=("deepspeed",)),
    Flag("parallelism_config_sp_seq_length"),
    Flag("parallelism_config_sp_seq_length_is_variable", "bool", default=True),
    Flag("parallelism_config_sp_attn_implementation", default="sdpa"),
)

ACCELERATE = Program("accelerate launch", (*_COMMON, *_TPU, *_DEEPSPEED, *_FSDP, *_MEGATRON, *_FP8, *_PARALLELISM))

TORCHRUN = Program(
    "torchrun",
    (
        Flag("nnodes", default="1:1"),
        Flag("nproc_per_node", default="1"),
        Flag("rdzv_backend", default="static"),
        Flag("rdzv_endpoint", default=""),
        Flag("rdzv_id", default="none"),
        Flag("rdzv_conf", default=""),
        *_switches("standalone", "no_python", "run_path", "virtual_local_rank"),
        Flag("module", "switch", default=False, spelled=("-m", "--module")),
        *_ints("max_restarts", "node_rank", default=0),
        Flag("monitor_interval", "float", 0.1),
        Flag("start_method", default="spawn", choices=("spawn", "fork", "forkserver")),
        Flag("event_log_handler", default="null"),
        Flag("role", default="default"),
        *_texts("log_dir", "local_addr", "logs_specs"),
        Flag("redirects", default="0", spelled=("-r", "--redirects")),
        Flag("tee", default="0", spelled=("-t", "--tee")),
        Flag("local_ranks_filter", default=""),
        Flag("duplicate_stdout_filters", default=""),
        Flag("duplicate_stderr_filters", default=""),
        Flag("master_addr", default="127.0.0.1"),
        *_ints("master_port", "shutdown_timeout"),
        Flag("numa_binding", choices=("node", "socket", "exclusive", "core-complex")),
        Flag("signals_to_handle", default="SIGTERM,SIGINT,SIGHUP,SIGQUIT"),
    ),
    abbreviates=True,
)

TORCH_LAUNCH = Program("torch.distributed.launch", (*TORCHRUN.flags, *_switches("use_env")), abbreviates=True)

DEEPSPEED = Program(
    "deepspeed",
    (
        Flag("hostfile", default="/job/hostfile", spelled=("-H", "--hostfile")),
        Flag("include", default="", spelled=("-i", "--include")),
        Flag("exclude", default="", spelled=("-e", "--exclude")),
        *_ints("num_nodes", "min_elastic_nodes", "max_elastic_nodes", "node_rank", default=-1),
        Flag("num_gpus", "int", -1, spelled=("--num_gpus", "--num_accelerators")),
        *_ints("master_port", default=29500),
        Flag("master_addr", default=""),
        Flag("launcher", default="pdsh"),
        Flag("launcher_args", default=""),
        *_switches("module", "no_python", "no_local_rank", "no_ssh", "no_ssh_check", "force_multi", "save_pid"),
        *_switches("elastic_training", "bind_cores_to_rank"),
        Flag("enable_each_rank_log", default="None"),
        Flag("autotuning", default="", choices=("tune", "run")),
        Flag("comment", default=""),
        Flag("account", default=""),
        *_texts("bind_core_list", "venv_script"),
        *_ints("ssh_port"),
    ),
    abbreviates=True,
    hyphens=False,
)
