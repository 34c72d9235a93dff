"""The largest eigenvalue beside that of NumPy."""

from __future__ import annotations

import numpy as np
import pytest

from hyperelm._solvers.lanczos import largest_eigenvalue


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex64, np.complex128])
@pytest.mark.parametrize("K", [1, 2, 7, 60, 300])
def test_it_is_close_from_below(K, dtype):
    """Also where many eigenvalues are about as large as the largest."""
    rng = np.random.default_rng(K)
    for rows in (K // 4 + 1, 2 * K, 20 * K):
        A = rng.standard_normal((rows, K))
        A = (A + 1j * rng.standard_normal(A.shape) if np.dtype(dtype).kind == "c" else A).astype(dtype)
        gram = A.conj().T @ A
        expected = np.linalg.eigvalsh(gram)[-1]
        found = largest_eigenvalue(lambda v, gram=gram: gram @ v, gram)
        assert 0.95 * expected <= found <= (1 + 1e-5) * expected


def test_of_nothing_and_of_zeros():
    assert largest_eigenvalue(lambda v: v, np.zeros((0, 0))) == 0
    assert largest_eigenvalue(lambda v: 0 * v, np.zeros((5, 5))) == 0
