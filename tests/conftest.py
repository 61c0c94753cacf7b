"""Fixtures that every test may ask for."""

pytest_plugins = ["fake_nvml.fixture", "host_reading", "ranks"]
