"""Errors that end an exam before it can judge; ``main`` turns each into one line and exit code 2."""


class DoctorError(Exception):
    """The doctor could not do what it was asked; the message says why and what to do."""


class UsageError(DoctorError):
    """The command line or the settings are wrong."""


class RunDirectoryError(DoctorError):
    """The run directory cannot be made or written."""


class EvidenceError(DoctorError):
    """An evidence file is missing, damaged or of a version this doctor does not read."""
