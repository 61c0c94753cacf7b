"""The JSON Schemas of report and evidence, in the package: ``python -m accel_doctor.reports.schemas [--check]``."""

import json
import sys
from pathlib import Path

import msgspec

from accel_doctor.evidence import SCHEMA_VERSION, Evidence
from accel_doctor.reports.generated import main
from accel_doctor.reports.json import SCHEMA_VERSION as REPORT_VERSION
from accel_doctor.reports.json import Report

FOLDER = Path(__file__).parent.parent / "schemas"


def schemas() -> dict[Path, str]:
    """Return each schema's file and text."""
    kinds: tuple[tuple[str, int, type], ...] = (
        ("report", REPORT_VERSION, Report),
        ("evidence", SCHEMA_VERSION, Evidence),
    )
    return {FOLDER / f"{name}-v{version}.json": schema(f"{name}-v{version}", kind) for name, version, kind in kinds}


def schema(name: str, kind: type) -> str:
    """Return the JSON Schema of a struct; fields it does not name are allowed, since readers ignore them."""
    described = {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": f"accel-doctor {name}",
        **msgspec.json.schema(kind),
    }
    return json.dumps(described, indent=2) + "\n"


if __name__ == "__main__":
    sys.exit(main(schemas(), sys.argv[1:]))
