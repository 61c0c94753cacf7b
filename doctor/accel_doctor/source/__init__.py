"""Reads scripts without running them: which ranks reach each call, and what becomes of models, loaders and losses."""
