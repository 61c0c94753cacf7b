import msgspec
import pytest

from accel_doctor.diagnose import Outcome, Verdict
from accel_doctor.evidence import Launch
from accel_doctor.reports.next_command import launch_command, next_command
from accel_doctor.testing import healthy_launch
from report_samples import diagnosis, healthy_pair, incomplete, one_cause, recorded, result


def test_after_a_pass_it_is_the_launch_that_was_examined() -> None:
    assert next_command(healthy_pair()).startswith(
        "ACCELERATE_USE_CPU=1 accelerate launch --multi_gpu --num_processes 2"
    )
    assert next_command(healthy_pair()).endswith(" train.py")


def test_after_a_failure_it_explains_the_first_fault() -> None:
    assert next_command(one_cause()) == "accel-doctor explain DAT001"
    strict = diagnosis(recorded(), Verdict.FAILED, result("ENV004", "few-open-files", Outcome.WARNED))
    assert next_command(strict) == "accel-doctor explain ENV004"


def test_where_something_is_missing_it_shows_every_check() -> None:
    assert next_command(incomplete()) == "accel-doctor report -v .accel-doctor/20261130T215000Z-4312"
    spaced = diagnosis(recorded(run_dir="my runs"), Verdict.INCOMPLETE)
    assert next_command(spaced) == "accel-doctor report -v 'my runs'"
    assert next_command(diagnosis(recorded(run_dir=None), Verdict.INCOMPLETE)) == ""


def started(*argv: str) -> Launch:
    return msgspec.structs.replace(healthy_launch(), argv=argv, chosen_by="user")


@pytest.mark.parametrize(
    ("argv", "typed"),
    [
        (("/venv/bin/python", "-m", "accelerate.commands.launch", "--fp8"), "accelerate launch --fp8 train.py"),
        (("python", "-m", "torch.distributed.run", "--nnodes", "2"), "torchrun --nnodes 2 train.py"),
        (("srun", "python", "-m", "accelerate.commands.launch"), "srun accelerate launch train.py"),
        (("python", "-u"), "python -u train.py"),
        (
            ("accelerate", "launch", "--config_file", "my conf.yaml"),
            "accelerate launch --config_file 'my conf.yaml' train.py",
        ),
        ((), ""),
    ],
)
def test_the_launch_is_written_as_people_type_it(argv: tuple[str, ...], typed: str) -> None:
    assert launch_command(started(*argv)) == typed
