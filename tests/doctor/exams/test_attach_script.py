"""What a script's text says of CUDA_VISIBLE_DEVICES, DataParallel and its launch."""

import pytest

from accel_doctor.exams.attach_script import Assigned, Told, told_by

VARIABLE = '"CUDA_VISIBLE_DEVICES"'


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f'import os\nos.environ[{VARIABLE}] = "1"\n', Assigned(2, "1", default=False)),
        ("import os\nos.environ['CUDA_VISIBLE_DEVICES']='0,1'  # mine\n", Assigned(2, "0,1", default=False)),
        (f'environ.setdefault({VARIABLE}, "0")\n', Assigned(1, "0", default=True)),
        (f'os.putenv({VARIABLE}, "0")\n', Assigned(1, "0", default=False)),
        (f'if args.first:\n    os.environ[{VARIABLE}] = "0"\n', Assigned(2, None, default=False)),
        (f"os.environ[{VARIABLE}] = str(args.gpu)\n", Assigned(1, None, default=False)),
        (f'os.environ[{VARIABLE}] = f"{{args.gpu}}"\n', Assigned(1, None, default=False)),
        (f'# os.environ[{VARIABLE}] = "0"\n', None),
        (f'if os.environ[{VARIABLE}] == "0":\n    pass\n', None),
        (f"print(os.environ.get({VARIABLE}, '0'))\n", None),
    ],
)
def test_the_line_that_hides_a_gpu(text: str, expected: Assigned | None) -> None:
    assert told_by(text).assigned == expected


def test_a_wrapper_and_a_launcher_by_name() -> None:
    assert told_by("") == Told()
    assert told_by("model = nn.DataParallel(model)\n") == Told(distributes=False, parallel_line=1)
    assert told_by("# nn.DataParallel(model)\nDistributedDataParallel(model)\n") == Told(distributes=False)
    assert told_by("from accelerate import Accelerator\n") == Told(distributes=True)
