"""The map is true: what docs and sources point at exists."""

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "gaussfold"
PAGES = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *sorted((ROOT / "docs").glob("*.md"))]
MAPS = [ROOT / "docs" / name for name in ("architecture.md", "bibliography.md")]


def headings(page: Path) -> list[str]:
    return re.findall(r"^#+ (.+)$", page.read_text(), re.M)


def anchor(heading: str) -> str:
    """As GitHub makes it."""
    return re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-")


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_links_lead_somewhere(page):
    for target in re.findall(r"\]\(([^)\s]+)\)", page.read_text()):
        if target.startswith(("http:", "https:", "mailto:")):
            continue
        path, _, part = target.partition("#")
        there = (page.parent / path) if path else page
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


def test_every_package_has_a_map():
    """Two sentences at least, and the twins or tests that hold it."""
    for init in SOURCE.rglob("__init__.py"):
        found = re.match(r'"""(.*?)"""', init.read_text(), re.S)
        assert found, init
        assert len(found.group(1)) > 60, init
