"""One page to read, made from a store alone: self-contained HTML, and every figure as SVG and PNG.

The module `_<experiment>_report` has a function `build`, which computes from a store what the template
`<experiment>.html.jinja` shows:

- `title`, and `results`, the runs summed up,
- `pictures`, functions that draw the figures, by name,
- `verdicts` on the paper's claims by their id: "reproduced", "not reproduced" or "depends". There are none if the
  results are not about the claims,
- whatever else the template needs.

The template has the words, and escapes every value.
"""

from __future__ import annotations

import base64
import io
import json
import os
import secrets
import shlex
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from hyperelm.experiments._definition import Experiment, as_toml, names, read_document
from hyperelm.experiments._store import Store, StoreError

if TYPE_CHECKING:
    from matplotlib.figure import Figure

# Distinct for readers who see few colours, too. The first model is black.
COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7", "#56b4e9", "#7f7f7f")


def write_report(directory: Path) -> Path:
    """Write the report of the results in a directory, and the figures as SVG and PNG, to that directory.

    Parameters
    ----------
    directory : Path

    Returns
    -------
    Path
        The HTML file.

    Examples
    --------
    >>> from pathlib import Path
    >>> from hyperelm.experiments import write_report
    >>> write_report(Path("nowhere"))
    Traceback (most recent call last):
    hyperelm.experiments._store.StoreError: DIR must be a directory with results, but ... does not exist.
    """
    with Store.open(directory) as store:
        document = _document(store)
        page = _page(store, document) | {
            "document": document,
            "settings": {key: _lines(value) for key, value in store.settings.items()},
            "sessions": store.sessions(),
            "command": _command(store, document),
        }
    figures, path = directory / "figures", directory / "report.html"
    if figures.is_symlink():
        raise StoreError(f"The report could not be written to {directory}: {figures} is a symbolic link. Remove it.")
    try:
        figures.mkdir(exist_ok=True)
        page["pictures"] = {name: _save(figures / name, draw) for name, draw in page["pictures"].items()}
        _write(path, _template(f"{store.name}.html.jinja").render(page).encode())
    except OSError as error:
        raise StoreError(f"The report could not be written to {directory}: {error.strerror or error}.") from None
    return path


def outcome(directory: Path) -> list[str]:
    """What the results of a search say, in a few lines for a terminal.

    Parameters
    ----------
    directory : Path

    Returns
    -------
    list of str
        Empty for other experiments.

    Examples
    --------
    >>> from pathlib import Path
    >>> from hyperelm.experiments import outcome
    >>> outcome(Path("nowhere"))
    Traceback (most recent call last):
    hyperelm.experiments._store.StoreError: DIR must be a directory with results, but ... does not exist.
    """
    with Store.open(directory) as store:
        if store.name != "search":
            return []
        text: str = _template("search.txt.jinja").render(results=_module(store).SearchResults(store))
        return [line for line in text.splitlines() if line]


def _module(store: Store) -> Any:
    try:
        return import_module(f"hyperelm.experiments._{store.name}_report")
    except ModuleNotFoundError as error:
        raise ImportError(f"A report needs the package {error.name!r}: pip install 'hyperelm[cli]'.") from None


def _document(store: Store) -> dict[str, Any]:
    """The TOML file of the experiment of a store, if this version knows it and its settings."""
    if store.name not in names():
        raise StoreError(f"{store.directory} holds the experiment {store.name!r}, which this version does not know.")
    document = read_document(store.name)
    missing = document["settings"].keys() - store.settings.keys()
    if missing:
        raise StoreError(
            f"{store.directory} was made by another version: it lacks the settings {listed(sorted(missing))}."
        )
    return document


def _page(store: Store, document: dict[str, Any]) -> dict[str, Any]:
    """What `build` computes for the template."""
    try:
        waiting = store.waiting(Experiment(store.name, store.settings, document).units())
        if not waiting:
            page: dict[str, Any] = _module(store).build(store, document)
            return page
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise StoreError(
            f"{store.directory} cannot be reported, as its settings and runs do not fit together "
            f"({type(error).__name__}: {error})."
        ) from error
    unit = waiting[0]
    raise StoreError(
        f"{store.directory} holds {counted(len(store.rows(None)), 'run')} and lacks others, such as number "
        f"{unit.first} of {unit.algebra} in the part {unit.part!r}: the command that began them goes on from there, "
        "and ends with the report."
    )


def array(store: Store, name: str) -> NDArray[Any]:
    """An array that every finished run has."""
    found = store.array(name)
    if found is None:
        raise LookupError(f"the array {name!r} is missing")
    return found


def _template(name: str) -> Any:
    import jinja2

    loader = jinja2.PackageLoader("hyperelm.experiments", "")
    lines: dict[str, Any] = {"trim_blocks": True, "lstrip_blocks": True, "extensions": ["jinja2.ext.do"]}
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined, **lines)
    words = (percent, decimal, decibels, counted, listed, places)
    environment.globals |= {f.__name__: f for f in (*words, np.mean, np.median, np.std)}
    return environment.get_template(name)


def _save(path: Path, draw: Callable[[], Figure]) -> str:
    """Write a figure as SVG and PNG. Return the SVG as an address for the page."""
    import matplotlib.style

    svg, png = io.BytesIO(), io.BytesIO()
    with matplotlib.style.context(Path(__file__).with_name("report.mplstyle")):
        figure = draw()
        figure.savefig(svg, format="svg", metadata={"Date": None})
        figure.savefig(png, format="png", dpi=200)
    _write(path.with_suffix(".svg"), svg.getvalue())
    _write(path.with_suffix(".png"), png.getvalue())
    return "data:image/svg+xml;base64," + base64.b64encode(svg.getvalue()).decode("ascii")


def _write(path: Path, content: bytes) -> None:
    """Write a file whole or not at all. A symbolic link of that name is replaced and not followed."""
    temporary = path.with_name(f".{path.name}-{secrets.token_hex(8)}.tmp")
    try:
        temporary.write_bytes(content)
        os.replace(temporary, path)
    finally:
        temporary.unlink(missing_ok=True)


def _command(store: Store, document: dict[str, Any]) -> str:
    """The command that gives the same results."""
    words, defaults, quick = ["hyperelm", "run", store.name], document["settings"], document["quick"]
    if all(store.settings[key] == value for key, value in quick.items()):
        words, defaults = [*words, "--quick"], defaults | quick
    for key, value in store.settings.items():
        if key in defaults and value != defaults[key]:
            words += ["--seed", str(value)] if key == "seed" else ["--set", f"{key}={_setting(value)}"]
    return shlex.join(words)


def _setting(value: Any) -> str:
    """A setting as the command line has it: a text has no quotes if it is a text without them, too."""
    return value if isinstance(value, str) and as_toml(value) == value else _toml(value)


def _toml(value: Any) -> str:
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(item)}' for key, item in value.items())} }}" if value else "{}"
    return json.dumps(value, ensure_ascii=False)


def _lines(value: Any) -> list[str]:
    """A setting for the page. Variants have a line each."""
    variants = isinstance(value, list) and value and isinstance(value[0], dict)
    return [*map(_toml, value)] if variants else [_setting(value)]


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f}\u00a0%"


def decimal(value: float, digits: int = 1) -> str:
    """A number with a true minus sign."""
    text = f"{value:.{digits}f}"
    return text.replace("-", "−") if float(text) else text.lstrip("-")


def decibels(value: float, digits: int = 1) -> str:
    return f"{decimal(value, digits)}\u00a0dB"


def counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'s' * (n != 1)}"


def listed(items: Sequence[Any]) -> str:
    """One, two and three."""
    return " and ".join([", ".join(map(str, items[:-1])), str(items[-1])] if len(items) > 1 else map(str, items))


def places(ends: tuple[int, int]) -> str:
    """The places that chance leaves open."""
    first, last = ends
    return str(first) if first == last else f"{first} to {last}"
