"""What an accumulator keeps besides its sums: rows while they are few, and what was made of the sums for a moment."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

import numpy as np

from hyperelm._backend import backend_of
from hyperelm._backend.workspace import keeping_scratch
from hyperelm._linalg.planes import Numbers
from hyperelm._solvers.problem import Array
from hyperelm._validation import FloatArray

Made = TypeVar("Made", bound="KeepsFew")


class KeepsFew(ABC):
    """Rows, H and T, are kept while they are fewer than the unknowns. Then they are added to the sums.

    Attributes
    ----------
    few : list of (H, T)
        All rows that were seen, while they are kept; else empty.
    """

    keeps_few = True  # whether it keeps rows while they are fewer than the unknowns
    tail: float | None = None
    n_rows: int
    unknowns: int
    few: list[tuple[Array, Array]]

    @abstractmethod
    def _add(self, H: FloatArray, T: Numbers) -> None:
        """Add rows that were checked, weighted and counted already."""

    @abstractmethod
    def _merge(self, other: Any) -> None:
        """Add the sums of an accumulator of the same class and sizes."""

    @abstractmethod
    def _count_as(self, other: Any) -> None:
        """Stand for the rows that `other` has seen."""

    @property
    def unexplained(self) -> float | None:
        """The part of `square` that no solution explains beyond what `problems` know of it; None where it is lost."""
        return 0.0 if self.few else self.tail

    def keeps(self, before: int, more: int) -> bool:
        """Whether to keep the rows when, after so many rows before, so many more come."""
        has_no_sums = before == sum(len(H) for H, _ in self.few)
        return self.keeps_few and has_no_sums and before + more < self.unknowns

    def are_kept(self, H: FloatArray) -> bool:
        """Whether these are the rows that are kept, in their order and without weights."""
        return len(self.few) == 1 and np.array_equal(self.few[0][0], H)

    def take(self, H: FloatArray, T: Numbers) -> None:
        """Keep rows that were counted already, or add them. They may lie in scratch memory."""
        if backend_of(H).keeps_rows and self.keeps(self.n_rows - len(H), len(H)):
            self.few += [(np.array(H), np.array(T.array))] if len(H) else []
        else:
            self.sum_few()
            self._add(H, T)

    def sum_few(self) -> None:
        """Add the rows that are kept: more have come, or the sums are asked for."""
        few, self.few = self.few, []
        for H, T in few:
            self._add(H, Numbers(T))

    def join(self, other: Any) -> None:
        if other.few and self.keeps(self.n_rows, other.n_rows):
            self.few = [*self.few, *other.few]
        elif other.few:
            self.sum_few()
            for H, T in other.few:
                self._add(H, Numbers(T))
        elif other.n_rows:
            self.sum_few()
            self._merge(other)

    def with_few(self, new: Made, of_H: Callable[[Array], Array], of_T: Callable[[Array], Array]) -> Made:
        """`new` with the rows that are kept here, when these functions have changed them."""
        new.few = [(of_H(H), of_T(T)) for H, T in self.few]
        new._count_as(self)
        if not new.keeps(new.n_rows, 0):
            new.sum_few()
        return new


class Remembers:
    """What is made of the sums is kept while a ridge is chosen and then used."""

    _made: dict[str, tuple[Hashable, Any]] | None = None

    @contextmanager
    def remembering(self) -> Iterator[None]:
        """Keep what is made of the sums in this context, in which no rows come: a ridge is chosen, then used."""
        self._made = {}
        try:
            with keeping_scratch():
                yield
        finally:
            self._made = None

    def hold(self, name: str, key: Hashable, value: Any) -> None:
        """Keep a value under this name, in place of one with another key, if the accumulator is `remembering`."""
        if self._made is not None:
            self._made[name] = key, value

    def held(self, name: str, key: Hashable) -> Any:
        """The value that is kept under this name with this key, or None."""
        found = (self._made or {}).get(name)
        return found[1] if found is not None and found[0] == key else None

    def remembered(self, name: str, key: Hashable, make: Callable[[], Any]) -> Any:
        """The value that is kept, or else the result of `make`, which is kept."""
        value = self.held(name, key)
        if value is None:
            value = make()
            self.hold(name, key, value)
        return value
