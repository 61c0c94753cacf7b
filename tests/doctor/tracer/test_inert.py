# ruff: noqa: E501 - lines of scripts
"""Under the tracer every Python behaves as without it: what it prints, how it ends, what it sees of itself."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from accel_doctor.evidence.trace_file import read_traced_ranks
from accel_doctor.launch.job import traced

pytestmark = pytest.mark.ranks

PROBE = "import sys, os; print(sys.argv, sys.path[0], __name__, os.environ.get('PYTHONPATH'), sys.modules['__main__'])"
SCRIPTS = {
    "itself": (PROBE, (), ""),
    "exit code": ("import sys; print(1); sys.exit(3)", (), ""),
    "exit with words": ("raise SystemExit('no data')", (), ""),
    "os._exit": ("import os; os._exit(4)", (), ""),
    "own error": ("def f(): raise ValueError('bad')\nf()", (), ""),
    "own excepthook": ("import sys\nsys.excepthook = lambda *a: print('mine', a[0])\n1 / 0", (), ""),
    "stdin": ("import sys; print(sys.stdin.read()[::-1])", (), "abc"),
    "arguments": ("import sys; print(sys.argv[1:])", ("--lr", "1e-4", "--", "x"), ""),
    "print to a file": (
        "import io; b = io.StringIO(); print('a', 'b', sep='-', end='!', file=b); print(b.getvalue())",
        (),
        "",
    ),
    "print takes what print takes": ("print(object.__name__, None, flush=True, end='')", (), ""),
    "pickle": (
        "import pickle\nclass A: pass\nprint(type(pickle.loads(pickle.dumps(A()))) is A, pickle.loads(pickle.dumps(print)) is print)",
        (),
        "",
    ),
    "spawned workers": (
        (
            "import multiprocessing as m\ndef f(i): return i * i\n"
            "if __name__ == '__main__':\n    with m.get_context('spawn').Pool(1) as p: print(p.map(f, [1, 2, 3]))"
        ),
        (),
        "",
    ),
    "forked workers": (
        "import os\npid = os.fork()\nif not pid:\n    print('child', flush=True); os._exit(0)\nos.waitpid(pid, 0); print('parent')",
        (),
        "",
    ),
    "a child Python": (
        "import subprocess, sys\nprint(subprocess.run([sys.executable, '-c', 'import sys; print(sys.path[0], len(sys.meta_path))'], capture_output=True, text=True).stdout)",
        (),
        "",
    ),
    "logging": (
        "import logging, sys\nlogging.basicConfig(stream=sys.stdout, format='%(lineno)d %(funcName)s %(message)s')\nlogging.getLogger('a').warning('%s', 'b')",
        (),
        "",
    ),
    "argparse": (
        "import argparse\np = argparse.ArgumentParser()\np.add_argument('--batch_size', type=int, default=3)\nprint(p.parse_args())",
        ("--batch_size", "8"),
        "",
    ),
    "atexit": ("import atexit\natexit.register(print, 'last')\nprint('first')", (), ""),
    "threads": (
        "import threading\nt = threading.Thread(target=print, args=('in a thread',)); t.start(); t.join()",
        (),
        "",
    ),
}


def run(folder: Path, words: list[str], stdin: str, *, watched: bool) -> tuple[int, str, str]:
    """Return how a Python with RANK set ended and what it printed."""
    base = {k: v for k, v in os.environ.items() if k in ("PATH", "HOME", "LANG", "COVERAGE_PROCESS_START")}
    base |= {"RANK": "0", "LOCAL_RANK": "0", "WORLD_SIZE": "1", "PYTHONDONTWRITEBYTECODE": "1"}
    (folder / "run" / "ranks").mkdir(parents=True, exist_ok=True)
    environment = traced(base, folder / "run", "", None) if watched else base
    done = subprocess.run(
        [sys.executable, *words],
        env=environment,
        cwd=folder,
        input=stdin,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("name", SCRIPTS)
def test_a_script_is_the_same(name: str, tmp_path: Path) -> None:
    text, arguments, stdin = SCRIPTS[name]
    (tmp_path / "train.py").write_text(text)
    words = ["train.py", *arguments]
    assert run(tmp_path, words, stdin, watched=True) == run(tmp_path, words, stdin, watched=False)
    assert len(read_traced_ranks(tmp_path / "run")) == 1


def test_a_module_is_the_same(tmp_path: Path) -> None:
    (tmp_path / "pkg").mkdir()
    (tmp_path / "pkg" / "train.py").write_text(PROBE)
    words = ["-m", "pkg.train", "--x"]
    assert run(tmp_path, words, "", watched=True) == run(tmp_path, words, "", watched=False)


def test_the_users_own_sitecustomize_still_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "lib").mkdir()
    (tmp_path / "lib" / "sitecustomize.py").write_text(
        "print('mine', __name__, __file__.endswith('lib/sitecustomize.py'))"
    )
    (tmp_path / "train.py").write_text("import sys; print(sys.path[1].endswith('lib'), sys.modules['sitecustomize'])")
    base = {"PATH": os.environ["PATH"], "RANK": "0", "PYTHONPATH": str(tmp_path / "lib")}
    (tmp_path / "run" / "ranks").mkdir(parents=True)
    said = [
        subprocess.run(
            [sys.executable, "train.py"], env=env, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=True
        ).stdout
        for env in (traced(base, tmp_path / "run", "", None), base)
    ]
    assert said[0] == said[1]
    assert said[0].startswith("mine sitecustomize True")


def test_a_launcher_and_a_python_that_never_trains_write_nothing(tmp_path: Path) -> None:
    (tmp_path / "torchrun").write_text("print('launches')")
    assert run(tmp_path, ["torchrun"], "", watched=True)[1] == "launches\n"
    assert read_traced_ranks(tmp_path / "run") == ()


@pytest.mark.parametrize(
    "broken", ["said._note", "files._opened", "endings._failed", "beat.Writer.summary", "sites.is_user", "sites.site"]
)
def test_a_hook_that_fails_is_recorded_and_the_script_goes_on(broken: str, tmp_path: Path) -> None:
    module, _, name = broken.partition(".")
    holder, _, function = name.rpartition(".")
    target = f"sys.modules['_accel_doctor_tracer.{module}']" + (f".{holder}" if holder else "")
    (tmp_path / "train.py").write_text(
        f"import sys\ndef bad(*a, **k): raise KeyError('injected')\nsetattr({target}, {function!r}, bad)\n"
        "import json, logging.handlers, argparse\nopen('x.txt', 'w').write('x')\nprint(open('x.txt').read())\n1 / 0\n"
    )
    code, said, error = run(tmp_path, ["train.py"], "", watched=True)
    assert (code, said) == (1, "x\n")
    assert error.endswith("ZeroDivisionError: division by zero\n")
    assert "injected" not in error


def test_a_run_directory_that_is_gone_changes_nothing(tmp_path: Path) -> None:
    (tmp_path / "train.py").write_text("print('trains')")
    environment = traced({"PATH": os.environ["PATH"], "RANK": "0"}, tmp_path / "absent", "/dev/shm/absent", None)
    done = subprocess.run(
        [sys.executable, "train.py"],
        env=environment,
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert (done.stdout, done.stderr) == ("trains\n", "")
