"""What a preflight starts as each rank: ``python -m accel_doctor.probes RUN_DIR``."""

import faulthandler
import importlib
import os
import sys
import time
import traceback
from pathlib import Path
from types import ModuleType

import msgspec

from accel_doctor.evidence import ProbeOptions, RankEnd
from accel_doctor.evidence.probe_options import PROBE_FILE
from accel_doctor.probes.beat import start_beat
from accel_doctor.probes.identity import identity
from accel_doctor.probes.record import RankFile

LAST_WORDS = 12


def main(run_dir: Path) -> int:
    """Run every probe in this rank, write what it saw below ``run_dir``, and return the exit code."""
    faulthandler.enable()
    options = msgspec.json.decode((run_dir / PROBE_FILE).read_bytes(), type=ProbeOptions)
    record = RankFile(run_dir)
    start_beat(record, options)
    record.write(**identity(os.environ))
    end = live(record, options)
    record.end(end)
    return end.exit_code or 0


def live(record: RankFile, options: ProbeOptions) -> RankEnd:
    """Go through all phases and return how it ended."""
    try:
        record.begin("import")
        seat = _module("join").join(record, options)
        for phase in phases(options, str(seat.accelerator.distributed_type.value)):
            record.begin(phase)
            seen = _module(phase).probe(seat)
            if seen is not None:
                record.write(**{phase: seen})
    except SystemExit as left:
        code = left.code if isinstance(left.code, int) else int(left.code is not None)
        return RankEnd(how="exit", at_s=time.time(), exit_code=code)
    except KeyboardInterrupt:
        return RankEnd(how="stopped", at_s=time.time(), exit_code=130)
    except Exception as error:  # noqa: BLE001 - whatever a probe dies of is evidence
        traceback.print_exc()
        return _failure(error)
    return RankEnd(how="finished", at_s=time.time(), exit_code=0)


def _failure(error: Exception) -> RankEnd:
    return RankEnd(
        how="error",
        at_s=time.time(),
        exit_code=1,
        error=f"{type(error).__name__}: {error}",
        last_words=tuple("".join(traceback.format_exception(error)).splitlines()[-LAST_WORDS:]),
    )


def phases(options: ProbeOptions, distributed_type: str) -> tuple[str, ...]:
    """Return the phases after joining; each is a module with a ``probe``, and those that see something fill a field.

    Megatron-LM trains models of its own only, so there is nothing to prepare under it.
    """
    model = () if distributed_type == "MEGATRON_LM" else ("prepare", "data", "training")
    storage = ("storage",) if options.checkpoint_dir and model else ()
    pairs = ("pairs",) if options.several_machines else ()
    copies = ("copies",) if options.busy_s > 0 else ()
    return ("guards", *model, "sweep", *pairs, *copies, "compute", *storage, "leave")


def _module(name: str) -> ModuleType:
    return importlib.import_module(f"accel_doctor.probes.{name}")


if __name__ == "__main__":
    code = main(Path(sys.argv[1]))
    sys.stdout.flush()
    sys.stderr.flush()
    os._exit(code)
