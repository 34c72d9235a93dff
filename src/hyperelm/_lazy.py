"""Attributes that are computed when they are first asked for, without a lock.

Up to Python 3.11 `functools.cached_property` holds a lock of the class while it computes. A process that is forked by
another thread in that time gets the lock as it is, with nobody to release it, and its first use hangs. Without a lock
two threads may compute a value twice, and one of the two is kept.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from functools import cached_property as lazy
else:

    class lazy(property):
        """A property whose value is kept in the `__dict__` of the object, under its own name."""

        def __get__(self, instance: Any, owner: type | None = None) -> Any:
            if instance is None:
                return self
            values, name = instance.__dict__, self.fget.__name__
            if name not in values:
                values[name] = self.fget(instance)
            return values[name]


__all__ = ["lazy"]
