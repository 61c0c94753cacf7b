"""The names of libraries by which things are known for what they are."""

from accel_doctor.contracts import Kind

OPTIMIZERS = (
    "Adam",
    "AdamW",
    "SGD",
    "Adafactor",
    "Lion",
    "RMSprop",
    "Adagrad",
    "AdamW8bit",
    "Adam8bit",
    "Prodigy",
    "LAMB",
    "Lamb",
)
NOT_MODELS = (
    "Tokenizer",
    "Processor",
    "Config",
    "Scheduler",
    "Extractor",
    "Pipeline",
    "TokenizerFast",
    "Dataset",
    "GenerationConfig",
)
SCHEDULERS = (
    "get_scheduler",
    "get_linear_schedule_with_warmup",
    "get_cosine_schedule_with_warmup",
    "get_polynomial_decay_schedule_with_warmup",
    "get_constant_schedule_with_warmup",
    "get_constant_schedule",
    "get_cosine_with_hard_restarts_schedule_with_warmup",
    "get_wsd_schedule",
    "get_inverse_sqrt_schedule",
)
PASSING = (
    "enumerate",
    "tqdm",
    "iter",
    "list",
    "sorted",
    "reversed",
    "tuple",
    "islice",
    "cycle",
    "chain",
    "filter",
    "track",
    "progress",
)
CLOCKS = (
    "time.time",
    "time.perf_counter",
    "time.monotonic",
    "time.strftime",
    "time.localtime",
    "time.time_ns",
    "time.ctime",
    "time.gmtime",
)
IDS = (
    "os.getpid",
    "uuid.uuid4",
    "uuid.uuid1",
    "tempfile.mkdtemp",
    "tempfile.gettempdir",
    "secrets.token_hex",
    "socket.gethostname",
)
FILES = ("exists", "isfile", "isdir", "is_file", "is_dir", "lexists")
QUIETERS = ("setLevel", "basicConfig", "disable", "addHandler", "set_verbosity", "remove", "configure", "add")
NAMESPACES = ("Namespace", "SimpleNamespace", "EasyDict", "dict", "DotMap", "AttrDict", "Munch")
IN_PLACE = ("all_reduce", "broadcast", "broadcast_object_list", "all_gather", "all_gather_object")
CUDA_TOUCH = frozenset(
    [
        "get_device_name",
        "get_device_properties",
        "get_device_capability",
        "mem_get_info",
        "memory_allocated",
        "synchronize",
        "set_device",
        "current_device",
        "init",
        "is_bf16_supported",
        "memory_summary",
        "max_memory_allocated",
        "current_stream",
        "Stream",
        "Event",
        "device_of",
        "reset_peak_memory_stats",
    ]
)
DRAWS = (
    "random.shuffle",
    "random.sample",
    "random.choice",
    "numpy.random.permutation",
    "numpy.random.shuffle",
    "numpy.random.choice",
    "sklearn.model_selection.train_test_split",
    "torch.utils.data.random_split",
    "torch.utils.data.dataset.random_split",
)
SEEDS = ("set_seed", "manual_seed", "manual_seed_all", "seed", "seed_everything", "enable_full_determinism")


PARAMETERS = frozenset(("parameters", "named_parameters", "trainable_parameters"))
QUIET_METHODS = frozenset(
    [
        "train",
        "eval",
        "state_dict",
        "load_state_dict",
        "to",
        "cuda",
        "cpu",
        "float",
        "half",
        "bfloat16",
        "double",
        "apply",
        "modules",
        "named_modules",
        "children",
        "named_children",
        "buffers",
        "named_buffers",
        "zero_grad",
        "enable_input_require_grads",
        "gradient_checkpointing_enable",
        "disable_gradient_checkpointing",
        "get_input_embeddings",
        "get_output_embeddings",
        "resize_token_embeddings",
        "tie_weights",
        "register_forward_hook",
        "register_full_backward_hook",
        "set_attn_processor",
        "enable_xformers_memory_efficient_attention",
        "save_pretrained",
        "push_to_hub",
        "print_trainable_parameters",
        "num_parameters",
        "add_adapter",
        "set_adapter",
        "no_sync",
        "register_comm_hook",
        "get_submodule",
        "register_buffer",
        "add_module",
        "items",
        "keys",
        "values",
        "get",
        "append",
        "extend",
        "merge_and_unload",
    ]
)
WRITES = frozenset((Kind.WRITE, Kind.SAVE, Kind.DELETE, Kind.FOLDER))
PATH_AT = {
    "torch.save": 1,
    "torchvision.utils.save_image": 1,
    "shutil.copy": 1,
    "shutil.copy2": 1,
    "shutil.copyfile": 1,
    "shutil.copytree": 1,
    "shutil.move": 1,
    "safetensors.torch.save_file": 1,
    "safetensors.torch.save_model": 1,
    "joblib.dump": 1,
    "torchaudio.save": 0,
}
PATH_WORDS = ("f", "path", "file", "filename", "fname", "save_directory", "dst", "path_or_buf", "fp")
ON_PATH = frozenset(("write_text", "write_bytes", "mkdir", "unlink", "rmdir"))
QUIETING = ("init_distributed_mode", "setup_for_distributed", "init_distributed_device_and_print")
"""The field's own set-up functions, which replace print on all ranks but the first."""
NAMED_CALLS = ("get_rank", "get_local_rank", "get_world_size", "get_global_rank", "get_process_index")
