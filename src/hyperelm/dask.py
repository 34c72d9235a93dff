"""Work on a dask cluster."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from typing import Any

from joblib import parallel_config

_PATIENCE = 10  # seconds until a scheduler that does not answer cannot be reached


@contextmanager
def cluster(address: str) -> Iterator[None]:
    """Send what joblib runs in parallel to the cluster whose scheduler has this address."""
    try:
        distributed: Any = import_module("distributed")
    except ModuleNotFoundError:
        raise ValueError("A dask cluster needs the extra 'dask': pip install 'hyperelm[dask]'.") from None
    try:
        client = distributed.Client(address, timeout=_PATIENCE)
    except (OSError, ValueError) as error:
        raise ValueError(f"The dask scheduler {address!r} cannot be reached: {error}.") from None
    with client, parallel_config(backend="dask"):
        yield
