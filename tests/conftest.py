from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import settings

from helpers import ONE_OF_A_KIND
from hyperelm import Algebra, algebras

pytest_plugins = ["browser"]
LIBRARIES = ["numpy", "torch", "array_api_strict"]

# Numba, which the package clifford uses, would give its number of threads to the OpenMP library of torch for good.
os.environ.setdefault("NUMBA_NUM_THREADS", "1")

# Derandomised, so that a run on one machine says the same on another; no deadline on shared machines.
settings.register_profile("hyperelm", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("hyperelm")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Tests of all algebras and all array libraries: every algebra on NumPy, on the others one of a kind."""

    def is_wanted(item: pytest.Item) -> bool:
        params = item.callspec.params if isinstance(item, pytest.Function) and hasattr(item, "callspec") else {}
        return params.get("library", "numpy") == "numpy" or params.get("algebra", ONE_OF_A_KIND[0]) in ONE_OF_A_KIND

    items[:] = filter(is_wanted, items)


@pytest.fixture(params=algebras.names())
def algebra(request: pytest.FixtureRequest) -> Algebra:
    """Every algebra of the catalogue in turn."""
    return algebras.get(request.param)


@pytest.fixture(scope="module", params=LIBRARIES)
def library(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    """From what NumPy takes to an array of a library, on a device that NumPy cannot look into where it has one."""
    name = request.param
    if name == "numpy":
        return np.asarray
    xp = pytest.importorskip(name, reason=f"{name} is not installed: pip install 'hyperelm[test]'")
    device = xp.Device("device1") if name == "array_api_strict" else None
    return lambda array: xp.asarray(np.array(array), device=device)
