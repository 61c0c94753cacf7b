"""The base of every record: frozen, keyword-only, written to JSON without its empty fields."""

import msgspec

Value = str | int | float | bool | None
"""A plain setting's value."""


class Record(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A frozen fact. A field that is ``None`` was not seen; the reason is in ``Evidence.absent`` or beside it.

    Numbers are finite: JSON has none that is not. Where such a value is itself what was seen, the field takes text too.
    """
