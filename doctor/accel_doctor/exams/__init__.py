"""Exams gather evidence and never judge: one module a verb."""
