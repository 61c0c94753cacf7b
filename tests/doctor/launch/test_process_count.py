import pytest

from accel_doctor.errors import UsageError
from accel_doctor.launch.process_count import with_processes


@pytest.mark.parametrize(
    ("words", "count", "wanted"),
    [
        ("accelerate launch --num_processes 2 a.py", 4, "accelerate launch --num_processes 4 a.py"),
        ("accelerate launch --multi_gpu --num_processes=2 a.py", 1, "accelerate launch --num_processes=1 a.py"),
        ("torchrun --nproc-per-node 8 a.py --num_processes 3", 2, "torchrun --nproc-per-node 2 a.py --num_processes 3"),
    ],
)
def test_the_launchers_own_count_is_replaced(words: str, count: int, wanted: str) -> None:
    assert " ".join(with_processes(words.split(), count)) == wanted


def test_a_command_without_a_count_is_refused() -> None:
    with pytest.raises(UsageError, match="name it in the command"):
        with_processes(["python", "a.py"], 2)
