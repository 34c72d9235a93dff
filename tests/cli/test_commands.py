from __future__ import annotations

import subprocess
import sys

import numpy as np
import onnxruntime
import pytest

from hyperelm import Algebra, ELMAutoencoder, ELMClassifier, ELMRegressor, __version__, algebras, load, save
from hyperelm.__main__ import main
from hyperelm._estimators.frame import FrameRegressor
from runs import command as run


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


def test_a_missing_extra_is_one_line(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("hyperelm.cli")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "typer", None)
    with pytest.raises(SystemExit) as ended:
        main()
    assert ended.value.code == "The command line needs the package 'typer': pip install 'hyperelm[cli]'"


@pytest.fixture
def model(tmp_path):
    X = np.random.default_rng(0).standard_normal((50, 6))
    classifier = ELMClassifier("tessarines", n_hidden=7, direct_link=True, random_state=3, ridge=0.5, solver="qr")
    save(classifier.fit(X, np.array(["no", "yes"])[np.arange(50) % 2]), tmp_path / "model", state=True)
    return tmp_path / "model"


def test_info(model):
    result = run("info", str(model))
    assert result.exit_code == 0
    lines = {line[:12].strip(): line[14:] for line in result.output.splitlines()}
    assert "i | i -1 k -j" in result.output
    assert lines["model"] == f"ELMClassifier, written by hyperelm {__version__}"
    assert lines["parameters"].startswith("164 real numbers, float64, ")  # (3 x 7 + (7 + 2 + 1) x 2) numbers
    assert lines["input"] == "6 columns, as 2 numbers of 4 components, packing full"
    assert lines["hidden"] == "7 neurons, tanh, bias, direct link"
    assert lines["trained"] == "on 50 rows by qr, and can go on"
    assert lines["ridge"] == "0.5"
    assert lines["error"] == "not known"
    assert lines["random state"] == "3"
    assert lines["classes"] == "2: no, yes"


def test_info_of_others(tmp_path):
    X = np.random.default_rng(0).standard_normal((50, 5, 4))
    save(ELMAutoencoder(n_hidden=3, bias=False).fit(X), tmp_path / "model")
    output = run("info", str(tmp_path / "model")).output
    assert "5 x 4 components, as 5 numbers" in output
    assert "encoder       random" in output
    assert "without the accumulator to go on" in output
    hostile = Algebra(algebras.get("complex").table, name="\x1b[2J\x1b]0;owned\x07", units=["\x9b1m"])
    save(ELMRegressor(hostile, n_hidden=3).fit(X[:, 0], X[:, 0, 0]), tmp_path / "model")
    output = run("info", str(tmp_path / "model")).output
    assert "ELMRegressor" in output
    assert all(c.isprintable() or c == "\n" for c in output)


def test_export_onnx(model, tmp_path):
    graph = tmp_path / "model.onnx"
    result = run("export-onnx", str(model), str(graph))
    assert (result.exit_code, result.output) == (0, "")
    X = np.random.default_rng(1).standard_normal((9, 6)).astype(np.float32)
    label, _ = onnxruntime.InferenceSession(graph.read_bytes()).run(None, {"X": X})
    assert label.tolist() == load(model).predict(X).tolist()


def test_export_onnx_in_double_precision(tmp_path):
    """The way out for columns far from zero, whose digits single precision does not hold."""
    X = np.random.default_rng(0).standard_normal((80, 4)) + 1e6
    model, graph = tmp_path / "model", tmp_path / "model.onnx"
    save(FrameRegressor("klein4", 5, random_state=0).fit(X, X[:, 0] * X[:, 1]), model)
    refused = run("export-onnx", str(model), str(graph))
    assert refused.exit_code == 2
    assert refused.stderr.startswith("`dtype` must be 'float64' for this model")
    assert "--double" in refused.stderr
    assert not graph.exists()
    assert run("export-onnx", str(model), str(graph), "--double").exit_code == 0
    (prediction,) = onnxruntime.InferenceSession(graph.read_bytes()).run(None, {"X": X})
    np.testing.assert_allclose(prediction, load(model).predict(X), rtol=1e-12)


def test_export_onnx_overwrites_nothing(model, tmp_path):
    before = model.read_bytes()
    for path, message in [(model, "FILE must name a new file"), (tmp_path / "no" / "x", "in a folder that exists")]:
        result = run("export-onnx", str(model), str(path))
        assert result.exit_code == 2
        assert message in result.stderr
        assert len(result.stderr.splitlines()) == 1
    assert model.read_bytes() == before


@pytest.mark.parametrize("command", ["info", "export-onnx"])
def test_a_file_that_is_no_model(command, tmp_path):
    rest = [str(tmp_path / "new.onnx")] if command == "export-onnx" else []
    text, no = tmp_path / "text", tmp_path / "no"
    text.write_text("hello")
    for path, line in {
        text: f"'{text}' cannot be loaded: it is not a file of hyperelm, or not all of one.",
        no: f"No such file or directory: '{no}'.",
    }.items():
        result = run(command, str(path), *rest)
        assert result.exit_code == 2
        assert result.stderr == f"{line}\n"
        assert result.stdout == ""
    assert not (tmp_path / "new.onnx").exists()


def test_export_onnx_without_its_extra(model, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "onnx", None)
    result = run("export-onnx", str(model), str(tmp_path / "model.onnx"))
    assert result.exit_code == 2
    assert result.stderr == "ONNX needs the extra 'onnx': pip install 'hyperelm[onnx]'.\n"
    assert not (tmp_path / "model.onnx").exists()
