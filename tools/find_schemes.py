"""Find the schemes and planes of the catalogue's algebras and write the file that the package ships.

    python tools/find_schemes.py

Run it when an algebra of at most 4 components joins the catalogue, or when a search changes. It takes a minute.
The test `tests/_algebra/test_shipped.py` proves what it writes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from unittest import mock

import numpy as np

from hyperelm import Algebra, algebras
from hyperelm._algebra import forms, schemes

OUTPUT = Path(schemes.__file__).with_name(schemes.SHIPPED)


def supports(algebra: Algebra) -> Iterator[tuple[int, ...]]:
    """The supports that are common in practice: all components, the imaginary ones, the real one."""
    yield from (tuple(range(algebra.dim)), tuple(range(1, algebra.dim)), (0,))


def search_all() -> None:
    """Ask for everything that training with an algebra of the catalogue may search for."""
    for algebra in map(algebras.get, algebras.names()):
        forms.gram_plan(algebra, search=True)
        for support in supports(algebra):
            schemes.scheme(algebra, support, None)
            schemes.scheme(algebra, None, support)
            schemes.reverse_scheme(algebra, support)


def main() -> None:
    arrays: dict[str, np.ndarray] = {}
    known: set[tuple[str, bytes]] = set()

    def record(purpose: str, sought: np.ndarray, search: Callable[[], np.ndarray | None]) -> np.ndarray | None:
        found = search()
        if (purpose, sought.tobytes()) not in known:
            name = f"{purpose} {len(known)}"
            known.add((purpose, sought.tobytes()))
            arrays[f"{name} sought"] = sought
            arrays[f"{name} found"] = np.empty((len(sought), 0)) if found is None else found
        return found

    with mock.patch.object(schemes, "recall", record), mock.patch.object(forms, "recall", record):
        search_all()
    np.savez_compressed(OUTPUT, **arrays)
    print(f"{len(known)} results, {OUTPUT.stat().st_size:,} bytes, in {OUTPUT}")


if __name__ == "__main__":
    main()
