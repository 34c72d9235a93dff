"""Write the results of the page "On real data" into the table of the README: `python tools/readme_table.py`.

A row of that table begins with a link to a section of the page. The other cells come from the row of this section in
the page's summary. A task of the page that the README lacks is added, under its own name, so that none is left out.
"""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).parents[1]
README, PAGE = ROOT / "README.md", ROOT / "docs" / "real-data.md"
_COLUMNS = ("our error", "best rival", "its error", "better")
_TASK = re.compile(r"\| \[(?P<text>[^]]+)\]\((?P<page>[\w./-]*)#(?P<name>[\w-]+)\) \|(?P<rest>.*)\|")


def results(page: str) -> dict[str, list[str]]:
    """Our error, the best rival, its error and who is better, for every task of the page."""
    summary = page.partition("<!-- table summary -->")[2].partition("<!-- end -->")[0]
    header = _cells(summary.strip().splitlines()[0].strip("|"))[1:]
    rows = {match["name"]: dict(zip(header, _cells(match["rest"]), strict=True)) for match in _TASK.finditer(summary)}
    return {name: [row[column].strip("*") for column in _COLUMNS] for name, row in rows.items()}


def _cells(row: str) -> list[str]:
    return [cell.strip() for cell in row.split("|")]


def updated(readme: str, page: str) -> str:
    """The README with the results of the page, in the order of the page."""
    found = results(page)
    old = list(_TASK.finditer(readme))
    texts = {match["name"]: match["text"] for match in old}
    rows = [
        f"| [{texts.get(name, name)}](docs/{PAGE.name}#{name}) | {' | '.join(cells)} |" for name, cells in found.items()
    ]
    return readme[: old[0].start()] + "\n".join(rows) + readme[old[-1].end() :]


if __name__ == "__main__":
    readme, page = (path.read_text(encoding="utf-8") for path in (README, PAGE))
    README.write_text(updated(readme, page), encoding="utf-8")
