from __future__ import annotations

import subprocess
import sys

from typer.testing import CliRunner

from hyperelm import __version__, algebras
from hyperelm.cli import app


def run(*arguments):
    return CliRunner().invoke(app, list(arguments))


def test_catalogue():
    result = run("algebras")
    assert result.exit_code == 0
    for name in algebras.names():
        assert name in result.output
    assert "M2(R)" in result.output


def test_one_algebra():
    result = run("algebras", "R[-1,+1]")
    assert result.exit_code == 0
    assert "i | i -1 k -j" in result.output
    assert "structure          M2(R)" in result.output
    assert "2 x 2 real in 2 copies" in result.output


def test_unknown_algebra():
    result = run("algebras", "quaternoins")
    assert result.exit_code == 2
    assert "Did you mean 'quaternions'?" in result.stderr
    assert result.stdout == ""


def test_version():
    assert run("--version").output.strip() == f"hyperelm {__version__}"


def test_module_runs():
    done = subprocess.run([sys.executable, "-m", "hyperelm", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"hyperelm {__version__}"


def test_a_missing_extra_is_one_line():
    code = "import sys; sys.modules['typer'] = None; from hyperelm.__main__ import main; main()"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.returncode == 1
    assert done.stderr.strip() == "The command line needs the package 'typer': pip install 'hyperelm[cli]'"
