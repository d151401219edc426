"""The house in numbers: the counts count what they say, and none is above its limit."""

from pathlib import Path

import pytest
from tools import covered, house

ROOT = Path(__file__).parents[1]

ROOM = """
from typing import Any
from other import _secret, public
from package import __version__

class Thing:
    def __init__(self, code, kind, *, a=1, b=2, **rest):
        self._mine = code
        self.label = "one" if code == 1 else "two"
        self.other_code = rest

    def look(self, other: Any, buffer):  # noqa: ARG002
        if self.kind == NUMBER or buffer[0] == NEWLINE:
            return other._mine + self._mine + other.__dict__
        if other.code in (1, 2) and NUMBER != self.kind:
            return getattr(other, "x")  # type: ignore[no-any-return]  # plain enough
        for x in range(3):
            while x and x < 2 and x > 1:
                try:
                    x = [y for y in other if y] if x else cls._made
                except ValueError:  # noqa: B904 - a reason
                    pass
        return type(self)._made, hasattr(other, "y")  # type: ignore

    async def many(self, a, b, /, c, d, e, f, g, h, i, j, *k):
        match a:
            case 1: pass
            case 2: pass
"""


@pytest.fixture(scope="module")
def rooms(tmp_path_factory):
    package = tmp_path_factory.mktemp("src") / "package"
    (package / "engine" / "text").mkdir(parents=True)
    (package / "thing.py").write_text(ROOM, encoding="utf-8")
    for name in ("engine/__init__.py", "engine/loop.py", "engine/text/scan.py"):
        (package / name).write_text("x = 1\n", encoding="utf-8")
    return house.read(package)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("files", 4),
        ("lines", ROOM.count("\n") + 3),
        ("median", 1),
        ("largest", ROOM.count("\n")),
        ("codes", 2),  # code == 1, other.code in (1, 2)
        ("switches", 2),  # self.kind == NUMBER, NUMBER != self.kind; not the byte of the buffer
        ("foreign", 2),  # other._mine, type(self)._made; not self._mine, cls._made, other.__dict__
        ("imports", 1),  # _secret, not __version__
        ("any", 2),
        ("asked", 2),
        ("complex", 1),
        ("worst_complexity", 11),
        ("parameters", 1),
        ("most_parameters", 11),
        ("flat", 2),
        ("noqa", 2),
        ("ignore", 2),
        ("unexplained", 2),
    ],
)
def test_each_number_on_a_small_house(rooms, name, expected):
    assert house.measure(rooms)[name] == expected


def test_a_number_above_its_limit_is_named_with_the_way_to_see_it(rooms):
    numbers = house.measure(rooms)
    assert house.above(numbers, {"foreign": 2, "largest": numbers["largest"]}) == []
    assert house.above(numbers, {"foreign": 1, "most_parameters": 10}) == [
        "private attributes of others: 2, allowed are 1 (python -m tools.house --where foreign)",
        "parameters of the longest signature: 11, allowed are 10",
    ]
    assert [place.what for _, place in house.places(rooms, "foreign")] == ["other._mine", "type(self)._made"]


def test_this_house():
    assert house.above(house.measure(house.read()), house.LIMITS) == []


def test_linters_are_listed_once():
    """The gate, the hook and nox call tools/lint.py; none of them knows a linter's options."""
    for name in (".ci/run", ".pre-commit-config.yaml", "noxfile.py"):
        text = (ROOT / name).read_text(encoding="utf-8")
        assert "tools.lint" in text, name
        assert not any(command in text for command in ("ruff check", "ruff format", "bin/mypy", "lint-imports")), name


def test_coverage_is_summed_by_parts():
    summaries = {
        "src/gaussfold/a.py": (7, 10, 1, 4),
        "src/gaussfold/b.py": (10, 10, 0, 0),
        "tests/reference/c.py": (3, 4, 0, 0),
    }
    keys = ("covered_lines", "num_statements", "covered_branches", "num_branches")
    files = {name: {"summary": dict(zip(keys, counts, strict=True))} for name, counts in summaries.items()}
    assert covered.summary(covered.read(covered.json.dumps({"files": files}))).splitlines() == [
        "coverage of the package: lines 85.0 % (17 of 20), branches 25.0 % (1 of 4)",
        "coverage of twins of the compiled loops: lines 75.0 % (3 of 4), branches 100.0 % (0 of 0)",
        "  src/gaussfold/a.py: 6 lines and branches missed",
        "  tests/reference/c.py: 1 lines and branches missed",
    ]
