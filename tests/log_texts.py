"""Short logs in the formats that torch, NCCL, launchers, schedulers and the kernel print, and what each tells."""

# ruff: noqa: E501 - lines of logs are long

from typing import NamedTuple


class Told(NamedTuple):
    """What a log tells."""

    text: str
    check: str
    """Empty where nothing must be named."""
    ranks: tuple[int, ...] = ()
    says: str = ""
    """Words of the message."""


def watchdog(
    rank: int, number: int, op: str = "ALLREDUCE", elements: int = 1048576, *, at: str = "E1120 10:15:26.083456"
) -> str:
    return (
        f"[rank{rank}]:[{at} ProcessGroupNCCL.cpp:616] [Rank {rank}] Watchdog caught collective operation timeout: "
        f"WorkNCCL(SeqNum={number}, OpType={op}, NumelIn={elements}, NumelOut={elements}, Timeout(ms)=600000) "
        "ran for 600029 milliseconds before timing out.\n"
    )


def taken_down(rank: int) -> str:
    return (
        f"[rank{rank}]:[E1120 10:15:27.1 ProcessGroupNCCL.cpp:630] [Rank {rank}] To avoid data inconsistency, we are "
        "taking the entire process down.\n"
        "terminate called after throwing an instance of 'c10::DistBackendError'\n"
    )


def table(
    *failed: tuple[int, int], root: tuple[int, int], host: str = "node-a", at: str = "2026-11-20_10:15:40"
) -> str:
    """Return torchelastic's report: (rank, exit code) of each that failed after the first."""

    def entry(index: int, rank: int, code: int) -> str:
        return (
            f"[{index}]:\n  time      : {at}\n  host      : {host}\n  rank      : {rank} (local_rank: {rank % 8})\n"
            f"  exitcode  : {code} (pid: {4000 + rank})\n  error_file: <N/A>\n"
            "  traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html\n"
        )

    rest = "".join(entry(i, *f) for i, f in enumerate(failed, 1)) or "  <NO_OTHER_FAILURES>\n"
    line = "-" * 60 + "\n"
    return (
        "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n" + "=" * 60 + "\ntrain.py FAILED\n"
        f"{line}Failures:\n{rest}{line}Root Cause (first observed failure):\n{entry(0, *root)}" + "=" * 60 + "\n"
    )


def traceback(error: str, *, prefix: str = "", line: int = 41) -> str:
    lines = (
        "Traceback (most recent call last):",
        '  File "/home/me/train.py", line 88, in <module>',
        "    main()",
        f'  File "/home/me/train.py", line {line}, in main',
        "    loss = step(batch)",
        '  File "/venv/lib/python3.11/site-packages/torch/nn/modules/module.py", line 1736, in _call_impl',
        "    return forward_call(*args, **kwargs)",
        error,
    )
    return "".join(f"{prefix}{text}\n" for text in lines)


def steps(first: int, last: int, prefix: str = "") -> str:
    return "".join(f"{prefix}step {n} loss {2 / (n + 1):.4f} val_error 0.3 lr 1e-4\n" for n in range(first, last))


LOST = "RuntimeError: [third_party/gloo/gloo/transport/tcp/pair.cc:553] Connection closed by peer [10.0.0.2]:735."
OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 1 has a total capacity of 79.15 GiB "
    "of which 1.12 GiB is free. Process 4001 has 78.02 GiB memory in use. Of the allocated memory 75.1 GiB is allocated"
)

SICK: dict[str, Told] = {
    "one rank never came, silent": Told(
        steps(0, 4, "[rank3]: ") + "".join(watchdog(r, 12) for r in (0, 1, 2)) + taken_down(0) + table(root=(0, -6)),
        "HNG001",
        (3,),
        "rank 3",
    ),
    "one rank behind by its own count": Told(
        "".join(watchdog(r, 12) for r in (0, 1))
        + "[rank2]:[E1120 10:15:26.1 ProcessGroupNCCL.cpp:1685] [PG ID 0 PG GUID 0(default_pg) Rank 2] Received a dump signal due "
        "to a collective timeout from rank 0 and we will try our best to dump the debug info. Last enqueued NCCL work: 11, "
        "last completed NCCL work: 11.\n" + taken_down(0) + table(root=(1, -6)),
        "HNG001",
        (2,),
        "the last it began is #11",
    ),
    "all ranks came": Told(
        "".join(
            watchdog(r, 456)
            + f"[rank{r}]:[E1120 10:15:26.2 ProcessGroupNCCL.cpp:1785] [PG ID 0 PG GUID 0(default_pg) Rank {r}] Exception "
            "(either an error or timeout) detected by watchdog at work: 456, last enqueued NCCL work: 456, last completed NCCL work: 455.\n"
            for r in range(4)
        )
        + table(root=(0, -6)),
        "HNG001",
        (),
        "never ended",
    ),
    "one rank in another collective": Told(
        watchdog(1, 532339, "BROADCAST", 9)
        + watchdog(2, 532339, "BROADCAST", 9)
        + watchdog(0, 532341, "_ALLGATHER_BASE", 513),
        "NET007",
        (0,),
        "BROADCAST #532339",
    ),
    "unequal shapes at one number": Told(
        watchdog(0, 7, "ALLREDUCE", 1000) + watchdog(1, 7, "ALLREDUCE", 1000) + watchdog(2, 7, "ALLREDUCE", 992),
        "NET007",
        (2,),
        "992 elements",
    ),
    "torch 2.3 without times, under Ray": Told(
        "".join(
            f"\x1b[36m(RayTrainWorker pid=40{r}, ip=10.0.0.{r})\x1b[0m [rank{r}]:[E ProcessGroupNCCL.cpp:563] [Rank {r}] Watchdog caught "
            "collective operation timeout: WorkNCCL(SeqNum=158046, OpType=GATHER, NumelIn=2867200, NumelOut=0, Timeout(ms)=600000) "
            "ran for 600027 milliseconds before timing out.\n"
            for r in (1, 2, 3)
        )
        + "\x1b[36m(RayTrainWorker pid=400, ip=10.0.0.0)\x1b[0m [rank0]: step 3 loss 1.0\n",
        "HNG001",
        (0,),
        "GATHER #158046",
    ),
    "the missing rank died of its own error first": Told(
        traceback("ValueError: bad sample 37", prefix="[rank3]: ") + "".join(watchdog(r, 12) for r in (0, 1, 2)),
        "HNG003",
        (3,),
        "ValueError: bad sample 37",
    ),
    "survivors speak after the timeout": Told(
        "".join(watchdog(r, 12) for r in (0, 1, 2))
        + steps(0, 1, "[rank3]: ")
        + traceback("RuntimeError: CUDA error: unspecified launch failure", prefix="[rank0]: ")
        + table(root=(0, -6)),
        "HNG001",
        (3,),
    ),
    "CUDA out of memory, echoes before it": Told(
        traceback(OOM, prefix="[rank1]: ") + traceback(LOST, prefix="[rank0]: ") + table((0, -15), root=(1, 1)),
        "MEM001",
        (1,),
        "2.00 GiB",
    ),
    "an echo stands first in the log": Told(
        traceback(LOST, prefix="[rank0]: ") + traceback(OOM, prefix="[rank1]: ") + table((1, 1), root=(0, 1)),
        "MEM001",
        (1,),
        "out of device memory",
    ),
    "a rank without a prefix": Told(
        traceback("ValueError: bad sample 37") + table((0, -15), root=(1, 1)),
        "HNG003",
        (1,),
        "train.py:41",
    ),
    "cublas": Told(
        traceback(
            "RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
            prefix="[rank2]: ",
        ),
        "MEM001",
        (2,),
        "CUBLAS",
    ),
    "killed by the kernel": Told(
        traceback(LOST, prefix="[rank0]: ")
        + table((0, -15), root=(1, -9))
        + "[Tue Dec  1 00:50:34 2026] Memory cgroup out of memory: Killed process 4001 (python3) total-vm:1744288kB, anon-rss:1126360kB, file-rss:0kB\n",
        "HNG004",
        (1,),
        "1126360kB",
    ),
    "killed, and nobody says by whom": Told(table((0, -15), root=(1, -9)), "HNG004", (1,), "SIGKILL"),
    "killed by Slurm for memory": Told(
        "slurmstepd: error: Detected 1 oom_kill event in StepId=4711.0. Some of the step tasks have been OOM Killed.\n"
        "srun: error: node-b: task 3: Out Of Memory\nsrun: Terminating StepId=4711.0\n"
        "slurmstepd: error: *** STEP 4711.0 ON node-a CANCELLED AT 2026-11-20T10:15:40 ***\n",
        "HNG004",
        (3,),
        "Slurm's memory limit",
    ),
    "Slurm's time limit": Told(
        steps(0, 30)
        + "slurmstepd: error: *** JOB 494583 ON node-a CANCELLED AT 2026-11-20T09:09:37 DUE TO TIME LIMIT ***\n"
        "srun: Job step aborted: Waiting up to 32 seconds for job step to finish.\n"
        + traceback("torch.distributed.elastic.multiprocessing.api.SignalException: Process 4000 got signal: 15")
        + "srun: error: node-a: task 0: Terminated\n",
        "HNG004",
        (),
        "time limit",
    ),
    "preempted": Told(
        "slurmstepd: error: *** JOB 608 ON node-a CANCELLED AT 2026-11-20T02:06:12 DUE TO PREEMPTION ***\n",
        "HNG004",
        (),
        "preempted",
    ),
    "a node fails": Told(
        "srun: error: Node failure on node-c\nslurmstepd: error: *** JOB 7 ON node-a CANCELLED AT 2026-11-20T02:06:12 DUE TO NODE FAILURE, SEE SLURMCTLD LOG FOR DETAILS ***\n",
        "RNK001",
        (),
        "node-c",
    ),
    "somebody ended the launcher": Told(
        steps(0, 5)
        + "W1120 10:15:26.1 4711 torch/distributed/elastic/agent/server/api.py:704] Received 15 death signal, shutting down workers\n"
        "W1120 10:15:26.1 4711 torch/distributed/elastic/multiprocessing/api.py:897] Sending process 4000 closing signal SIGTERM\n"
        + traceback("torch.distributed.elastic.multiprocessing.api.SignalException: Process 4711 got signal: 15"),
        "HNG004",
        (),
        "SIGTERM",
    ),
    "Ctrl-C": Told(
        steps(0, 5)
        + traceback("KeyboardInterrupt", prefix="[rank0]: ")
        + traceback("KeyboardInterrupt", prefix="[rank1]: "),
        "HNG004",
        (),
        "keyboard",
    ),
    "a task fails, srun ends the others": Told(
        "".join(f"{r}: step {s} loss 1.0\n" for s in range(4) for r in (1, 0, 3, 2))
        + traceback("KeyError: 'labels'", prefix="2: ")
        + "srun: error: node-b: task 2: Exited with exit code 1\nsrun: Terminating StepId=4711.0\n"
        "srun: error: node-a: tasks 0-1: Killed\nsrun: error: node-b: task 3: Terminated\n",
        "HNG003",
        (2,),
        "KeyError: 'labels'",
    ),
    "segmentation fault under srun": Told(
        "srun: error: node-b: task 5: Segmentation fault (core dumped)\nsrun: error: node-a: tasks 0-3: Terminated\n",
        "HNG004",
        (5,),
        "segmentation fault",
    ),
    "DeepSpeed's launcher names the last rank's command": Told(
        "[2026-11-20 10:15:40,285] [INFO] [launch.py:315:sigkill_handler] Killing subprocess 3353707\n"
        "[2026-11-20 10:15:40,290] [ERROR] [launch.py:321:sigkill_handler] ['/venv/bin/python', '-u', 'main.py', '--local_rank=7', "
        "'--deepspeed'] exits with return code = -9\n",
        "HNG004",
        (),
        "deepspeed does not say which",
    ),
    "shared memory": Told(
        traceback(
            "RuntimeError: unable to allocate shared memory(shm) for file </torch_16395_1>: No space left on device (28)",
            prefix="[rank1]: ",
        ),
        "ENV003",
        (1,),
        "shared memory",
    ),
    "a worker dies of SIGBUS": Told(
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\n"
        + traceback(
            "RuntimeError: DataLoader worker (pid 4711) is killed by signal: Bus error. It is possible that dataloader's workers are out of shared memory.",
            prefix="[rank0]: ",
        )
        + table((1, -15), root=(0, 1)),
        "ENV003",
        (0,),
    ),
    "SIGBUS": Told(table(root=(2, -7)), "ENV003", (2,), "SIGBUS"),
    "disk full": Told(
        traceback("OSError: [Errno 28] No space left on device: '/scratch/ckpt/step_100'", prefix="[rank0]: ")
        + table((1, -15), root=(0, 1)),
        "CKP008",
        (0,),
        "/scratch/ckpt/step_100",
    ),
    "quota": Told(traceback("OSError: [Errno 122] Disk quota exceeded", prefix="[rank0]: "), "CKP008", (0,)),
    "port": Told(
        "[W1120 10:15:26.1 socket.cpp:436] [c10d] The server socket has failed to bind to [::]:29500 (errno: 98 - Address already in use).\n"
        + traceback(
            "torch.distributed.DistNetworkError: The server socket has failed to listen on any local network address. port: 29500, useIpv6: false, code: -98, name: EADDRINUSE, message: address already in use"
        ),
        "LCH009",
        (),
        "29500",
    ),
    "duplicate GPU": Told(
        "node-a:4001:4090 [0] NCCL WARN Duplicate GPU detected : rank 1 and rank 0 both on CUDA device 2000\n"
        + traceback(
            "torch.distributed.DistBackendError: NCCL error in: ../torch/csrc/distributed/c10d/NCCLUtils.hpp:275, invalid usage, NCCL version 2.21.5",
            prefix="[rank1]: ",
        ),
        "RNK002",
        (1, 0),
        "2000",
    ),
    "NCCL versions": Told(
        "node-b:4001:4090 [0] NCCL WARN Mismatched NCCL version detected : 21805 on the root, 21903 here\n"
        + traceback(
            "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled system error, NCCL version 2.19.3",
            prefix="[rank1]: ",
        ),
        "ENV001",
        (),
        "another NCCL",
    ),
    "no interface": Told(
        "node-a:88:157 [0] NCCL INFO NCCL_SOCKET_IFNAME set by environment to eth9\nnode-a:88:157 [0] bootstrap.cc:45 NCCL WARN Bootstrap : no socket interface found\n"
        + traceback(
            "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, internal error, NCCL version 2.21.5",
            prefix="[rank0]: ",
        ),
        "NET005",
        (0,),
        "no network interface",
    ),
    "RDMA": Told(
        "node-a:88:157 [3] misc/ibvwrap.cc:187 NCCL WARN Call to ibv_modify_qp failed with error Connection timed out errno 110\n"
        + traceback(
            "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled system error, NCCL version 2.21.5\nncclSystemError: System call (e.g. socket, malloc) or external library call failed",
            prefix="[rank3]: ",
        ),
        "NET005",
        (),
        "RDMA",
    ),
    "Xid and its echo in torch": Told(
        traceback("RuntimeError: CUDA error: uncorrectable ECC error encountered", prefix="[rank4]: ")
        + "Nov 20 10:15:39 node-b kernel: NVRM: Xid (PCI:0000:dc:00): 48, pid=4004, name=python3, DBE (double bit error)\n"
        + table(root=(4, 1)),
        "GPU005",
        (4,),
        "Xid 48",
    ),
    "NVLink": Told(
        "[1234.567890] NVRM: Xid (PCI:0000:dc:00): 74, pid=4002, name=python3, NVLink: fatal error detected on link 6(0x10000)\n"
        + traceback(
            "RuntimeError: CUDA error: uncorrectable NVLink error detected during the execution", prefix="[rank2]: "
        )
        + table(root=(2, 1)),
        "GPU007",
        (2,),
        "Xid 74",
    ),
    "device assert": Told(
        "../aten/src/ATen/native/cuda/Loss.cu:250: nll_loss_forward_reduce_cuda_kernel_2d: block: [0,0,0], thread: [3,0,0] Assertion `t >= 0 && t < n_classes` failed.\n"
        * 32
        + traceback("RuntimeError: CUDA error: device-side assert triggered", prefix="[rank1]: ")
        + table((0, -15), root=(1, 1)),
        "HNG003",
        (1,),
        "n_classes",
    ),
    "unused parameters": Told(
        "".join(
            traceback(
                "RuntimeError: Expected to have finished reduction in the prior iteration before starting a new one.",
                prefix=f"[rank{r}]: ",
            )
            + f"[rank{r}]: Parameter indices which did not receive grad for rank {r}: 4 5\n"
            for r in (0, 1)
        ),
        "GRD006",
        (0, 1),
        "got no gradient",
    ),
    "wrapped keys": Told(
        traceback("RuntimeError: Error(s) in loading state_dict for Net:", prefix="[rank0]: ")
        + '[rank0]: \tMissing key(s) in state_dict: "fc.weight".\n[rank0]: \tUnexpected key(s) in state_dict: "module.fc.weight". \n',
        "CKP005",
        (0,),
        "module.",
    ),
    "mismatch in DETAIL": Told(
        traceback(
            "RuntimeError: Detected mismatch between collectives on ranks. Rank 1 is running collective: CollectiveFingerPrint(SequenceNumber=3, OpType=ALLREDUCE, TensorShape=[4], TensorDtypes=Float), but Rank 0 is running collective: CollectiveFingerPrint(SequenceNumber=3, OpType=ALLGATHER, TensorShape=[8]).",
            prefix="[rank1]: ",
        ),
        "NET007",
        (1, 0),
        "ALLREDUCE[4] where rank 0 called ALLGATHER[8]",
    ),
    "accelerate's debug mode": Told(
        traceback(
            "accelerate.utils.operations.DistributedOperationException: Cannot apply desired operation due to shape mismatches. All shapes across devices must be valid.",
            prefix="[rank0]: ",
        ),
        "NET007",
        (),
        "unequal shape",
    ),
    "loss is nan": Told("[rank1]: Loss is nan, stopping training\n" + table(root=(1, 1)), "GRD012", (1,)),
    "DeepSpeed's loss scale": Told(
        traceback(
            "Exception: Current loss scale already at minimum - cannot decrease scale anymore. Exiting run.",
            prefix="[rank0]: ",
        ),
        "GRD012",
        (0,),
    ),
    "open files": Told(
        traceback(
            "RuntimeError: Too many open files. Communication with the workers is no longer possible.",
            prefix="[rank1]: ",
        ),
        "ENV004",
        (1,),
    ),
    "the hub's limit": Told(
        traceback(
            "huggingface_hub.errors.HfHubHTTPError: 429 Client Error: Too Many Requests for url: https://huggingface.co/api/models/gpt2",
            prefix="[rank5]: ",
        ),
        "LOG005",
        (5,),
        "too many requests",
    ),
    "rendezvous": Told(
        "RuntimeError: could not start\n"
        + traceback(
            "torch.distributed.elastic.rendezvous.api.RendezvousConnectionError: The connection to the C10d store has failed."
        ),
        "LCH010",
        (),
        "rendezvous",
    ),
    "more processes than devices": Told(
        traceback("RuntimeError: CUDA error: invalid device ordinal", prefix="[rank2]: ")
        + table((0, -15), (1, -15), root=(2, 1)),
        "LCH004",
        (2,),
    ),
    "DeepSpeed's batch": Told(
        traceback(
            "AssertionError: Check batch related parameters. train_batch_size is not equal to micro_batch_per_gpu * gradient_acc_step * world_size 8 != 2 * 1 * 2",
            prefix="[rank0]: ",
        ),
        "SHD006",
        (0,),
        "8 != 2 * 1 * 2",
    ),
    "device_map": Told(
        traceback(
            "ValueError: You can't train a model that has been loaded with `device_map='auto'` in any distributed mode.",
            prefix="[rank0]: ",
        ),
        "LCH015",
        (0,),
    ),
    "a spawned process": Told(
        traceback("torch.multiprocessing.spawn.ProcessExitedException: process 1 terminated with signal SIGSEGV"),
        "HNG004",
        (1,),
        "SIGSEGV",
    ),
    "an exit code alone": Told(table((0, -15), root=(1, 3)), "RNK001", (1,), "exit code 3"),
    "torchelastic blames a survivor": Told(
        traceback(LOST, prefix="[rank0]: ") + table((1, -9), root=(0, 1)),
        "HNG004",
        (1,),
        "SIGKILL",
    ),
    "an error file in the launcher's table": Told(
        table((0, -15), root=(1, 1)).replace(
            "traceback : To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html\n====",
            "traceback : " + traceback("ValueError: bad sample 37", prefix="  ").strip() + "\n  \n====",
        ),
        "HNG003",
        (1,),
        "train.py:41: ValueError: bad sample 37",
    ),
    "two error files, the first of them below": Told(
        (table((0, 1), root=(1, 1)))
        .replace(
            "To enable traceback see: https://pytorch.org/docs/stable/elastic/errors.html",
            traceback("ValueError: bad sample 37", prefix="  ").strip(),
        )
        .replace("ValueError: bad sample 37", "RuntimeError: peers differ", 1),
        "HNG003",
        (1,),
        "bad sample 37",
    ),
    "parameters differ in number": Told(
        traceback(
            "RuntimeError: DDP expects same model across all ranks, but Rank 0 has 12 params, while rank 1 has inconsistent 10 params.",
            prefix="[rank0]: ",
        ),
        "GRD004",
        (),
        "rank 0 has 12 parameters, rank 1 has 10",
    ),
    "parameters differ in shape": Told(
        traceback(
            "RuntimeError: [2]: params[4] in this process with sizes [8, 4] appears not to match sizes of the same param in process 0.",
            prefix="[rank2]: ",
        ),
        "GRD004",
        (),
        "parameter 4",
    ),
    "faulthandler, and the table has the rank": Told(
        'Fatal Python error: Segmentation fault\n\nCurrent thread 0x00007f00 (most recent call first):\n  File "/home/me/train.py", line 41 in main\n'
        + table((0, -15), root=(1, -11)),
        "HNG004",
        (1,),
        "segmentation fault",
    ),
    "NCCL's last error": Told(
        traceback(
            "torch.distributed.DistBackendError: NCCL error in: x.cpp:94, unhandled cuda error, NCCL version 2.26.2",
        )
        + "ncclUnhandledCudaError: Call to CUDA function failed.\nLast error:\nCuda failure 2 'out of memory'\n"
        + table((0, -15), root=(1, 1)),
        "MEM001",
        (1,),
        "out of device memory",
    ),
    "Lightning ends its children and itself": Told(
        steps(0, 3)
        + "[rank: 2] Child process with PID 4002 terminated with code -9. Forcefully terminating all other processes to avoid zombies\n"
        "run.sh: line 3:  4000 Killed                  python train.py\n",
        "HNG004",
        (2,),
        "signal 9",
    ),
    "Lightning, an exit code": Told(
        "Child process with PID 4002 terminated with code 3. Forcefully terminating all other processes to avoid zombies\n",
        "RNK001",
        (),
        "pid 4002",
    ),
    "a directory that is made twice": Told(
        traceback("FileExistsError: [Errno 17] File exists: '/out/run'", prefix="[rank1]: ")
        + table((0, -15), root=(1, 1)),
        "LOG005",
        (1,),
        "/out/run made already",
    ),
    "Open MPI's last words": Told(
        "The first process to do so was:\n\n  Process name: [[35010,1],6]\n  Exit code:    3\n",
        "RNK001",
        (6,),
        "exit code 3",
    ),
    "Hydra's last words": Told(
        "=   BAD TERMINATION OF ONE OF YOUR APPLICATION PROCESSES\n=   RANK 3 PID 4003 RUNNING AT node-b\n=   KILLED BY SIGNAL: 9 (Killed)\n",
        "HNG004",
        (3,),
        "signal 9",
    ),
    "the error of a spawned process": Told(
        traceback("torch.multiprocessing.spawn.ProcessRaisedException: ")
        + "\n-- Process 2 terminated with the following error:\n"
        + traceback("KeyError: 'resnet51'", line=61),
        "HNG003",
        (2,),
        "train.py:61: KeyError: 'resnet51'",
    ),
    "a checkpoint that is cut": Told(
        traceback("_pickle.UnpicklingError: pickle data was truncated", prefix="[rank0]: "), "CKP006", (0,)
    ),
    "an assertion on the device before Python's words": Told(
        "../aten/src/ATen/native/cuda/Indexing.cu:1292: f: block: [62,0,0], thread: [0,0,0] Assertion `i < size` failed.\n"
        + traceback("RuntimeError: CUDA error: device-side assert triggered", prefix="[rank7]: "),
        "HNG003",
        (7,),
        "i < size",
    ),
    "a device that is lost, without a process": Told(
        "[12.5] NVRM: Xid (PCI:0000:3b:00): 79, pid='<unknown>', name=<unknown>, GPU has fallen off the bus.\n"
        + traceback("RuntimeError: CUDA error: unspecified launch failure", prefix="[rank2]: "),
        "GPU005",
        (2,),
        "Xid 79",
    ),
    "the kernel kills a loader's worker": Told(
        "[12.5] Memory cgroup out of memory: Killed process 9021 (pt_data_worker) total-vm:1kB, anon-rss:612kB\n"
        + traceback("RuntimeError: DataLoader worker (pid 9021) is killed by signal: Killed. ", prefix="[rank2]: "),
        "ENV006",
        (2,),
        "DataLoader worker",
    ),
    "a watchdog that is stuck": Told(
        "[rank2]:[E512 12:01:12.3 ProcessGroupNCCL.cpp:1522] [PG ID 0 PG GUID 0(default_pg) Rank 2] ProcessGroupNCCL's watchdog got stuck "
        "for 480 seconds without making progress in monitoring enqueued collectives.\n" + table(root=(2, -6)),
        "HNG001",
        (2,),
        "480 s",
    ),
    "a script refuses an argument": Told(
        "usage: train.py [-h] [--lr LR]\ntrain.py: error: unrecognized arguments: --local-rank=1\n"
        + table(root=(1, 2)),
        "LCH005",
        (),
        "--local-rank=1",
    ),
    "torchrun refuses its own": Told(
        "torchrun: error: the following arguments are required: training_script\n", "LCH005", (), "training_script"
    ),
    "watchdogs of torch 1.10 have no number": Told(
        "".join(
            f"[E ProcessGroupNCCL.cpp:587] [Rank {r}] Watchdog caught collective operation timeout: WorkNCCL(OpType=ALLREDUCE, "
            "TensorShape=[1], Timeout(ms)=1800000) ran for 1800031 milliseconds before timing out.\n"
            for r in (0, 1, 3)
        )
        + table(root=(0, -6)),
        "HNG001",
        (2,),
        "rank 2 did not say",
    ),
    "a traceback in a box": Told(
        "╭──── Traceback (most recent call last) ────╮\n│ /home/me/train.py:41 in main               │\n"
        "│ ❱ 41     raise ValueError(text)            │\n╰────────────────────────────────────────────╯\nValueError: bad sample 37\n"
        + table((0, -15), root=(1, 1)),
        "HNG003",
        (1,),
        "train.py:41: ValueError: bad sample 37",
    ),
    "a driver that does not fit": Told(
        traceback(
            "RuntimeError: Unexpected error from cudaGetDeviceCount(). Error 803: system has unsupported display driver / cuda driver combination",
            prefix="[rank0]: ",
        ),
        "ENV013",
        (0,),
    ),
    "NCCL finds no room, and one rank raises it": Told(
        "node-a:88:157 [1] misc/shmutils.cc:87 NCCL WARN Error: failed to extend /dev/shm/nccl-x to 33030532 bytes, error: No space left on device (28)\n"
        + traceback(
            "torch.distributed.DistBackendError: NCCL error in: x.cpp:1, unhandled system error, NCCL version 2.21.5",
            prefix="[rank1]: ",
        ),
        "ENV003",
        (1,),
        "shared memory",
    ),
    "the terminal is closed": Told(
        steps(0, 5)
        + traceback("torch.distributed.elastic.multiprocessing.api.SignalException: Process 4711 got signal: 1"),
        "HNG004",
        (),
        "SIGHUP",
    ),
    "srun alone says which task left": Told(
        traceback("FileExistsError: [Errno 17] File exists: '/data/raw'")
        + "srun: error: node-a: task 3: Exited with exit code 1\nsrun: error: node-a: tasks 0-2: Terminated\n",
        "LOG005",
        (3,),
        "/data/raw",
    ),
    "Kaggle's log": Told(
        "".join(
            f"704.7s\t{n}\t{line}\n"
            for n, line in enumerate(
                (traceback("ValueError: bad sample 37") + table((0, -15), root=(1, 1))).splitlines()
            )
        ),
        "HNG003",
        (1,),
        "train.py:41: ValueError: bad sample 37",
    ),
    "a rank that was told to end says so first": Told(
        traceback("lightning.pytorch.utilities.exceptions.SIGTERMException", prefix="[rank0]: ")
        + "slurmstepd: error: *** STEP 5.0 ON node-a CANCELLED AT 2026-11-20T10:15:40 DUE TO PREEMPTION ***\n",
        "HNG004",
        (),
        "preempted",
    ),
    "a rank calls MPI_Abort": Told(
        "MPI_ABORT was invoked on rank 2 in communicator MPI_COMM_WORLD\nwith errorcode 7.\n",
        "RNK001",
        (2,),
        "exit code 7",
    ),
    "an abort is no cause beside another's error": Told(
        traceback(OOM, prefix="[rank1]: ") + "Fatal Python error: Aborted\n\n" + table((1, 1), root=(0, -6)),
        "MEM001",
        (1,),
    ),
    "models seem to differ where another rank has failed": Told(
        traceback(
            "RuntimeError: DDP expects same model across all ranks, but Rank 0 has 12 params, while rank 1 has inconsistent 0 params.",
            prefix="[rank0]: ",
        )
        + traceback(OOM, prefix="[rank1]: "),
        "MEM001",
        (1,),
    ),
    "one gave up and one was killed": Told(table((2, -9), root=(0, -6)), "HNG004", (), "which came first is not told"),
    "one gave up and one met a fault": Told(table((2, -11), root=(0, -6)), "HNG004", (2,), "segmentation fault"),
    "two runs in one log": Told(
        traceback("ValueError: of the first run", prefix="[rank0]: ")
        + table(root=(0, 1))
        + "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default\n"
        + steps(0, 9)
        + traceback("KeyError: 'of the second run'", prefix="[rank1]: ")
        + table((0, -15), root=(1, 1)),
        "HNG003",
        (1,),
        "of the second run",
    ),
    "a caught error long before": Told(
        traceback("ConnectionError: could not reach the tracker, goes on")
        + steps(0, 200)
        + traceback("IndexError: of death", prefix="[rank1]: ")
        + table((0, -15), root=(1, 1)),
        "HNG003",
        (1,),
        "IndexError: of death",
    ),
    "an error while handling one": Told(
        traceback("OSError: [Errno 122] Disk quota exceeded", prefix="[rank0]: ")
        + "[rank0]: \n[rank0]: During handling of the above exception, another exception occurred:\n[rank0]: \n"
        + traceback("RuntimeError: cannot close the writer", prefix="[rank0]: "),
        "CKP008",
        (0,),
    ),
}

QUIET: dict[str, str] = {
    "a healthy run with alarming words": (
        "W1120 10:15:26.1 4711 torch/distributed/run.py:766] \n"
        "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default, to avoid your system being overloaded\n"
        "/venv/lib/python3.11/site-packages/x.py:3: UserWarning: failed to load the fast tokenizer, error ignored\n"
        "[rank0]:[W1120 10:15:26.1 ProcessGroupNCCL.cpp:4115] [PG ID 0 Rank 0] using GPU 0 to perform barrier as devices used by this "
        "process are currently unknown. This can potentially cause a hang if this rank to GPU mapping is incorrect.\n"
        + steps(0, 100)
        + "epoch 1: error rate 0.31, killed neurons 12, timeout budget left 3, failed samples 0, nan 0\n"
        "saving checkpoint\ndone\n"
    ),
    "errors that were caught": (
        steps(0, 5)
        + traceback("requests.exceptions.ReadTimeout: the tracker did not answer")
        + steps(5, 60)
        + "Training finished\n"
    ),
    "a restart that went on": (
        traceback("ValueError: flaky", prefix="[rank1]: ")
        + "torch/distributed/elastic/api.py:869] failed (exitcode: 1) local_rank: 1 (pid: 4001) of binary: python\n"
        "Setting OMP_NUM_THREADS environment variable for each process to be 1 in default\n" + steps(0, 60) + "done\n"
    ),
    "a retried connection": (
        "node-a:88:157 [0] NCCL INFO Call to connect returned Connection refused, retrying\n" * 3
        + steps(0, 60)
        + "done\n"
    ),
    "an exception that Python ignores": (
        steps(0, 20)
        + "done\nException ignored in: <function Pool.__del__ at 0x7f>\n"
        + traceback("TypeError: 'NoneType' object is not callable")
    ),
    "another process's death in the kernel log": (
        steps(0, 20)
        + "[1234.567890] Out of memory: Killed process 999 (chrome) total-vm:1744288kB, anon-rss:1126360kB\n"
        + steps(20, 40)
    ),
    "progress bars": "".join(
        f"\r {n}%|{'#' * (n // 10)}| {n}/100 [00:01<00:09, 9.1it/s, loss=0.3, error=0.1]" for n in range(100)
    )
    + "\ndone\n",
}

UNCLEAR: dict[str, str] = {
    "survivors alone": steps(0, 4, "[rank0]: ") + traceback(LOST, prefix="[rank0]: "),
    "a store that is gone": "[rank2]:[W1120 10:15:26.1 TCPStore.cpp:115] [c10d] recvValue failed on SocketImpl(fd=81): Failed to recv, got 0 bytes. Connection was likely closed. Did the remote server shutdown or crash?\n",
    "launcher's words alone": "torch.distributed.elastic.multiprocessing.errors.ChildFailedError: \n",
}
