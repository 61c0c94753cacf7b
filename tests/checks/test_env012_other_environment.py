import msgspec

from accel_checks.env012_other_environment import CHECK
from accel_doctor.check import Severity
from accel_doctor.evidence import Evidence, Interpreter
from accel_doctor.testing import findings, healthy_host, healthy_run, outcome


def with_path(prefixes: dict[str, str], programs: dict[str, str] | None = None) -> Evidence:
    interpreter = Interpreter(
        executable="/venv/bin/python",
        version="3.11.7",
        prefix="/venv",
        path_prefixes=prefixes,
        path_programs=programs or {name: f"{prefix}/bin/{name}" for name, prefix in prefixes.items()},
    )
    return healthy_run(hosts=(msgspec.structs.replace(healthy_host(), interpreter=interpreter),))


def test_the_accelerate_on_path_is_of_another_environment() -> None:
    (finding,) = findings(CHECK, with_path({"python": "/conda", "accelerate": "/conda"}))
    assert finding.severity is Severity.WARNING
    assert finding.message == "PATH's accelerate and python belong to /conda; /venv was examined"
    assert finding.seen == "accelerate: /conda/bin/accelerate"


def test_a_system_python_alone_is_a_note() -> None:
    (finding,) = findings(CHECK, with_path({"python": "/usr"}))
    assert finding.severity is Severity.NOTE
    assert finding.message == "PATH's python belongs to /usr; /venv was examined"


def test_a_python_beside_a_launcher_of_its_own_is_a_warning() -> None:
    programs = {"python": "/usr/bin/python3.11", "accelerate": "/venv/bin/accelerate"}
    (finding,) = findings(CHECK, with_path({"python": "/usr", "accelerate": "/venv"}, programs))
    assert finding.severity is Severity.WARNING
    assert finding.seen == "python: /usr/bin/python3.11"


def test_programs_that_cannot_be_told_are_not_judged() -> None:
    assert outcome(CHECK, with_path({}, {"python": "/pyenv/shims/python"})).outcome.value == "skipped"


def test_healthy() -> None:
    assert outcome(CHECK, healthy_run()).outcome.value == "passed"
