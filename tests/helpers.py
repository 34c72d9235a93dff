"""What the tests of several rooms share: marks, random numbers, accumulators that have seen rows, and fitted models."""

from __future__ import annotations

import io
import multiprocessing
import os
import pickle
import signal
import tempfile
import warnings
from importlib.util import find_spec
from pathlib import Path

import joblib
import numpy as np
import pytest
from numpy.testing import assert_allclose

from hyperelm import RankDeficiencyWarning
from hyperelm._solvers.loo import BySpectrum, residuals_by
from hyperelm._solvers.spectrum import Spectrum

# One algebra for every kind of block structure: real, complex and quaternion blocks, copies, and tables without blocks.
VARIED = ["real", "complex", "dual", "klein4", "quaternions", "tessarines", "R[+1,+1]", "paper-Cl(1,1)", "octonions"]
# Those that differ most: several real blocks, a complex one, copies of a real and of a complex one, and no blocks.
ONE_OF_A_KIND = ["klein4", "quaternions", "R[+1,+1]", "biquaternions", "paper-Cl(1,1)"]


# ---------------------------------------------------------------------- what not every system has


def makes_links():
    """Whether this user may make symbolic links here; on Windows that is a right of its own."""
    with tempfile.TemporaryDirectory() as folder:
        try:
            Path(folder, "link").symlink_to(folder)
        except (OSError, NotImplementedError):
            return False
    return True


needs_fork = pytest.mark.skipif(not hasattr(os, "fork"), reason="needs os.fork")
needs_links = pytest.mark.skipif(not makes_links(), reason="needs the right to make symbolic links")
needs_named_pipes = pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes: os.mkfifo")
needs_rights = pytest.mark.skipif(os.name != "posix", reason="needs the file rights of a Unix system")
needs_sigkill = pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="needs signal.SIGKILL")
needs_file_limits = pytest.mark.skipif(
    find_spec("resource") is None, reason="needs a limit on the size of files: the module resource"
)
needs_proc = pytest.mark.skipif(
    not Path("/proc/self/statm").exists(), reason="needs what Linux tells of processes: /proc"
)


# ---------------------------------------------------------------------- data and models


def numbers(shape, seed=0, dtype=np.float64):
    """Normal random numbers, the same for the same seed."""
    return np.random.default_rng(seed).standard_normal(shape).astype(dtype)


def counting(*shape):
    """An array of 1, 2, 3, …, in which every entry can be told from the others."""
    return 1.0 + np.arange(np.prod(shape)).reshape(shape)


def rows_of(algebra, shape, seed=0):
    """Random rows H, (M, L, d), and targets T, (M, N, d), for shape = (M, L, N)."""
    M, L, N = shape
    rng = np.random.default_rng(seed)
    return rng.standard_normal((M, L, algebra.dim)), rng.standard_normal((M, N, algebra.dim))


def accumulated(kind, algebra, H, T, weight=None, dtype=np.float64):
    """An accumulator of the class `kind` that has seen all rows at once."""
    accumulator = kind(algebra, H.shape[1], T.shape[1], dtype)
    accumulator.update(H, T, weight)
    return accumulator


def outputs(model, X):
    """All that a fitted model gives for rows X."""
    methods = ("predict", "decision_function", "predict_proba", "transform", "reconstruct", "score_samples")
    return [getattr(model, method)(X) for method in methods if hasattr(model, method)]


def near(got, expected, *weights):
    """Assert that arrays agree to 1e-11 of the largest of the numbers that they are made of, and of 1."""
    size = max(1, *(np.abs(w).max(initial=0) for w in (expected, *weights)))
    assert_allclose(got, expected, rtol=0, atol=1e-11 * size)


def quietly(fit, *arguments):
    """What `fit` returns, where the columns of a random problem may depend on each other."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RankDeficiencyWarning)
        return fit(*arguments)


def fork(work):
    """A process that does the work in a fork of this one, where all is imported."""
    process = multiprocessing.get_context("fork").Process(target=work)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "This process.*is multi-threaded", DeprecationWarning)
        process.start()
    return process


def through_pickle(model):
    return pickle.loads(pickle.dumps(model))


def through_joblib(model):
    with io.BytesIO() as file:
        joblib.dump(model, file)
        file.seek(0)
        return joblib.load(file)


def left_out_residuals(spectrum, ridges, H, T, sample_weight=None):
    """The residuals HM - T, (m, ridges, N, d), that rows would have if each were left out, for every ridge.

    `sample_weight` is what is left out: all of the weight of a row, or a part of it.
    """
    return residuals_by(BySpectrum(spectrum, ridges), H, T, sample_weight)[0]


def leave_one_out(accumulator, solution, H, T, sample_weight=None, *, free=()):
    """The same for the ridge of a solution; a row of leverage 1 has no such residual and gives NaN."""
    H, T = (np.asarray(rows, dtype=accumulator.dtype) for rows in (H, T))
    # Without a ridge, no unknown is penalised.
    spectrum = Spectrum(accumulator, free if solution.ridge != 0 else ())
    return left_out_residuals(spectrum, np.array([solution.ridge]), H, T, sample_weight)[:, 0]
