"""Frozen records of what was seen, never a judgement; JSON in and out."""

from accel_doctor.evidence.base import Record, Value
from accel_doctor.evidence.device import Device, DeviceProcess, Devices, Sample
from accel_doctor.evidence.exam import SCHEMA_VERSION, Asked, Evidence
from accel_doctor.evidence.host import Host, Interpreter, Limits
from accel_doctor.evidence.launch import Candidate, ConfigFile, ConfigKey, Ending, Launch, Setting
from accel_doctor.evidence.rank import (
    Checksum,
    ComputeProbe,
    DataProbe,
    Group,
    Guards,
    Phase,
    Rank,
    RankEnd,
    SweepProbe,
    Timing,
    TrainingProbe,
    Watch,
    WrongResult,
)

__all__ = [
    "SCHEMA_VERSION",
    "Asked",
    "Candidate",
    "Checksum",
    "ComputeProbe",
    "ConfigFile",
    "ConfigKey",
    "DataProbe",
    "Device",
    "DeviceProcess",
    "Devices",
    "Ending",
    "Evidence",
    "Group",
    "Guards",
    "Host",
    "Interpreter",
    "Launch",
    "Limits",
    "Phase",
    "Rank",
    "RankEnd",
    "Record",
    "Sample",
    "Setting",
    "SweepProbe",
    "Timing",
    "TrainingProbe",
    "Value",
    "Watch",
    "WrongResult",
]
