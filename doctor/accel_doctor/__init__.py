"""Diagnostics for distributed PyTorch runs under Hugging Face accelerate."""

__version__ = "0.1.0"
