"""What every page of the built site must have: ``python -m tools.pages [FOLDER]``; `tools.site` asks after each build.

Links that lead to a page, a part of it or a file that is there; one title, headings that go down a step at a time; a
language, a title, a width for small screens; pictures that say in words what they show; columns that have a head.
Contrast is the theme's: it was looked at with axe-core, in light and in dark.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from html.parser import HTMLParser
from itertools import pairwise
from pathlib import Path
from urllib.parse import unquote, urlsplit

FROM_SPHINX = {"genindex.html", "search.html", "py-modindex.html"}
"""Pages without prose of ours."""


@dataclass
class Page(HTMLParser):
    """What was found on one page."""

    anchors: set[str] = field(default_factory=set)
    links: list[str] = field(default_factory=list)
    levels: list[int] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    has: set[str] = field(default_factory=set)
    _head_cell: str | None = None

    def __post_init__(self) -> None:
        super().__init__(convert_charrefs=True)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Take down what the tag says."""
        said = {name: value or "" for name, value in attrs}
        self.anchors |= {said[name] for name in ("id", "name") if name in said}
        self.links += [said[name] for name in ("href", "src") if name in said and "data-" not in name]
        if tag == "html" and said.get("lang"):
            self.has.add("a language")
        elif tag == "title":
            self.has.add("a title")
        elif tag == "meta" and said.get("name") == "viewport":
            self.has.add("a width for small screens")
        elif tag == "img" and not said.get("alt", "").strip():
            self.faults.append(f"a picture without words: {said.get('src')}")
        elif len(tag) == 2 and tag[0] == "h" and tag[1].isdigit():
            self.levels.append(int(tag[1]))
        elif tag == "th":
            self._head_cell = ""

    def handle_data(self, data: str) -> None:
        """Collect what a table's head says."""
        if self._head_cell is not None:
            self._head_cell += data.strip()

    def handle_endtag(self, tag: str) -> None:
        """Ask whether it said anything."""
        if tag == "th" and self._head_cell is not None:
            if not self._head_cell:
                self.faults.append("an empty head of a column")
            self._head_cell = None


def read(path: Path) -> Page:
    """Parse one page."""
    page = Page()
    page.feed(path.read_text(encoding="utf-8"))
    return page


def faults(folder: Path) -> Iterator[str]:
    """All that is wrong in a built site, a line each."""
    pages = {path: read(path) for path in sorted(folder.rglob("*.html")) if "_static" not in path.parts}
    for path, page in pages.items():
        name = path.relative_to(folder)
        for link in page.links:
            yield from (f"{name}: {fault}" for fault in _leads(link, path, pages))
        if name.name in FROM_SPHINX:
            continue
        yield from (f"{name}: {fault}" for fault in page.faults)
        yield from (
            f"{name}: not {part}"
            for part in ("a language", "a title", "a width for small screens")
            if part not in page.has
        )
        if page.levels.count(1) != 1 or any(after > before + 1 for before, after in pairwise(page.levels)):
            yield f"{name}: headings {page.levels}, not one title and a step down at a time"


def _leads(link: str, path: Path, pages: dict[Path, Page]) -> Iterator[str]:
    """What is wrong with a link on a page."""
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return
    there = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not there.exists():
        yield f"a link to {link}, which is not there"
    elif parts.fragment and there in pages and unquote(parts.fragment) not in pages[there].anchors:
        yield f"a link to {link}, a part which is not there"


def main() -> int:
    """Print what is wrong; 1 if anything is."""
    folder = Path(sys.argv[1] if len(sys.argv) > 1 else "output/site").resolve()
    if not (folder / "index.html").exists():
        print(f"there is no index.html in {folder}: python -m tools.site builds the site", file=sys.stderr)
        return 2
    found = list(faults(folder))
    print(*found[:40], sep="\n")
    print(f"{len(found)} faults in the pages of {folder}")
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
