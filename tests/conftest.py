from __future__ import annotations

import pytest
from hypothesis import settings

from hyperelm import Algebra, algebras

pytest_plugins = ["browser"]

# Derandomised, so that a run on one machine says the same on another; no deadline on shared machines.
settings.register_profile("hyperelm", deadline=None, derandomize=True, max_examples=25)
settings.load_profile("hyperelm")


@pytest.fixture(params=algebras.names())
def algebra(request: pytest.FixtureRequest) -> Algebra:
    """Every algebra of the catalogue in turn."""
    return algebras.get(request.param)
