"""Renderers: ``render(diagnosis) -> str``; none prints, none judges."""

FORMATS = ("terminal", "json")
"""What ``--output-format`` and ``--output`` take; each is the module of its name."""
