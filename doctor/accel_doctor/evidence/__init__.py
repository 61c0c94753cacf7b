"""Frozen records of what was seen, never a judgement; JSON in and out."""

from accel_doctor.evidence.base import Record, Value
from accel_doctor.evidence.device import Device, DeviceProcess, Devices, Sample
from accel_doctor.evidence.exam import SCHEMA_VERSION, Asked, Evidence
from accel_doctor.evidence.folder import Folder
from accel_doctor.evidence.host import FileSetting, Host, Interpreter, LeftOver, Limits, NumaNode
from accel_doctor.evidence.launch import Candidate, ConfigFile, ConfigKey, Ending, Launch, Setting
from accel_doctor.evidence.probe_options import ProbeOptions
from accel_doctor.evidence.rank import (
    Checksum,
    ComputeProbe,
    DataProbe,
    Group,
    Guards,
    Phase,
    Rank,
    RankEnd,
    RoundTrip,
    StorageProbe,
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
    "FileSetting",
    "Folder",
    "Group",
    "Guards",
    "Host",
    "Interpreter",
    "Launch",
    "LeftOver",
    "Limits",
    "NumaNode",
    "Phase",
    "ProbeOptions",
    "Rank",
    "RankEnd",
    "Record",
    "RoundTrip",
    "Sample",
    "Setting",
    "StorageProbe",
    "SweepProbe",
    "Timing",
    "TrainingProbe",
    "Value",
    "Watch",
    "WrongResult",
]
