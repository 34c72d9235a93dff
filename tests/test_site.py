"""The built site, as its readers see it: `make docs` builds it and runs these."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from functools import cache, partial
from html.parser import HTMLParser
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import unquote, urldefrag, urljoin

import pytest

pytestmark = pytest.mark.site

SITE = Path(__file__).parents[1] / "docs" / "_build" / "html"
PAGES = sorted(path.relative_to(SITE).as_posix() for path in SITE.rglob("*.html") if "_static" not in path.parts)
# Pages in the order of the top bar, and one of every other kind.
SAMPLES = ["index.html", "quickstart.html", "gallery/index.html", "api/hyperelm.ELMRegressor.html", "search.html"]
# The results of a search, as soon as there are some.
_RESULTS = """
new Promise((resolve) => {
  const look = () => {
    const found = Array.from(document.querySelectorAll("#search-results ul.search li a"), (link) => link.href);
    const finished = document.querySelector("#search-results p.search-summary")?.textContent.match(/found \\d+/);
    found.length && finished ? resolve(found) : setTimeout(look, 50);
  };
  look();
})
"""
# What a keyboard cannot scroll, and what a screen reader cannot name.
_UNREACHABLE = """
Array.from(document.querySelectorAll(".bd-article *")).filter((part) => {
  const scrolls = part.scrollWidth > part.clientWidth + 1 && /auto|scroll/.test(getComputedStyle(part).overflowX);
  const reached = part.tabIndex >= 0 || part.querySelector("a[href], button");
  const named = part.innerText?.trim() || part.ariaLabel || part.title || part.querySelector("img[alt]");
  return (scrolls && !reached) || (part.matches("a[href]") && !named);
}).map((part) => part.outerHTML.slice(0, 200))
"""


class Silent(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def server() -> Iterator[str]:
    """The address of the site on this machine."""
    with ThreadingHTTPServer(("127.0.0.1", 0), partial(Silent, directory=SITE)) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}/"
        server.shutdown()


class Page(HTMLParser):
    """Where a page leads, what can be led to on it, and its images."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.anchors: set[str] = set()
        self.images: list[dict[str, str | None]] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attributes: list[tuple[str, str | None]]) -> None:
        found = dict(attributes)
        self.anchors |= {value for key, value in attributes if key in ("id", "name") and value}
        if tag == "a" and found.get("href"):
            self.links.append(found["href"] or "")
        if tag in ("img", "script") and found.get("src"):
            self.links.append(found["src"] or "")
        if tag == "link" and found.get("rel") != "canonical":
            self.links.append(found.get("href") or "")
        if tag == "img":
            self.images.append(found)


@cache
def read(name: str) -> Page:
    return Page((SITE / name).read_text(encoding="utf-8"))


def faults(seen) -> list[str]:
    """All but the theme's remark on its colours."""
    return [fault for fault in seen.faults if not fault.startswith("console: log: ['[PST]")]


def test_the_site_is_built():
    assert set(SAMPLES) <= set(PAGES), "run `make docs`, which builds the site first"


@pytest.mark.parametrize("name", PAGES)
def test_links_lead_somewhere(name):
    page = read(name)
    for link in page.links:
        if link.startswith(("http:", "https:", "mailto:", "data:")):
            continue
        address, anchor = urldefrag(urljoin(name, unquote(link)))
        target = address.partition("?")[0]
        assert (SITE / target).is_file(), f"{link} leads nowhere"
        if anchor and target.endswith(".html"):
            assert anchor in read(target).anchors, f"{link}: no such place on that page"


@pytest.mark.parametrize("name", PAGES)
def test_pictures_have_alternative_texts(name):
    assert [image["src"] for image in read(name).images if not (image.get("alt") or "").strip()] == []


@pytest.mark.parametrize("name", PAGES)
def test_nothing_is_fetched_from_elsewhere(name):
    text = (SITE / name).read_text(encoding="utf-8")
    for tag in ("<script", "<link", "<img", "<iframe"):
        for part in text.split(tag)[1:]:
            assert "//" not in part.partition(">")[0].replace("http://www.w3.org", ""), part[:200]


@pytest.mark.parametrize("width", [390, 1280], ids=["telephone", "desk"])
@pytest.mark.parametrize("name", PAGES)
def test_readable(name, width, server, open_page):
    """Nothing is wider than the screen, what scrolls can be reached by keyboard, and links have names."""
    seen = open_page(server + name, width, _UNREACHABLE)
    assert faults(seen) == []
    assert seen.width <= width
    assert seen.answer == []


@pytest.mark.parametrize(
    ("query", "page"),
    [("quaternions", "algebras.html"), ("lstsq", "api/hyperelm.linalg.lstsq.html"), ("telephone exchange", None)],
)
def test_search(query, page, server, open_page):
    question = _RESULTS if page else "null"
    seen = open_page(f"{server}search.html?q={query.replace(' ', '+')}", 1000, question)
    assert faults(seen) == []
    if page:
        assert any(page in link for link in seen.answer)
