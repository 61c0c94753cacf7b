"""Device meshes of the user's script, as one rank saw them."""

from accel_doctor.evidence.base import Record
from accel_doctor.evidence.run.site import Site


class Mesh(Record, frozen=True, kw_only=True):
    """One device mesh with named dimensions, that this rank is in."""

    site: Site | None = None
    names: tuple[str, ...] = ()
    sizes: tuple[int, ...] = ()
    stands: tuple[int, ...] = ()
    """This rank's place in each dimension."""
