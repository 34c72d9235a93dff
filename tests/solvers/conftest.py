"""Rows of other array libraries: the same tests, with every row block given to accumulators as one of theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from hyperelm.solvers.accumulator import Accumulator


@pytest.fixture(scope="module")
def rows_of_library(library: Callable[[Any], Any]) -> Iterator[None]:
    """Every `update` in the tests of a module gets arrays of the library, whatever the test gives it."""
    if library is np.asarray:
        yield
        return
    update = Accumulator.update

    def converted(state: Accumulator, H: Any, T: Any, weight: Any = None, **options: Any) -> None:
        if options.get("known"):
            options["known"] = options["known"]._replace(image=library(options["known"].image))
        update(state, library(H), library(T), None if weight is None else library(weight), **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Accumulator, "update", converted)
        yield
