import msgspec
import pytest

from accel_doctor.diagnose import Outcome, Verdict
from accel_doctor.reports.next_command import next_command, rehearsal, typed
from accel_doctor.testing import healthy_launch
from report_samples import diagnosis, healthy_pair, incomplete, one_cause, recorded, result


def test_after_a_pass_it_rehearses_the_users_script_in_the_launch_that_was_examined() -> None:
    launch = "accelerate launch --multi_gpu --num_processes 2 --num_machines 1 --mixed_precision no --dynamo_backend no"
    assert next_command(healthy_pair()) == (f"ACCELERATE_USE_CPU=1 accel-doctor run --steps 20 -- {launch} train.py")
    rehearsed = diagnosis(recorded(exam="run"), Verdict.PASSED)
    assert next_command(rehearsed) == ""


def test_after_a_failure_it_explains_the_first_fault() -> None:
    assert next_command(one_cause()) == "accel-doctor explain DAT001"
    strict = diagnosis(recorded(), Verdict.FAILED, result("ENV004", "few-open-files", Outcome.WARNED))
    assert next_command(strict) == "accel-doctor explain ENV004"


def test_where_something_is_missing_it_shows_every_check() -> None:
    assert next_command(incomplete()) == "accel-doctor report -v .accel-doctor/20261130T215000Z-4312"
    spaced = diagnosis(recorded(run_dir="my runs"), Verdict.INCOMPLETE)
    assert next_command(spaced) == "accel-doctor report -v 'my runs'"
    assert next_command(diagnosis(recorded(run_dir=None), Verdict.INCOMPLETE)) == ""


@pytest.mark.parametrize(
    ("argv", "words"),
    [
        (("/venv/bin/python", "-m", "accelerate.commands.launch", "--fp8"), ("accelerate", "launch", "--fp8")),
        (("python", "-m", "torch.distributed.run", "--nnodes", "2"), ("torchrun", "--nnodes", "2")),
        (("srun", "python", "-m", "accelerate.commands.launch"), ("srun", "accelerate", "launch")),
        (("python", "-u"), ("python", "-u")),
    ],
)
def test_a_launcher_is_written_as_people_type_it(argv: tuple[str, ...], words: tuple[str, ...]) -> None:
    assert typed(argv) == words


def test_words_of_a_command_are_quoted_where_they_must_be() -> None:
    launch = msgspec.structs.replace(
        healthy_launch(), argv=("accelerate", "launch", "--config_file", "my conf.yaml"), chosen_by="user"
    )
    assert rehearsal(launch).endswith("-- accelerate launch --config_file 'my conf.yaml' train.py")
    assert rehearsal(msgspec.structs.replace(launch, argv=())) == ""
