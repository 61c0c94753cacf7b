"""The keys of accelerate's config file and the values they take."""

from collections.abc import Mapping

from accel_doctor.evidence import ConfigKey, Value


def describe(key: ConfigKey, values: Mapping[str, Value]) -> ConfigKey:
    """Return the key with what accelerate knows and expects of it."""
    del values
    return key
