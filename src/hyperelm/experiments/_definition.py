"""What an experiment is: settings, units of work, and the rows of results that a unit gives.

A TOML file holds the settings, their limits, what the paper leaves unsaid, and the paper's numbers and claims. A module
with the same name does the work. It defines

- `prepare(settings)`, which checks and completes the settings and returns a remark for the user,
- `units(settings)`, which divides the work into units,
- `execute(unit, settings)`, which does a unit,
- `MEASURE`, the field that ranks the models (higher is better), and `COMPETE`, the fields that competing runs share.

The seed of a run depends on (seed, algebra, n_hidden, network) alone, so runs can be done in any order and in any
number of processes.
"""

from __future__ import annotations

import sys
import tomllib
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module, resources
from itertools import islice
from typing import Any

import numpy as np
from numpy.typing import NDArray

Settings = dict[str, Any]
Row = dict[str, Any]
MOST_UNITS = 1_000_000
MAIN = "main"  # the part of an experiment that is the paper's own sweep


@dataclass(frozen=True)
class Unit:
    """Runs that are done and stored together: `count` networks of one model, from the index `first` on.

    Parameters
    ----------
    part, variant : str
        The part of the experiment that the runs belong to ("main" is the paper's sweep), and the variant of it.
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
        """The name of the unit in a store."""
        return f"{self.part}/{self.variant}/{self.algebra}/{self.n_hidden}/{self.first}+{self.count}"

    @property
    def networks(self) -> range:
        """The indices of its networks."""
        return range(self.first, self.first + self.count)


@dataclass
class Result:
    """The rows of a unit, one for each run, and arrays that the report shows."""

    rows: list[Row]
    arrays: dict[str, NDArray[Any]] = field(default_factory=dict)


@dataclass(frozen=True)
class Experiment:
    """A named experiment with its settings.

    Parameters
    ----------
    name : str
    settings : dict
        What the runs use.
    document : dict
        The whole TOML file: defaults, what the paper leaves unsaid, its numbers and its claims.
    remark : str
        What a user should know about the data, if anything.

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
    remark: str = ""

    @property
    def module(self) -> Any:
        """The module of the experiment."""
        return import_module(f"hyperelm.experiments._{self.name}")

    def units(self) -> list[Unit]:
        """All units of the experiment. There is a limit, because settings from a file may ask for any number."""
        units = list(islice(self.module.units(self.settings), MOST_UNITS + 1))
        if len(units) > MOST_UNITS:
            raise ValueError(f"--set must ask for at most {MOST_UNITS:,} units of work.")
        ((key, times),) = Counter(unit.key for unit in units).most_common(1) or [("", 0)]
        if times != 1:
            raise ValueError(f"--set must leave every run to be done once, got {times} times the runs {key!r}.")
        return units


def names() -> list[str]:
    """The names of all experiments.

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
        Another seed than that of the file.
    changes : sequence of str
        Of the form "key=value"; values are written as in TOML.

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
        raise ValueError(f"NAME must be one of {', '.join(names())}, got {name!r}.{near(name, names())}")
    document = read_document(name)
    settings = document["settings"] | (document["quick"] if quick else {}) | ({} if seed is None else {"seed": seed})
    for change in changes:
        _change(settings, change)
    if settings["seed"] < 0:
        raise ValueError(f"--seed must be at least 0, got {settings['seed']}.")
    check(settings, document["limits"])
    remark = Experiment(name, settings, document).module.prepare(settings)
    return Experiment(name, settings, document, remark)


def read_document(name: str) -> dict[str, Any]:
    """The TOML file of an experiment."""
    return tomllib.loads(resources.files("hyperelm.experiments").joinpath(f"{name}.toml").read_text(encoding="utf-8"))


def check(settings: Settings, limits: dict[str, Any]) -> None:
    """Refuse settings beyond the limits of their TOML file. A limit of a list holds for each of its items."""

    def all_between(key: str, low: float, *, strictly: bool = False) -> bool:
        values = settings[key] if isinstance(settings[key], list) else [settings[key]]
        return all(low <= value < np.inf and not (strictly and value == low) for value in values)

    least, choices = limits["least"], limits["choices"]
    rules = [
        *((key, bool(settings[key]), "not be empty") for key in limits["filled"]),
        *((key, all_between(key, low), f"be at least {low}") for key, low in least.items()),
        *((key, all_between(key, 0, strictly=True), "be finite and > 0") for key in limits["positive"]),
        # An empty text stands for the default, so a message does not list it.
        *((key, settings[key] in of, f"be one of {', '.join(filter(None, of))}") for key, of in choices.items()),
    ]
    for key, holds, must in rules:
        if not holds:
            raise ValueError(f"--set {key} must {must}, got {settings[key]!r}.")


def _change(settings: Settings, change: str) -> None:
    key, equals, text = change.partition("=")
    if not equals:
        raise ValueError(f"--set must be of the form key=value, got {change!r}.")
    if key not in settings:
        known = f"{near(key, settings)} There are {', '.join(settings)}"
        raise ValueError(f"--set must name a setting, got {key!r}.{known}.")
    try:
        settings[key] = _converted(as_toml(text), settings[key])
    except TypeError:
        kinds = {list: "a list", float: "a number", int: "a whole number", str: "a text", bool: "true or false"}
        kind = f"{kinds[type(settings[key])]} such as {settings[key]!r}"
        raise ValueError(f"--set {key} must be {kind}, got {text!r}.") from None


def as_toml(text: str) -> Any:
    """The TOML value of a text, or the text itself if it is not TOML."""
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return text


def _converted(value: Any, default: Any) -> Any:
    """Convert a value to the type of its default, item by item in lists. One item may stand for a list of one."""
    if isinstance(default, list):
        items = value if isinstance(value, list) else [value]
        return [_converted(item, default[0]) for item in items] if default else items
    if isinstance(default, float) and type(value) is int and abs(value) <= sys.float_info.max:
        return float(value)
    if type(value) is not type(default):
        raise TypeError
    return value


@contextmanager
def naming(**options: str) -> Iterator[None]:
    """Let errors about an argument of the library name the option of the command line that it came from."""
    try:
        yield
    except ValueError as error:
        option = options.get(getattr(error, "argument", ""))
        if option is None:
            raise
        raise ValueError(f"{option} {error.reason}") from None  # type: ignore[attr-defined]  # as it has an argument


def near(name: str, known: Iterable[str]) -> str:
    """A hint at the most similar name, if there is one."""
    found = get_close_matches(name, list(known), n=1)
    return f" Did you mean {found[0]!r}?" if found else ""


def seed_of(seed: int, algebra: str, n_hidden: int, network: int) -> int:
    """The random state of a run."""
    entropy = [seed, zlib.crc32(algebra.encode()), n_hidden, network]
    return int(np.random.SeedSequence(entropy).generate_state(1)[0])
