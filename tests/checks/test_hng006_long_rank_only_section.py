from msgspec.structs import replace

from accel_checks.hng006_long_rank_only_section import CHECK
from accel_doctor.check import Severity
from accel_doctor.evidence import Evidence, StallSeen
from accel_doctor.evidence.run import Failure, Wait
from accel_doctor.testing import findings, outcome
from accel_doctor.testing_source import read
from accel_doctor.testing_trace import at, healthy_user_run, sick_user_run

SICK = """\
import torch
from torch.utils.data import DataLoader, TensorDataset
from accelerate import Accelerator

accelerator = Accelerator()
data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
loader = DataLoader(data, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
if accelerator.is_main_process:
    net = accelerator.unwrap_model(model)
    for x, y in DataLoader(data):
        net(x)
accelerator.wait_for_everyone()
"""
HEALTHY = """\
import torch
from torch.utils.data import DataLoader, TensorDataset
from accelerate import Accelerator

accelerator = Accelerator()
data = TensorDataset(torch.randn(64, 4), torch.randn(64, 1))
loader = DataLoader(data, batch_size=8, shuffle=True)
model = torch.nn.Linear(4, 1)
optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
model, optimizer, loader = accelerator.prepare(model, optimizer, loader)
if accelerator.is_main_process:
    for line in open('notes.txt'):
        pass
accelerator.wait_for_everyone()
"""


def test_the_fault_is_found_at_its_line() -> None:
    (found,) = findings(CHECK, read(SICK))
    assert found.location is not None
    assert found.location.line == 13
    assert found.severity is Severity.WARNING
    assert found.wanted


def test_a_healthy_script_passes() -> None:
    assert findings(CHECK, read(HEALTHY)) == ()


LONG = Wait(op="barrier", via="wait_for_everyone", site=at(50), longest_s=700.0, number=3, step=16)


def limited(run: Evidence, timeout_s: float | None = 1800.0) -> Evidence:
    groups = (replace(r.group, timeout_s=timeout_s) for r in run.world if r.group is not None)
    return replace(run, ranks=tuple(replace(r, group=g) for r, g in zip(run.world, groups, strict=True)))


def test_a_wait_that_takes_a_third_of_the_timeout() -> None:
    (finding,) = findings(CHECK, limited(sick_user_run(waits=(LONG,))))
    assert finding.severity is Severity.WARNING
    assert finding.ranks == (0,)
    assert finding.message == (
        "rank 0 worked alone for 700 s while rank 1 waited in wait_for_everyone at train.py:50: "
        "it gives up after 1800 s"
    )


def test_a_wait_that_ended_the_run() -> None:
    gone = Failure(kind="RuntimeError", message="Timed out waiting 1800000ms", at_s=1.0, site=at(50), peer_gone=True)
    closed = replace(gone, message="Connection closed by peer", at_s=2.0)
    run = limited(sick_user_run({"failure": closed}, waits=(replace(LONG, longest_s=1800.0),), failure=gone))
    assert [f.severity for f in findings(CHECK, run)] == [Severity.ERROR]


def test_waits_that_are_short_against_the_timeout_or_of_all_ranks_or_of_a_stall_are_none() -> None:
    assert findings(CHECK, limited(sick_user_run(waits=(replace(LONG, longest_s=60.0),)))) == ()
    assert findings(CHECK, limited(sick_user_run({"waits": (LONG,)}))) == ()
    stalled = replace(sick_user_run(waits=(LONG,)), stall=StallSeen(stalled=True, limit_s=30.0))
    assert findings(CHECK, limited(stalled)) == ()


def test_without_a_timeout_it_is_not_judged() -> None:
    assert outcome(CHECK, limited(healthy_user_run(), None)).outcome.value == "skipped"


def test_a_healthy_run() -> None:
    assert outcome(CHECK, limited(healthy_user_run())).outcome.value == "passed"
