import pytest

from accel_doctor.tracer.redaction import without_secrets


@pytest.mark.parametrize(
    ("typed", "kept"),
    [
        ("train.py --hub_token abc --lr 1e-4", "train.py --hub_token … --lr 1e-4"),
        ("train.py --hub-token=abc", "train.py --hub-token=…"),
        ("train.py wandb.api_key=abc", "train.py wandb.api_key=…"),
        ("WANDB_API_KEY=abc python train.py", "WANDB_API_KEY=… python train.py"),
        (
            "launch --aws_access_key_id a --aws_secret_access_key=b",
            "launch --aws_access_key_id … --aws_secret_access_key=…",
        ),
        ("train.py --push hf_abcdefghijklmnopqrst", "train.py --push …"),
        ("train.py --push_to hub=hf_abcdefghijklmnopqrst", "train.py --push_to hub=…"),
    ],
)
def test_the_values_of_secrets_are_left_out(typed: str, kept: str) -> None:
    assert without_secrets(typed.split()) == tuple(kept.split())


@pytest.mark.parametrize(
    "typed",
    [
        "train.py --tokenizer_name gpt2 --max_tokens 512",
        "train.py --model hf_models/llama --keys 3",
        "train.py --use_auth_token --lr 1e-4",
        "accelerate launch --monkey 1 hf_train.py",
        "train.py token",
    ],
)
def test_what_only_looks_like_one_stays(typed: str) -> None:
    assert without_secrets(typed.split()) == tuple(typed.split())
