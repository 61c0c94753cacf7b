"""Reads logs of dead runs: lines, who wrote them, what they say."""
