"""The command line. The command ``hyperelm --help`` lists what it can do."""

from hyperelm.cli import _commands, _models  # noqa: F401 (they add their commands to the app)
from hyperelm.cli._app import app, reason

__all__ = ["app", "reason"]
