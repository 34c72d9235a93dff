"""Rows of other array libraries: the same tests, with every row block given to accumulators as one of theirs."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

from hyperelm.solvers.accumulator import Accumulator


def _converter(name: str) -> Callable[[Any], Any]:
    """From what NumPy takes to an array of the library, on a device that NumPy cannot look into where there is one."""
    library = pytest.importorskip(name, reason=f"{name} is not installed: pip install 'hyperelm[test]'")
    if name == "torch":
        return lambda array: library.asarray(np.array(array))
    return lambda array: library.asarray(np.array(array), device=library.Device("device1"))


@pytest.fixture(scope="module", params=["numpy", "torch", "array_api_strict"])
def library(request: pytest.FixtureRequest) -> Iterator[str]:
    """The library whose arrays `update` gets in this module's tests, whatever they give it."""
    name, update = request.param, Accumulator.update
    if name == "numpy":
        yield name
        return
    convert = _converter(name)

    def converted(state: Accumulator, H: Any, T: Any, weight: Any = None, **options: Any) -> None:
        if options.get("known"):
            options["known"] = options["known"]._replace(image=convert(options["known"].image))
        update(state, convert(H), convert(T), None if weight is None else convert(weight), **options)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Accumulator, "update", converted)
        yield name
