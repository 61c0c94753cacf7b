"""Takes secrets out of a command line before it is kept or shown. Pure."""

from collections.abc import Iterable, Iterator

HIDDEN = "…"
_SECRETS = frozenset(("auth", "apikey", "credential", "credentials", "key", "passwd", "password", "secret", "token"))
_KNOWN_BEGINNINGS = ("hf_", "sk-", "ghp_", "github_pat_", "AKIA", "xoxb-")
"""How the tokens of well-known services begin, whatever flag carries them."""
_LEAST_TOKEN = 16


def without_secrets(words: Iterable[str]) -> tuple[str, ...]:
    """Return the words of a command line with the values of its secrets replaced by ``…``.

    A secret is the value of a flag or variable that is named so (``--hub_token x``, ``--api-key=x``,
    ``WANDB_API_KEY=x``, ``--aws_…``), and what begins as the tokens of well-known services do.
    """
    return tuple(_kept(words))


def _kept(words: Iterable[str]) -> Iterator[str]:
    hide = False
    for word in words:
        name, equals, value = word.partition("=")
        secret = _names_secret(name)
        if hide and not word.startswith("--"):
            yield HIDDEN
        elif (secret and value) or _is_token(value):
            yield f"{name}={HIDDEN}"
        else:
            yield HIDDEN if _is_token(word) else word
        hide = secret and not equals and word.startswith("-")


def _names_secret(name: str) -> bool:
    parts = name.lstrip("-").lower().replace("-", "_").replace(".", "_").split("_")
    return parts[0] == "aws" or not _SECRETS.isdisjoint(parts)


def _is_token(word: str) -> bool:
    return word.startswith(_KNOWN_BEGINNINGS) and len(word) >= _LEAST_TOKEN and "/" not in word and "." not in word
