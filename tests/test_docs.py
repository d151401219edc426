"""The map is true: what docs and sources point at exists."""

import inspect
import pydoc
import re
from itertools import pairwise
from pathlib import Path

import pytest
import typer.main
from docs.ext import command_line, error_messages

import gaussfold as gf
from gaussfold.cli.app import app

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "gaussfold"
MADE = ("guides", "generated", "command_line.md", "errors.md")
SITE = [page for page in sorted((ROOT / "docs").rglob("*.md")) if not set(MADE) & set(page.parts)]
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *SITE]
MAPS = [ROOT / "docs" / name for name in ("architecture.md", "bibliography.md")]


def headings(page: Path) -> list[str]:
    return re.findall(r"^#+ (.+)$", page.read_text(), re.M)


def anchor(heading: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        path, _, part = target.partition("#")
        there = (page.parent / path) if path else page
        if there.parent.name == "guides":  # made from the examples when the site is built
            there = ROOT / "examples" / ("GALLERY_HEADER.rst" if there.stem == "index" else f"{there.stem}.py")
        if there.name in MADE:
            continue  # when the site is built
        assert there.exists(), target
        if part and there.suffix == ".md":
            assert part in map(anchor, headings(there)), target


def test_sections_that_the_sources_cite_exist():
    """As in: docs/architecture.md, "The one idea"."""
    known, cited = headings(ROOT / "docs" / "architecture.md"), 0
    for path in SOURCE.rglob("*.py"):
        text = re.sub(r"\s+", " ", path.read_text())
        assert not re.search(r"\bDESIGN\b", text), path
        for sentence in re.findall(r"docs/architecture\.md([^)]*)", text):
            for section in re.findall(r'"([^"]+)"', sentence):
                assert section in known, f"{path}: {section!r}"
                cited += 1
    assert cited >= 5
    for path in SOURCE.rglob("*.py"):
        for name in re.findall(r"docs/skeletons/\w+\.py", path.read_text()):
            assert (ROOT / name).exists(), path


@pytest.mark.parametrize("page", MAPS, ids=lambda page: page.name)
def test_files_on_the_map_exist(page):
    """Paths in backquotes: of the package, or of the repository."""
    named = set(re.findall(r"`((?:\w+/)+(?:\w+\.py)?|\w+\.py)(?:::\w+)?`", page.read_text()))
    assert len(named) > 15
    missing = sorted(name for name in named if not (SOURCE / name).exists() and not (ROOT / name).exists())
    assert not missing


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages_can_be_read_by_ear(page):
    """Every picture says in words what it shows; headings go down one step at a time and begin with one title."""
    text = re.sub(r"^```.*?^```", "", page.read_text(), flags=re.M | re.S)
    assert not re.findall(r"!\[\s*\]\(", text), "a picture without an alternative text"
    levels = [len(marks) for marks in re.findall(r"^(#+) ", text, re.M)]
    assert levels[:1] in ([1], []), levels  # none: the page includes another
    assert all(after - before <= 1 for before, after in pairwise(levels)), levels


def test_every_page_is_a_matter_of_minutes():
    """At 200 words a minute, tables and code left out; reference pages are looked into, not read."""
    for page in SITE:
        if page.parent.name in ("reference", "gallery") or page.name == "architecture.md":
            continue
        prose = re.sub(r"^(```.*?^```|\|.*?$)", "", page.read_text(), flags=re.M | re.S)
        assert len(prose.split()) <= 2000, page


def documented() -> set[str]:
    """All names of the reference, with their modules."""
    listed = set()
    for page in (ROOT / "docs" / "reference").glob("*.md"):
        for block in re.findall(r"^```{eval-rst}(.*?)^```", page.read_text(), re.M | re.S):
            module = re.search(r"currentmodule:: (\S+)", block).group(1)
            listed |= {f"{module}.{name}" for name in re.findall(r"^   (\w+)$", block, re.M)}
    return listed


def test_the_reference_has_every_public_name():
    """Of the package, and of the modules that it names."""
    modules = {name for name in gf.__all__ if inspect.ismodule(getattr(gf, name))}
    expected = {f"gaussfold.{name}" for name in gf.__all__ if name not in modules and not name.startswith("__")}
    assert expected <= documented(), sorted(expected - documented())


def test_half_of_what_is_public_shows_how_it_is_used():
    """The examples themselves run as doctests."""
    pytest.importorskip("jax")
    things = {name: pydoc.locate(name) for name in documented()}
    examples = [">>>" in (inspect.getdoc(thing) or "") for thing in things.values() if callable(thing)]
    assert sum(examples) >= len(examples) / 2, f"{sum(examples)} of {len(examples)}"


def test_the_page_of_the_command_line_is_its_help():
    """Every command and option is on it, in the command's own words."""
    text = command_line.page()
    for name, command in typer.main.get_command(app).commands.items():
        assert f"## gaussfold {name}" in text
        for part in command.params:
            if part.name != "help":
                assert all(f"`{option}`" in text for option in part.opts if option.startswith("-")), part.opts


def test_the_page_of_errors_shows_what_is_said():
    """Each mistake meets an error; the page is made of them."""
    text = error_messages.page()
    assert text.count("```pycon") == sum(map(len, error_messages.SECTIONS.values()))
    assert "y[0] = 2 is not one of the classes [0, 1]" in text


def test_every_package_has_a_map():
    """Two sentences at least, and the twins or tests that hold it."""
    for init in SOURCE.rglob("__init__.py"):
        found = re.match(r'"""(.*?)"""', init.read_text(), re.S)
        assert found, init
        assert len(found.group(1)) > 60, init
