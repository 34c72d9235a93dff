"""Rows of other array libraries: the same tests, with every chunk given to accumulators as one of theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from hyperelm._linalg.planes import Numbers
from hyperelm._solvers.accumulator import Accumulator


def numbers_of(numbers: Numbers, library: Callable[[Any], Any]) -> Numbers:
    """The same numbers as an array of the library, with all that is known of them."""
    copy = Numbers(library(numbers.array))
    known = {name: vars(numbers)[name] for name in ("support", "square") if name in vars(numbers)}
    vars(copy).update(known)
    if numbers._formed is not None:
        basis, image = numbers._formed
        copy._formed = basis, library(image)
    return copy


@pytest.fixture(scope="module")
def rows_of_library(library: Callable[[Any], Any]) -> Iterator[None]:
    """Every `update` in the tests of a module gets arrays of the library, whatever the test gives it."""
    if library is np.asarray:
        yield
        return
    update = Accumulator.update

    def converted(accumulator: Accumulator, H: Any, T: Any, weight: Any = None, **options: Any) -> None:
        targets = numbers_of(T, library) if isinstance(T, Numbers) else library(T)
        update(accumulator, library(H), targets, None if weight is None else library(weight), **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Accumulator, "update", converted)
        yield
