"""Runs inside the user's own ranks: standard library only, loaded by location under a name of its own."""
