"""What an experiment is: settings, units of work, and the rows that a unit gives.

The seed of a run depends on (seed, algebra, n_hidden, network) alone, so runs can be done in any order and any
number of processes.
"""

from __future__ import annotations

import sys
import tomllib
import zlib
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module, resources
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

Settings = dict[str, Any]
Row = dict[str, Any]
MAIN = "main"  # the part of an experiment that is the paper's own sweep


@dataclass(frozen=True)
class Unit:
    """The runs that are done, and stored, together: `count` networks of one model, from number `first` on.

    Parameters
    ----------
    part, variant : str
        The table that the runs belong to ("main" is the paper's sweep), and which version of it.
    algebra : str
    n_hidden : int
    first, count : int

    Examples
    --------
    >>> from hyperelm.experiments import Unit
    >>> Unit("main", "", "klein4", 11, 0, 3).key
    'main//klein4/11/0+3'
    """

    part: str
    variant: str
    algebra: str
    n_hidden: int
    first: int
    count: int

    @property
    def key(self) -> str:
        """What the store calls it."""
        return f"{self.part}/{self.variant}/{self.algebra}/{self.n_hidden}/{self.first}+{self.count}"

    @property
    def networks(self) -> range:
        """The numbers of its networks."""
        return range(self.first, self.first + self.count)


@dataclass
class Result:
    """The rows of a unit, one a run, and arrays that the report shows."""

    rows: list[Row]
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)


class Module(Protocol):
    """What the module of an experiment has."""

    MEASURES: tuple[str, ...]  # the first of them ranks the models, higher being better
    COMPETE: tuple[str, ...]  # what runs that compete with each other have in common

    def derived(self, settings: Settings) -> Settings: ...  # settings that follow from others
    def prepare(self, settings: Settings) -> None: ...  # checks settings and adds what they refer to
    def remark(self, settings: Settings) -> str: ...  # what a user should know of a run, if anything
    def units(self, settings: Settings) -> Iterable[Unit]: ...
    def execute(self, unit: Unit, settings: Settings) -> Result: ...


@dataclass(frozen=True)
class Experiment:
    """A named experiment with its settings, as the TOML file has them and the command line changes them.

    Parameters
    ----------
    name : str
    settings : dict
        What the runs use.
    document : dict
        The whole TOML file: defaults, what the paper leaves unsaid, its numbers and its claims.

    Examples
    --------
    >>> from hyperelm.experiments import load
    >>> experiment = load("lorenz", quick=True)
    >>> experiment.settings["window"], experiment.document["source"]
    (3, 'section 5.2')
    """

    name: str
    settings: Settings
    document: dict[str, Any]

    @property
    def module(self) -> Module:
        """The module that prepares the settings, divides the work and does it."""
        module: Any = import_module(f"hyperelm.experiments.{self.name}")
        return module

    def units(self) -> list[Unit]:
        """All of the work, in pieces that are stored as a whole."""
        units = list(self.module.units(self.settings))
        key, times = Counter(unit.key for unit in units).most_common(1)[0] if units else ("", 0)
        if times != 1:
            raise ValueError(f"--set must leave every run to be done once, got {times} times the runs {key!r}.")
        return units


def names() -> list[str]:
    """The experiments there are.

    Returns
    -------
    list of str

    Examples
    --------
    >>> from hyperelm import experiments
    >>> "lorenz" in experiments.names()
    True
    """
    files = resources.files("hyperelm.experiments").iterdir()
    return sorted(file.name.removesuffix(".toml") for file in files if file.name.endswith(".toml"))


def load(name: str, *, quick: bool = False, seed: int | None = None, changes: Sequence[str] = ()) -> Experiment:
    """An experiment with its settings.

    Parameters
    ----------
    name : str
        One of `names`.
    quick : bool
        A small version, for a first look.
    seed : int, optional
        Another seed than the file has.
    changes : sequence of str
        Of the form "key=value", values being written as in TOML.

    Returns
    -------
    Experiment

    Examples
    --------
    >>> from hyperelm import experiments
    >>> experiments.load("lorenz", changes=["networks=5"]).settings["networks"]
    5
    """
    if name not in names():
        raise ValueError(f"NAME must be one of {', '.join(names())}, got {name!r}.{_near(name, names())}")
    text = resources.files("hyperelm.experiments").joinpath(f"{name}.toml").read_text(encoding="utf-8")
    document = tomllib.loads(text)
    settings: Settings = document["settings"]
    if quick:
        settings |= document["quick"]
    if seed is not None:
        settings["seed"] = seed
    for change in changes:
        _change(settings, change)
    if settings["seed"] < 0:
        raise ValueError(f"--seed must be at least 0, got {settings['seed']}.")
    experiment = Experiment(name, settings, document)
    experiment.module.prepare(settings)
    return experiment


def _change(settings: Settings, change: str) -> None:
    key, equals, text = change.partition("=")
    if not equals:
        raise ValueError(f"--set must be of the form key=value, got {change!r}.")
    if key not in settings:
        raise ValueError(
            f"--set must name a setting, got {key!r}.{_near(key, settings)} There are {', '.join(settings)}."
        )
    default = settings[key]
    try:
        settings[key] = converted(as_toml(text), default)
    except TypeError:
        kinds = {list: "a list", float: "a number", int: "a whole number", str: "a text", bool: "true or false"}
        raise ValueError(f"--set {key} must be {kinds[type(default)]} such as {default!r}, got {text!r}.") from None


def as_toml(text: str) -> Any:
    """What a value on the command line means: itself where it is no TOML."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def converted(value: Any, default: Any) -> Any:
    """A value as the type of another, item by item in lists; one item may stand for a list of it."""
    if isinstance(default, list):
        items = value if isinstance(value, list) else [value]
        return [converted(item, default[0]) for item in items] if default else items
    if isinstance(default, float) and type(value) is int and abs(value) <= sys.float_info.max:
        return float(value)
    if type(value) is not type(default):
        raise TypeError
    return value


def _near(name: str, known: Any) -> str:
    near = get_close_matches(name, list(known), n=1)
    return f" Did you mean {near[0]!r}?" if near else ""


def seed_of(seed: int, algebra: str, n_hidden: int, network: int) -> int:
    """The random state of a run."""
    entropy = [seed, zlib.crc32(algebra.encode()), n_hidden, network]
    return int(np.random.SeedSequence(entropy).generate_state(1)[0])
