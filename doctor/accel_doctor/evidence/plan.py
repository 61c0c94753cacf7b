"""The FSDP units that accelerate's own rules make of a model, found without a device and without weights."""

from accel_doctor.evidence.base import Record

MAX_UNITS = 2048
MAX_CLASSES = 200
MAX_TIES = 20


class Unit(Record, frozen=True, kw_only=True):
    """One FSDP unit: the parameters that a rank gathers, uses and frees together."""

    name: str
    """Path of its module, empty for the whole model; several modules of one group are joined by `` + ``."""
    class_name: str
    parameters: int
    """Without those of the units inside it."""
    gathered_bytes: int
    """What a rank holds while the unit is gathered, in the dtype it computes in."""
    largest_module_parameters: int = 0
    """Parameters that its largest single module owns itself: no policy cuts a unit below that."""
    trained_dtypes: tuple[str, ...] = ()
    """Those of the parameters it trains, as stored: ``bfloat16``, ``float32``."""


class Tie(Record, frozen=True, kw_only=True):
    """One parameter under several names whose modules lie in different units."""

    names: tuple[str, ...]
    units: tuple[str, ...]
    """Of each name, in the same order; empty for the root."""


class ModelClass(Record, frozen=True, kw_only=True):
    """A module class of the model."""

    name: str
    count: int
    parameters: int
    """Of all its instances together, each parameter once."""


class WrapPlan(Record, frozen=True, kw_only=True):
    """What the launch's FSDP settings make of one model."""

    model: str
    """As it was named: ``train.py:build``."""
    model_class: str
    built_on: str
    """``meta``, ``meta parameters`` (all else on the CPU) or ``cpu``, where the model does not build without memory."""
    not_meta: str = ""
    """Why not all of it was built on the meta device."""
    fsdp_version: int
    policy: str
    """``TRANSFORMER_BASED_WRAP``, ``SIZE_BASED_WRAP`` or ``NO_WRAP``."""
    wanted_classes: tuple[str, ...] | None = None
    """Names that the transformer policy looks for; ``None`` under other policies."""
    wanted_from: str = ""
    """``launch``, ``_no_split_modules`` of the model, or empty where neither names a class."""
    min_parameters: int | None = None
    """Of the size policy; 0 switches it off."""
    strategy: str = "FULL_SHARD"
    """Version 1: FULL_SHARD, SHARD_GRAD_OP, NO_SHARD, HYBRID_SHARD, HYBRID_SHARD_ZERO2. Version 2: FULL_SHARD where
    units are freed after forward, else SHARD_GRAD_OP."""
    state_dict_type: str
    mixed_precision: str = "no"
    ranks: int
    """Ranks over which the launch shards; 2 where it does not say."""
    units: tuple[Unit, ...] = ()
    """In the order of the model; of more than 2,048 the largest."""
    unit_count: int = 0
    total_parameters: int
    """Each parameter once."""
    stored_bytes: int
    """Of all parameters, as the ranks keep them: float32 for those that mixed precision upcasts."""
    ignored_parameters: int = 0
    """Outside of every unit, by ``fsdp_ignored_modules``: each rank keeps them whole."""
    split_ties: tuple[Tie, ...] = ()
    classes: tuple[ModelClass, ...] = ()
    """The 200 largest by parameters."""
    blocks: tuple[ModelClass, ...] = ()
    """The outermost classes that a ModuleList, Sequential or ModuleDict holds two or more of, largest first."""
    error: str = ""
    """``TypeName: message`` that accelerate or torch raises on this model; then there are no units."""

    @property
    def missing_classes(self) -> tuple[str, ...]:
        """Return the wanted classes that the model does not have."""
        known = {c.name for c in self.classes}
        return tuple(name for name in self.wanted_classes or () if name not in known)

    @property
    def largest(self) -> Unit | None:
        """Return the unit with the most parameters."""
        return max(self.units, key=lambda u: u.parameters, default=None)

    @property
    def peak_gathered_bytes(self) -> int:
        """Return what a rank holds gathered at once, at least.

        The root stays gathered from forward to backward, in both versions of FSDP, and one other unit is in use beside
        it; with SHARD_GRAD_OP and NO_SHARD all of them stay.
        """
        root = sum(u.gathered_bytes for u in self.units if not u.name)
        others = [u.gathered_bytes for u in self.units if u.name]
        kept = self.strategy in ("SHARD_GRAD_OP", "NO_SHARD", "HYBRID_SHARD_ZERO2")
        return root + (sum(others) if kept else max(others, default=0))


class WrapClass(Record, frozen=True, kw_only=True):
    """A class name that the launch wants wrapped, looked up where no model was given."""

    name: str
    defined_in: str = ""
    """Module of an installed package that defines it; empty when none was found."""
