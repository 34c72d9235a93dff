"""The command line. The command ``hyperelm --help`` lists what it can do."""

from hyperelm.cli._commands import app, reason

__all__ = ["app", "reason"]
