import pytest
from msgspec.structs import replace

from accel_checks import dat001_unsharded_loader as dat001
from accel_checks.dat017_split_inside_model_parallel_group import CHECK
from accel_doctor.evidence import Evidence
from accel_doctor.evidence.run import Loaded, Mesh, Samples
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_trace import at, healthy_loader, healthy_user_run, sick_user_run

TENSOR = [Mesh(site=at(12), names=("dp", "tp"), sizes=(1, 2), stands=(0, r)) for r in (0, 1)]
SAME = (healthy_loader(0, sharded_by=()),)
OTHER = (healthy_loader(1, sharded_by=()),)


def run(name: str, second: tuple[Loaded, ...], first: tuple[Loaded, ...] = SAME) -> Evidence:
    meshes = [(replace(m, names=("dp", name)),) for m in TENSOR]
    return sick_user_run({"meshes": meshes[0], "loaders": first}, meshes=meshes[1], loaders=second)


def contents(numbers: range) -> tuple[Loaded, ...]:
    return (healthy_loader(samples=(Samples(contents=tuple(numbers)),)),)


@pytest.mark.parametrize("name", ["tp", "cp", "pp"])
def test_peers_with_samples_of_their_own(name: str) -> None:
    (found,) = findings(CHECK, run(name, OTHER))
    assert found.values == {"different_samples": 64, "looked_at_samples": 64}
    assert found.ranks == (0, 1)
    assert f"compute one sample together ({name} of the mesh dp 1 x {name} 2 made at train.py:12)" in found.message


def test_the_same_samples_in_another_order() -> None:
    turned = Samples(indices=SAME[0].samples[0].indices[::-1])
    assert len(findings(CHECK, run("tp", (replace(SAME[0], samples=(turned,)),)))) == 1


def test_contents_of_tensor_parallel_peers() -> None:
    assert len(findings(CHECK, run("tp", contents(range(9)), contents(range(20, 30))))) == 1


def test_peers_with_the_same_samples_are_no_fault_here_nor_an_unsharded_loader() -> None:
    assert outcome(CHECK, run("tp", SAME)).outcome.value == "passed"
    assert findings(dat001.CHECK, run("tp", SAME)) == ()
    assert len(findings(dat001.CHECK, run("sp", SAME))) == 1


SKIPPED = {
    "parts of one sample": run("cp", contents(range(9)), contents(range(20, 30))),
    "Ulysses": run("sp", OTHER),
    "no mesh": healthy_user_run(),
    "one that reads nothing": run("pp", ()),
}


@pytest.mark.parametrize("name", SKIPPED)
def test_what_does_not_tell_is_not_examined(name: str) -> None:
    assert outcome(CHECK, SKIPPED[name]).outcome.value == "skipped"
