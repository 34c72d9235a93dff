"""One page to read, made from a store alone: self-contained HTML, and every figure as SVG and PNG.

The report of an experiment is the function `build` of the module `<experiment>_report`; here is what it is made of
and how that becomes a file.
"""

from __future__ import annotations

import base64
import io
import json
import shlex
import tomllib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import jinja2
import matplotlib as mpl
from matplotlib.figure import Figure

from hyperelm._files import write_whole
from hyperelm.experiments.definition import Experiment, Unit, as_toml, converted, names
from hyperelm.experiments.store import Store, StoreError

FILE = "report.html"
PAPER = "G. Vieira and M. E. Valle, A General Framework for Hypercomplex-valued Extreme Learning Machines"
STYLE: dict[Any, Any] = {
    "font.size": 9,
    "legend.fontsize": 8,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "hyperelm",
    "text.parse_math": False,
}
# Distinct for readers who see few colours, too; the first model in black.
COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7", "#56b4e9", "#7f7f7f")


@dataclass
class Picture:
    """A figure, what it shows, and the same in words for those who do not see it."""

    name: str
    draw: Callable[[Figure], None]
    caption: str
    alt: str
    size: tuple[float, float] = (5.0, 3.2)


@dataclass
class Table:
    """Cells by rows, of which the first `words` are text and the others numbers."""

    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[str]]
    words: int = 1


@dataclass
class Section:
    title: str
    text: Sequence[str] = ()
    pictures: Sequence[Picture] = ()
    tables: Sequence[Table] = ()


@dataclass
class Claim:
    """A claim of the paper, and what came out here: "reproduced", "not reproduced" or "depends", with the reason."""

    text: str
    verdict: str
    reason: str


@dataclass
class Page:
    """What a report says, besides how to repeat it; `notice` is what nobody may miss."""

    title: str
    summary: Sequence[str]
    sections: Sequence[Section]
    notice: str = ""
    claims: Sequence[Claim] = ()
    unsaid: Sequence[str] | None = None  # what the paper leaves unsaid; that of the TOML file if not given


def write(directory: Path) -> Path:
    """Write the report of the results in a directory there."""
    with Store.open(directory) as store:
        experiment = _experiment(store)
        page = _page(store, experiment)
        context = {
            "page": page,
            "paper": PAPER,
            "unsaid": experiment.document["unsaid"].values() if page.unsaid is None else page.unsaid,
            "settings": {key: _lines(value) for key, value in store.settings.items()},
            "sessions": store.sessions(),
            "command": _command(store, experiment),
        }
    figures, path = directory / "figures", directory / FILE
    if figures.is_symlink():
        raise StoreError(f"The report could not be written to {directory}: {figures} is a symbolic link. Remove it.")
    try:
        figures.mkdir(exist_ok=True)
        images = {p.name: _save(p, figures) for s in page.sections for p in s.pictures}
        write_whole(path, _template().render(context, images=images).encode())
    except OSError as error:
        raise StoreError(f"The report could not be written to {directory}: {error.strerror or error}.") from None
    return path


def _page(store: Store, experiment: Experiment) -> Page:
    """What the module of the report makes of a store, whose content may be anybody's."""
    module: Any = import_module(f"hyperelm.experiments.{store.name}_report")
    try:
        _check_complete(store, experiment.module.units(store.settings))
        page: Page = module.build(store, experiment.document)
    except (ArithmeticError, LookupError, TypeError, ValueError) as error:
        raise StoreError(
            f"{store.directory} cannot be reported, as its settings and runs do not fit together "
            f"({type(error).__name__}: {error})."
        ) from error
    return page


def _experiment(store: Store) -> Experiment:
    """The experiment of a store as its TOML file has it, if this version knows it and its settings."""
    if store.name not in names():
        raise StoreError(f"{store.directory} holds the experiment {store.name!r}, which this version does not know.")
    text = resources.files("hyperelm.experiments").joinpath(f"{store.name}.toml").read_text(encoding="utf-8")
    document = tomllib.loads(text)
    experiment = Experiment(store.name, document["settings"], document)
    missing = experiment.settings.keys() - store.settings.keys()
    if missing:
        raise StoreError(
            f"{store.directory} was made by another version: it lacks the settings {listed(sorted(missing))}."
        )
    for key, default in document["settings"].items():
        try:
            converted(store.settings[key], default)
        except TypeError:
            raise StoreError(f"{store.directory} cannot be reported: its setting {key} is of another kind.") from None
    return experiment


def _check_complete(store: Store, units: Iterable[Unit]) -> None:
    """Refuse settings that ask for other runs than the store holds, with work in proportion to what it holds."""
    done = {
        tuple(row[key] for key in ("part", "variant", "algebra", "n_hidden", "network")) for row in store.rows(None)
    }
    seen: set[str] = set()
    for unit in units:
        if unit.count < 1 or unit.key in seen:
            raise StoreError(f"{store.directory} cannot be reported: its settings ask for no runs, or twice for some.")
        seen.add(unit.key)
        for network in unit.networks:
            if (unit.part, unit.variant, unit.algebra, unit.n_hidden, network) not in done:
                raise StoreError(
                    f"{store.directory} holds {counted(len(done), 'run')} and lacks others, such as number {network} "
                    f"of {unit.algebra} in the part {unit.part!r}: the command that began them goes on from there, "
                    "and ends with the report."
                )


def _template() -> jinja2.Template:
    loader = jinja2.PackageLoader("hyperelm.experiments", "")
    environment = jinja2.Environment(loader=loader, autoescape=True, undefined=jinja2.StrictUndefined)
    return environment.get_template("report.html.jinja")


def _save(picture: Picture, directory: Path) -> str:
    """Both files of a figure; the SVG again as an address for the page."""
    svg, png = io.BytesIO(), io.BytesIO()
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=picture.size)
        picture.draw(figure)
        figure.savefig(svg, format="svg", metadata={"Date": None})
        figure.savefig(png, format="png", dpi=200)
    write_whole(directory / f"{picture.name}.svg", svg.getvalue())
    write_whole(directory / f"{picture.name}.png", png.getvalue())
    return "data:image/svg+xml;base64," + base64.b64encode(svg.getvalue()).decode("ascii")


# ---------------------------------------------------------------------- how to repeat it


def _command(store: Store, experiment: Experiment) -> str:
    """The command that gives the same results."""
    words, defaults, quick = ["hyperelm", "run", store.name], experiment.settings, experiment.document.get("quick")
    if quick and all(store.settings[key] == value for key, value in quick.items()):
        words, defaults = [*words, "--quick"], defaults | quick
    changed = {key: store.settings[key] for key in defaults if store.settings[key] != defaults[key]}
    derived = experiment.module.derived(defaults | {key: v for key, v in changed.items() if not _is_tables(v)})
    for key, value in changed.items():
        if key == "seed":
            words += ["--seed", str(value)]
        elif value != derived.get(key):
            words += ["--set", f"{key}={_toml(value, outermost=True)}"]
    return shlex.join(words)


def _is_tables(value: object) -> bool:
    return isinstance(value, list) and bool(value) and all(isinstance(item, dict) for item in value)


def _toml(value: object, *, outermost: bool = False) -> str:
    """A setting as the TOML file and the command line have it."""
    if isinstance(value, str) and outermost and as_toml(value) == value:
        return value
    if isinstance(value, list):
        return f"[{', '.join(map(_toml, value))}]"
    if isinstance(value, dict):
        return f"{{ {', '.join(f'{key} = {_toml(item)}' for key, item in value.items())} }}" if value else "{}"
    return json.dumps(value, ensure_ascii=False)


def _lines(value: Any) -> list[str]:
    """A setting for the page, a table of it on each line."""
    return [_toml(item) for item in value] if _is_tables(value) else [_toml(value, outermost=True)]


# ---------------------------------------------------------------------- words


def percent(share: float, digits: int = 1) -> str:
    return f"{100 * share:.{digits}f}\u00a0%"


def decimal(value: float, digits: int = 1) -> str:
    """A number with a true minus sign."""
    text = f"{value:.{digits}f}"
    return text.replace("-", "−") if float(text) else text.lstrip("-")


def decibels(value: float) -> str:
    return f"{decimal(value)}\u00a0dB"


def counted(n: int, noun: str) -> str:
    return f"{n:,} {noun}{'s' * (n != 1)}"


def listed(items: Sequence[str]) -> str:
    """One, two and three."""
    return " and ".join([", ".join(items[:-1]), items[-1]] if len(items) > 1 else items)
