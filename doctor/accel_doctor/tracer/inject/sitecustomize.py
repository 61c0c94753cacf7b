"""Loaded by every Python below ``accel-doctor run``: runs the user's own sitecustomize, then starts the tracer."""

import importlib.machinery
import importlib.util
import os
import sys

HERE = os.path.dirname(os.path.abspath(__file__))
PACKAGE = "_accel_doctor_tracer"


def _run_next() -> None:
    """Leave ``sys.path`` as the user had it, and run the sitecustomize that this one hides."""
    sys.path[:] = [entry for entry in sys.path if os.path.abspath(entry or ".") != HERE or not entry]
    ours = sys.modules.pop("sitecustomize", None)
    spec = importlib.machinery.PathFinder.find_spec("sitecustomize", sys.path)
    if spec is None or spec.loader is None:
        if ours is not None:
            sys.modules["sitecustomize"] = ours
        return
    module = importlib.util.module_from_spec(spec)
    sys.modules["sitecustomize"] = module
    spec.loader.exec_module(module)


def _start_tracer() -> None:
    """Load the tracer by its place, so that it needs nothing on ``sys.path``; its failure is nobody's."""
    folder = os.path.dirname(HERE)
    try:
        spec = importlib.util.spec_from_file_location(
            PACKAGE, os.path.join(folder, "__init__.py"), submodule_search_locations=[folder]
        )
        if spec is None or spec.loader is None:
            return
        package = importlib.util.module_from_spec(spec)
        sys.modules[PACKAGE] = package
        spec.loader.exec_module(package)
        importlib.import_module(PACKAGE + ".start").start()
    except Exception:  # noqa: BLE001, S110 - the user's run goes on without us
        pass


if os.environ.get("ACCEL_DOCTOR_TRACE"):
    _start_tracer()
_run_next()
