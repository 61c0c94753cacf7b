"""The ``accel-doctor`` command: finds the verb, and turns every error into one line and exit code 2."""

import importlib
import os
import sys

import click

from accel_doctor import __version__
from accel_doctor.errors import DoctorError

VERBS = {
    "preflight": "Examine this machine's distributed set-up on real ranks; the default.",
    "run": "Examine your own script, unchanged, while it runs.",
    "attach": "Look at a job that runs already: which GPU is idle, who waits for whom.",
    "lint": "Read your scripts, without running them.",
    "report": "Judge recorded evidence again, anywhere.",
    "explain-log": "Read the log of a dead run: who failed first, of what, and the next step.",
    "explain": "Say what a check looks for, why it matters and what to do.",
    "list": "List the checks.",
}
DEFAULT = "preflight"
OWN_OPTIONS = ("-h", "--help", "--version")


class Verbs(click.Group):
    """The verbs, each imported when it is used; without one, ``preflight``."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Put the default verb before options that are not the group's own."""
        implied = not args or (args[0].startswith("-") and args[0] not in OWN_OPTIONS)
        return super().parse_args(ctx, [DEFAULT, *args] if implied else args)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002 - click's signature
        """Return the verbs in the order of the help."""
        return list(VERBS)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import a verb.

        Raises:
            UsageError: there is none of that name.
        """
        if cmd_name not in VERBS:
            ctx.fail(
                f"no verb is called {cmd_name!r}, but {', '.join(VERBS)}; "
                f"to examine the launch of a script: accel-doctor -- accelerate launch {cmd_name}"
            )
        command: click.Command = importlib.import_module(f"accel_doctor.commands.{cmd_name.replace('-', '_')}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:  # noqa: ARG002
        """List the verbs without importing them."""
        with formatter.section("Verbs"):
            formatter.write_dl(list(VERBS.items()))


@click.group(
    cls=Verbs,
    context_settings={"help_option_names": ["-h", "--help"]},
    subcommand_metavar="[VERB] [OPTIONS] [-- LAUNCH]",
    epilog="Exit codes: 0 passed, 1 failed, 2 incomplete, or the exam could not be held.",
)
@click.version_option(__version__, message="accel-doctor %(version)s")
def verbs() -> None:
    """Examine a distributed set-up for Hugging Face accelerate on real ranks, and say pass or fail."""


def main(arguments: list[str] | None = None) -> int:
    """Run one verb and return its exit code."""
    arguments = sys.argv[1:] if arguments is None else arguments
    try:
        code = verbs.main(arguments, prog_name="accel-doctor", standalone_mode=False)
    except DoctorError as error:
        return _say(str(error))
    except click.ClickException as error:
        return _say(_usage(error))
    except (KeyboardInterrupt, click.Abort):
        return _say("interrupted")
    except Exception as error:  # noqa: BLE001 - the one place that answers for what nobody foresaw
        return _say(_unforeseen(error, arguments))
    return code if isinstance(code, int) else 0


def _usage(error: click.ClickException) -> str:
    context = getattr(error, "ctx", None)
    return error.format_message() + (f" (see {context.command_path} --help)" if context else "")


def _unforeseen(error: Exception, arguments: list[str]) -> str:
    if isinstance(error, FileNotFoundError) and not _is_somewhere():
        return "the working directory is gone; change into one that exists"
    options = arguments[: arguments.index("--")] if "--" in arguments else arguments
    if {"-v", "--verbose"} & set(options) or os.environ.get("ACCEL_DOCTOR_DEBUG"):
        import traceback  # noqa: PLC0415 - only errors need it

        return "".join(traceback.format_exception(error)).rstrip()
    return (
        f"this is a fault of the doctor's own: {type(error).__name__}: {error}; "
        "please report it with what ACCEL_DOCTOR_DEBUG=1 adds"
    )


def _is_somewhere() -> bool:
    try:
        os.getcwd()  # noqa: PTH109 - pathlib is not loaded for this
    except FileNotFoundError:
        return False
    return True


def _say(message: str) -> int:
    from accel_doctor.streams import say  # noqa: PLC0415 - only errors need it

    say(f"accel-doctor: {message}")
    return 2
