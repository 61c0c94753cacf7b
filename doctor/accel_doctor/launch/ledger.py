"""Keeps each setting's value with the places that named it, as the launcher's rules decide between them."""

from collections.abc import Mapping

from accel_doctor.evidence import Candidate, Setting, Value


class Ledger:
    """Settings under resolution; every value has its source from the moment it enters."""

    def __init__(self, defaults: Mapping[str, Value]) -> None:
        self._winner = {name: Candidate(value=value, source="default") for name, value in defaults.items()}
        self._losers: dict[str, list[Candidate]] = {}
        self._notes: dict[str, str] = {}

    def value(self, name: str) -> Value:
        """Return the value in force, or ``None``."""
        winner = self._winner.get(name)
        return None if winner is None else winner.value

    def number(self, name: str) -> int | None:
        """Return the value in force as a whole number, ``None`` where it is none."""
        value = self.value(name)
        if isinstance(value, str) and value.strip().lstrip("-").isdigit():
            return int(value)
        return value if isinstance(value, int) and not isinstance(value, bool) else None

    def source(self, name: str) -> str:
        """Return where the value in force came from."""
        winner = self._winner.get(name)
        return "default" if winner is None else winner.source

    def named(self, name: str) -> bool:
        """Return whether anybody chose the value in force."""
        return self.source(name) != "default"

    def put(self, name: str, value: Value, source: str) -> None:
        """Set a value over what stood there."""
        before = self._winner.get(name)
        if before is not None and before.source != "default":
            self._losers.setdefault(name, []).insert(0, before)
        self._winner[name] = Candidate(value=value, source=source)

    def also(self, name: str, value: Value, source: str, ignored: str = "") -> None:
        """Note a place that named the setting and lost; ``ignored`` says why it could not win."""
        self._losers.setdefault(name, []).append(Candidate(value=value, source=source, ignored=ignored))

    def lost(self, name: str, why: str) -> None:
        """Note why the value in force does not reach the ranks."""
        self._notes[name] = why

    def names(self) -> tuple[str, ...]:
        """Return all settings."""
        return tuple({**self._winner, **self._losers})

    def setting(self, name: str) -> Setting:
        """Return one setting as evidence."""
        winner = self._winner.get(name, Candidate(value=None, source="default"))
        losers = tuple(self._losers.get(name, ()))
        return Setting(
            value=winner.value,
            source=winner.source,
            candidates=(winner, *losers) if losers or winner.source != "default" else (),
            reaches_ranks=name not in self._notes,
            note=self._notes.get(name, ""),
        )
