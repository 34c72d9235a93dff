"""What the searches of `schemes` and `forms` found for the algebras of the catalogue.

A search takes up to half a second, and another machine may end at other numbers. So the results for the catalogue
are shipped in `schemes.npz`, which `tools/find_schemes.py` writes. The file has two arrays for every search: what was
sought, such as a table, and what was found. A search that failed has an array without columns.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.resources import files

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
FILE = "schemes.npz"


def recall(purpose: str, sought: Array, search: Callable[[], Array | None]) -> Array | None:
    """What was found for `sought`, from the shipped results if they have it, else by a search now.

    `purpose` names the search, as two searches may be given equal arrays.
    """
    found = results().get((purpose, sought.tobytes()))
    if found is None:
        return search()
    return found if found.size else None


@cache
def results() -> dict[tuple[str, bytes], Array]:
    """The shipped results, by the purpose of the search and the bytes of what was sought."""
    with files(__package__).joinpath(FILE).open("rb") as file, np.load(file, allow_pickle=False) as arrays:
        sought = [name for name in arrays if name.endswith("sought")]
        return {(name.split()[0], arrays[name].tobytes()): arrays[name.replace("sought", "found")] for name in sought}
