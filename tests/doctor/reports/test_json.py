import json
from collections.abc import Callable
from typing import Any

import jsonschema
import msgspec
import pytest

from accel_doctor.diagnose import Diagnosis, Outcome, Verdict
from accel_doctor.reports.json import Report, render
from accel_doctor.reports.schemas import FOLDER, schemas
from report_samples import (
    EVIDENCE,
    UNSHARDED,
    diagnosis,
    healthy_pair,
    incomplete,
    matches_golden,
    one_cause,
    recorded,
    result,
    single_rank,
)


def parsed(case: Diagnosis) -> dict[str, Any]:
    report: dict[str, Any] = json.loads(render(case))
    return report


def test_the_report_of_version_1_is_the_golden_one() -> None:
    assert matches_golden("report-v1.json", render(one_cause()))


def test_the_keys_are_those_of_the_contract_and_always_there() -> None:
    report = parsed(one_cause())
    assert list(report) == [
        "schema_version",
        "doctor_version",
        "exam",
        "verdict",
        "exit_code",
        "run_dir",
        "checks",
        "launch",
        "command",
        "timings",
    ]
    check = next(c for c in report["checks"] if c["id"] == "DAT001")
    assert list(check) == ["id", "name", "invariant", "outcome", "reason", "findings"]
    assert list(check["findings"][0]) == [
        "message",
        "severity",
        "seen",
        "wanted",
        "values",
        "fix",
        "command",
        "ranks",
        "host",
        "location",
        "evidence",
    ]
    assert check["findings"][0]["location"] == {"path": "train.py", "line": 41, "column": 5}
    warned = next(c for c in report["checks"] if c["id"] == "ENV004")
    assert warned["findings"][0]["location"] is None
    assert set(report["launch"]["num_processes"]) == {"value", "source"}
    assert set(report["command"]) == {"argv", "exit_code", "signal"}


def test_values_are_carried_unchanged() -> None:
    report = parsed(one_cause())
    assert (report["schema_version"], report["doctor_version"], report["exam"]) == (1, "0.1.0", "preflight")
    assert (report["verdict"], report["exit_code"]) == ("failed", 1)
    assert report["run_dir"] == ".accel-doctor/20261130T215000Z-4312"
    finding = next(c for c in report["checks"] if c["id"] == "DAT001")["findings"][0]
    assert finding["message"] == UNSHARDED.message
    assert finding["severity"] == "error"
    assert finding["values"] == {"common_samples": 6.0, "samples": 6.0}
    assert finding["ranks"] == [0, 1]
    assert report["launch"]["num_processes"] == {"value": 2, "source": "doctor"}
    assert report["command"]["exit_code"] == 0
    assert report["timings"]["exam_s"] == pytest.approx(14.902)


def test_every_check_of_the_exam_is_there_with_its_outcome() -> None:
    outcomes = {c["id"]: (c["outcome"], c["reason"]) for c in parsed(incomplete())["checks"]}
    assert outcomes["SPD001"] == ("broken", "ZeroDivisionError: float division by zero")
    assert outcomes["SHD001"] == ("skipped", "the launch does not ask for FSDP")
    assert outcomes["RNK001"] == ("passed", "")
    assert len(outcomes) == len(incomplete().results)


def test_what_was_not_seen_is_null() -> None:
    report = parsed(diagnosis(recorded(launch=None, ending=None, run_dir=None), Verdict.INCOMPLETE))
    assert (report["launch"], report["command"], report["run_dir"]) == (None, None, None)


@pytest.mark.parametrize("case", [healthy_pair, one_cause, incomplete, single_rank])
def test_a_report_meets_its_schema(case: Callable[[], Diagnosis]) -> None:
    schema = json.loads((FOLDER / "report-v1.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(parsed(case()), schema, jsonschema.Draft202012Validator)
    assert msgspec.json.decode(render(case()), type=Report).verdict is case().verdict


@pytest.mark.parametrize("path", [("verdict",), ("checks",), ("launch",), ("checks", 0, "findings"), ("run_dir",)])
def test_a_report_without_one_of_its_keys_does_not_meet_the_schema(path: tuple[str | int, ...]) -> None:
    report = parsed(one_cause())
    holder: Any = report
    for key in path[:-1]:
        holder = holder[key]
    del holder[path[-1]]
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate(report, json.loads((FOLDER / "report-v1.json").read_text()))


def test_evidence_meets_its_schema() -> None:
    schema = json.loads((FOLDER / "evidence-v1.json").read_text())
    jsonschema.Draft202012Validator.check_schema(schema)
    jsonschema.validate(json.loads(EVIDENCE.read_text()), schema, jsonschema.Draft202012Validator)
    with pytest.raises(jsonschema.ValidationError):
        jsonschema.validate({**json.loads(EVIDENCE.read_text()), "ranks": "two"}, schema)


def test_the_schemas_are_current() -> None:
    for path, text in schemas().items():
        assert path.read_text() == text, "run python -m accel_doctor.reports.schemas"
    assert {path.name for path in FOLDER.iterdir()} == {path.name for path in schemas()}


def test_bytes_of_file_names_that_are_no_text_are_written_as_escapes() -> None:
    case = diagnosis(recorded(run_dir="r\udcff"), Verdict.FAILED, result("DAT001", "a", Outcome.SKIPPED, "x\udc80\x1b"))
    assert parsed(case)["run_dir"] == r"r\udcff"
    assert parsed(case)["checks"][0]["reason"] == "x\\udc80\x1b"
    assert render(case).isascii()
    assert "\x1b" not in render(case)
