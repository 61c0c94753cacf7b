"""Renderers: ``render(diagnosis) -> str``; none prints, none judges."""
