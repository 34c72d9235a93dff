"""One page to read, made from a store alone: self-contained HTML, and every figure as SVG and PNG.

The report of an experiment is the function `build` of the module `<experiment>_report`; here is what it is made of
and how that becomes a file.
"""

from __future__ import annotations

import base64
import io
import re
import shlex
import tomllib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from importlib import import_module, resources
from pathlib import Path
from typing import Any

import jinja2
import matplotlib as mpl
from matplotlib.figure import Figure

from hyperelm.experiments.definition import load
from hyperelm.experiments.store import Store, StoreError

FILE = "report.html"
STYLE = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "grid.alpha": 0.3,
    "figure.constrained_layout.use": True,
    "svg.hashsalt": "hyperelm",
}
# Distinct for readers who see few colours, too; the real model in black.
COLOURS = ("#000000", "#0072b2", "#d55e00", "#009e73", "#e69f00", "#cc79a7", "#56b4e9", "#7f7f7f")


@dataclass
class Picture:
    """A figure, what it shows, and the same in words for those who do not see it."""

    name: str
    draw: Callable[[Figure], None]
    caption: str
    alt: str
    size: tuple[float, float] = (7.2, 3.6)


@dataclass
class Table:
    caption: str
    header: Sequence[str]
    rows: Sequence[Sequence[object]]


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
    title: str
    summary: Sequence[str]
    claims: Sequence[Claim]
    sections: Sequence[Section] = field(default_factory=list)


def write(directory: Path) -> Path:
    """Write the report of the results in a directory there."""
    with Store.open(directory) as store:
        text = resources.files("hyperelm.experiments").joinpath(f"{_known(store)}.toml").read_text(encoding="utf-8")
        document = tomllib.loads(text)
        module: Any = import_module(f"hyperelm.experiments.{store.name}_report")
        page: Page = module.build(store, document)
        context = {
            "page": page,
            "document": document,
            "settings": store.settings,
            "sessions": store.sessions(),
            "command": _command(store),
        }
    figures = directory / "figures"
    try:
        figures.mkdir(exist_ok=True)
        images = {p.name: _save(p, figures) for s in page.sections for p in s.pictures}
        environment = jinja2.Environment(
            loader=jinja2.PackageLoader("hyperelm.experiments", ""), autoescape=True, undefined=jinja2.StrictUndefined
        )
        html = environment.get_template("report.html.jinja").render(context, images=images)
        path = directory / FILE
        path.write_text(html, encoding="utf-8")
    except OSError as error:
        raise StoreError(f"The report could not be written to {directory}: {error.strerror or error}.") from None
    return path


def _known(store: Store) -> str:
    if not re.fullmatch("[a-z]+", store.name) or not resources.files("hyperelm.experiments").joinpath(
        f"{store.name}.toml"
    ).is_file():
        raise StoreError(f"{store.directory} holds the experiment {store.name!r}, which this version does not know.")
    return store.name


def _save(picture: Picture, directory: Path) -> str:
    """Both files of a figure; the SVG again as an address for the page."""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=picture.size)
        picture.draw(figure)
        buffer = io.BytesIO()
        figure.savefig(buffer, format="svg", metadata={"Date": None})
        figure.savefig(directory / f"{picture.name}.png", dpi=150)
    svg = buffer.getvalue()
    (directory / f"{picture.name}.svg").write_bytes(svg)
    return "data:image/svg+xml;base64," + base64.b64encode(svg).decode("ascii")


def _command(store: Store) -> str:
    """The command that gives the same results."""
    defaults = load(store.name).settings
    words = ["hyperelm", "run", store.name]
    for key, value in store.settings.items():
        if key in defaults and value != defaults[key] and not isinstance(value, dict):
            text = repr(value) if not isinstance(value, str) else value
            words += ["--seed", str(value)] if key == "seed" else ["--set", f"{key}={text}"]
    return shlex.join(words)
