"""The checks of accel-doctor, one a module: ``<id>_<name>.py`` with a ``CHECK``."""
