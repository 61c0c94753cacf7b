"""What reading scripts showed, without running them: which ranks can reach each call, and what becomes of objects."""

from accel_doctor.evidence.base import Record, Value
from accel_doctor.evidence.launch import Launch


class Guard(Record, frozen=True, kw_only=True):
    """A condition on the way to a call."""

    text: str
    path: str
    line: int
    ranks: str = "all"
    """The ranks it lets through."""
    local: str = ""
    """Why ranks of one class may answer differently; empty where they cannot."""


class CallSite(Record, frozen=True, kw_only=True):
    """One call of a known operation, and the ranks that can reach it."""

    path: str
    line: int
    column: int = 1
    end_line: int
    function: str
    """The function it stands in, ``<module>`` for none."""
    operation: str
    """Its full name, as ``accel_doctor.contracts`` knows it."""
    contract: str
    kind: str
    strategies: tuple[str, ...] = ()
    """The strategies under which the contract binds; empty for all."""
    ranks: str
    """``all``, ``main``, ``local_main``, ``last``, ``not_main``, ``not_local_main``, ``some`` or ``none``."""
    guards: tuple[Guard, ...] = ()
    """The conditions that tell ranks apart on the way here, the outermost first."""
    local: str = ""
    """Why ranks of one class may part before it; empty where they do not."""
    certain: bool = True
    loop: str = ""
    """``batch`` inside a loop over a loader, ``loop`` inside another, else empty."""
    varies_by: tuple[str, ...] = ()
    """What the written path depends on: ``rank``, ``clock``, ``pid``, ``random``, ``data``."""
    target: str = ""
    """The written or read path, as it stands there; the content where there is no path."""
    note: str = ""
    """Further facts on this call, of its kind: ``inverted`` for a bar, ``wrapped`` for a saved state."""


class Flow(Record, frozen=True, kw_only=True):
    """One observation on what becomes of a model, a loader, a loss or a setting; ``what`` names its kind."""

    what: str
    path: str
    line: int
    column: int = 1
    name: str = ""
    """The object's name at that place."""
    values: dict[str, Value] = {}
    certain: bool = True


class Suppression(Record, frozen=True, kw_only=True):
    """A comment ``# accel-doctor: ignore[LOG001] reason``."""

    line: int
    ids: tuple[str, ...] = ()
    """Empty for all."""
    reason: str = ""


class SourceFile(Record, frozen=True, kw_only=True):
    """One file that was read."""

    path: str
    error: str = ""
    """Why it could not be read or parsed."""
    error_line: int | None = None
    frameworks: tuple[str, ...] = ()
    """``accelerate``, ``torch.distributed``, ``trainer``, ``lightning``, ``deepspeed``: what starts ranks in it."""
    suppressions: tuple[Suppression, ...] = ()
    unfollowed: tuple[str, ...] = ()
    """Local imports that could not be read."""
    cut: str = ""
    """Why it was not read to its end; empty when it was."""


class Source(Record, frozen=True, kw_only=True):
    """The files of one lint."""

    files: tuple[SourceFile, ...]
    calls: tuple[CallSite, ...] = ()
    flows: tuple[Flow, ...] = ()
    launches: tuple[Launch, ...] = ()
    """The launches beside the evidence's own: each is judged as that one is."""

    def of(self, *what: str) -> tuple[Flow, ...]:
        """Return the observations of these kinds."""
        return tuple(f for f in self.flows if f.what in what)

    def reached(self, *kinds: str) -> tuple[CallSite, ...]:
        """Return the calls of these kinds of operation."""
        return tuple(c for c in self.calls if c.kind in kinds)
