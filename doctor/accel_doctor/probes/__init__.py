"""What runs inside the ranks of a preflight, one module a probe."""
