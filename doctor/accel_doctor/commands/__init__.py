"""The command line: one module a verb, flags in and exit code out."""
