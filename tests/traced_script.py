"""Work of a forked rank: run a script under the tracer, as ``accel-doctor run`` has it run."""

import atexit
import importlib.util
import os
import runpy
import sys
from pathlib import Path
from types import ModuleType

import accel_doctor

PACKAGE = "_accel_doctor_tracer"


def load_tracer() -> ModuleType:
    """Load the tracer by its place under its own name, and return its start module."""
    folder = Path(accel_doctor.__file__).parent / "tracer"
    spec = importlib.util.spec_from_file_location(
        PACKAGE, folder / "__init__.py", submodule_search_locations=[str(folder)]
    )
    assert spec
    assert spec.loader
    sys.modules[PACKAGE] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(sys.modules[PACKAGE])
    return importlib.import_module(f"{PACKAGE}.start")


def run(run_dir: Path) -> int:
    """Run the script that ``SCRIPT`` names; return its exit code."""
    os.environ["ACCEL_DOCTOR_TRACE"] = str(run_dir)
    script = Path(os.environ["SCRIPT"])
    os.chdir(script.parent)
    sys.argv = [script.name]
    start = load_tracer()
    if not os.environ.get("UNTRACED"):
        importlib.import_module(f"{PACKAGE}.imports").install()
        start.claim()
    try:
        runpy.run_path(script.name, run_name="__main__")
        code = 0
    except SystemExit as leave:
        code = leave.code if isinstance(leave.code, int) else 0
    except BaseException:  # noqa: BLE001 - the interpreter would take it to the hook
        sys.excepthook(*sys.exc_info())
        code = 1
    atexit._run_exitfuncs()
    sys.stdout.flush()
    return code
