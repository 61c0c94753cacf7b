"""The rank imports torch and takes its place in the process group."""

import os
import time

import torch
from accelerate import Accelerator

from accel_doctor.evidence import ProbeOptions
from accel_doctor.probes.identity import loaded_versions
from accel_doctor.probes.record import RankFile
from accel_doctor.probes.seat import Seat, group_of, grouped


def join(record: RankFile, options: ProbeOptions) -> Seat:
    """Build the Accelerator as a training script would, and say what it made of this launch.

    Compilation is left out: it would take minutes and says nothing about how the ranks work together.
    """
    os.environ["ACCELERATE_DYNAMO_BACKEND"] = "no"
    record.write(versions=loaded_versions())
    record.begin("join")
    unnamed = "RANK" not in os.environ  # mpirun names ranks in variables of its own; accelerate then sets torch's
    with record.collective("init_process_group"):
        accelerator = Accelerator(gradient_accumulation_steps=options.gradient_accumulation_steps)
    group = group_of(accelerator, time.time())
    record.write(group=group, cpus=tuple(sorted(os.sched_getaffinity(0))), threads=torch.get_num_threads())
    if unnamed and grouped():
        record.write(rank=group.rank, local_rank=group.local_rank)
    return Seat(accelerator, options, record)
