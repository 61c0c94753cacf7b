import msgspec

from accel_checks.lch002_fewer_ranks_than_requested import CHECK
from accel_doctor.check import Location
from accel_doctor.evidence import Ending, RankEnd, Setting
from accel_doctor.testing import findings, healthy_launch, healthy_rank, healthy_run, outcome
from launch_records import launch, setting


def test_one_process_where_two_were_asked_for() -> None:
    settings = {
        **healthy_launch().settings,
        "num_processes": Setting(value=2, source="flag --num_processes"),
        "use_cpu": Setting(value=True, source="flag --cpu"),
    }
    evidence = healthy_run(ranks=(healthy_rank(0, 1),), launch=launch(settings=settings))
    (finding,) = findings(CHECK, evidence)
    assert finding.message == "2 processes were asked for by flag --num_processes, and 1 started"
    assert finding.command.startswith("ACCELERATE_USE_CPU=1 accelerate launch --multi_gpu --num_processes 2")


def test_the_line_to_type_has_the_users_script() -> None:
    settings = {**healthy_launch().settings, "use_cpu": Setting(value=True, source="flag --cpu")}
    run = healthy_run(ranks=(healthy_rank(0, 1),), launch=launch(settings=settings, script=("my run.py", "--lr", "1")))
    (finding,) = findings(CHECK, run)
    assert finding.command.endswith(" --num_machines 1 'my run.py' --lr 1")


def test_the_line_of_the_config_that_asked() -> None:
    sick = launch(settings={"num_processes": setting(2, "c.yaml:3")})
    (finding,) = findings(CHECK, healthy_run(ranks=(healthy_rank(0, 1),), launch=sick))
    assert finding.location == Location(path="c.yaml", line=3)


def test_a_launch_that_died_is_another_fault() -> None:
    ranks = (msgspec.structs.replace(healthy_rank(0), end=RankEnd(how="stopped")),)
    assert findings(CHECK, healthy_run(ranks=ranks, ending=Ending(exit_code=1))) == ()


def test_nobody_asked_for_a_number() -> None:
    unasked = launch(asked_processes=None)
    assert outcome(CHECK, healthy_run(launch=unasked)).reason == "nobody asked for a number of processes"


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"
