"""Reads the machine: devices, processes, links, storage, limits."""
