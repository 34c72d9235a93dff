"""Networks with a ridge: what they choose and compute, beside the same by brute force and by scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from numpy.testing import assert_allclose
from sklearn.linear_model import Ridge

from hyperelm import algebras, linalg
from hyperelm.experiments import _networks
from hyperelm.experiments._networks import PATH, RidgeNetworks


def network(algebra, rows, targets, noise=1.0):
    """A network of three hidden numbers, and rows of two numbers whose targets fill components from the second on."""
    rng = np.random.default_rng(rows)
    X = rng.standard_normal((rows, 2, algebra.dim))
    T = np.zeros((rows, 1, algebra.dim))
    T[:, 0, algebra.dim - targets :] = np.tanh(X[:, 0, :targets]) + noise * rng.standard_normal((rows, targets)) + 5
    return RidgeNetworks(algebra, 0.7 * rng.standard_normal((1, 3, 3, algebra.dim))), X, T


def left_out_errors(net, H, T):
    """Of every ridge, by leaving out one row after the other and fitting scikit-learn's ridge regression anew."""
    algebra, n = net.algebra, len(H)
    A = linalg.left_matrix(H[:, :-1], algebra).reshape(n, algebra.dim, -1)
    t = T[:, 0]
    centred = (A - A.mean(axis=0)).reshape(-1, A.shape[2])
    ridges = PATH * np.linalg.norm(centred, 2) ** 2
    used = t.any(axis=0)
    # An intercept for every component, which the ridge does not see: columns of large numbers.
    intercepts = np.broadcast_to(1e5 * np.eye(algebra.dim), (n, algebra.dim, algebra.dim))
    B = np.concatenate([A, intercepts], axis=2)
    errors = np.zeros(len(ridges))
    for m in range(n):
        rest = np.arange(n) != m
        for k, alpha in enumerate(ridges):
            model = Ridge(alpha, fit_intercept=False, solver="svd").fit(
                B[rest].reshape(-1, B.shape[2]), t[rest].ravel()
            )
            errors[k] += np.sum((model.predict(B[m]) - t[m])[used] ** 2)
    return ridges, errors


@pytest.mark.parametrize(("name", "targets"), [("real", 1), ("complex", 1), ("quaternions", 3), ("R[+1,-1]", 1)])
def test_the_ridge_with_the_least_error(name, targets, monkeypatch):
    net, X, T = network(algebras.get(name), 12, targets)
    H = net.with_bias(next(net.codes(X)).copy())
    ridges, errors = left_out_errors(net, H, T)
    found = []
    inner = _networks._left_out
    monkeypatch.setattr(_networks, "_left_out", lambda *arguments: found.append(inner(*arguments)) or found[-1])
    solution = net.solve(H, T)
    assert_allclose(found, errors, rtol=1e-4)
    A = linalg.left_matrix(H[:, :-1], net.algebra)
    A, t = (rows.reshape(len(X), net.algebra.dim, -1) for rows in (A, linalg.to_real(T)))
    centred_A, centred_t = ((rows - rows.mean(axis=0)).reshape(-1, rows.shape[2]) for rows in (A, t))
    best = Ridge(ridges[np.argmin(errors)], fit_intercept=False).fit(centred_A, centred_t)
    assert_allclose(linalg.to_real(solution[:-1]).ravel(), best.coef_.ravel(), rtol=1e-6)
    residual = linalg.matmul(H, solution, net.algebra) - T
    assert_allclose(residual.mean(axis=0), 0, atol=1e-9)  # so the bias is free


def test_noise_is_not_learnt():
    net, X, T = network(algebras.get("quaternions"), 40, 1, noise=1e3)
    predicted = next(net.fit(X, T).predict(X))
    assert predicted[:, 0, 3].std() < 0.2 * T[:, 0, 3].std()


def test_some_of_many_rows_choose(monkeypatch):
    """With one ridge to choose from, the rows that choose do not matter."""
    net, X, T = network(algebras.get("complex"), 60, 1)
    monkeypatch.setattr(_networks, "PATH", PATH[4:5])
    whole = net.fit(X, T).output_weights_
    monkeypatch.setattr(_networks, "_LEFT_OUT", 25)
    assert_allclose(net.fit(X, T).output_weights_, whole, rtol=1e-12)


def test_targets_that_nothing_explains():
    """Where inputs do not vary, the mean is predicted."""
    net, X, T = network(algebras.get("complex"), 20, 1)
    predicted = next(net.fit(np.zeros_like(X), T).predict(X[:3]))
    assert_allclose(predicted[:, 0], np.broadcast_to(T[:, 0].mean(axis=0), (3, 2)), atol=1e-9)
