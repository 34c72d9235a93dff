"""Where arithmetic runs: the kernels of `Backend` work for any array library, and NumPy has faster ones.

`backend_of` finds the kernels for an array. No code outside of this room asks where an array lives: it calls a kernel,
or one of the functions of `arrays`, which take arrays of every library. This room knows nothing of algebras: it sees
arrays, matrices of coefficients and lists of products.
"""

from __future__ import annotations

from typing import Any

from hyperelm._backend.arrays import is_elsewhere, namespace
from hyperelm._backend.by_array_api import Backend, Beside, Pair, Sums, Terms
from hyperelm._backend.by_numpy import NumpyBackend, chunks

__all__ = ["ARRAY_API", "NUMPY", "Backend", "Beside", "Pair", "Sums", "Terms", "backend_of", "chunks"]

ARRAY_API, NUMPY = Backend(), NumpyBackend()


def backend_of(*arrays: Any, **named: Any) -> Backend:
    """The kernels for these arrays. Arrays that are given by name must be of one library on one device."""
    if named:
        namespace(**named)
    return ARRAY_API if any(map(is_elsewhere, (*arrays, *named.values()))) else NUMPY
