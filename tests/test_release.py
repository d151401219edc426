"""The version, the changelog and the citation say the same."""

import datetime
import re
from pathlib import Path

import gaussfold

ROOT = Path(__file__).parents[1]
HEADING = re.compile(r"^## (\d+\.\d+\.\d+) - (\d{4}-\d\d-\d\d)$", re.MULTILINE)


def _text(name):
    return (ROOT / name).read_text(encoding="utf-8")


def _number(version):
    return tuple(map(int, version.split(".")[:3]))


def test_releases_are_dated_and_in_order():
    releases = HEADING.findall(_text("CHANGELOG.md"))
    assert len(releases) == len(re.findall(r"^## \d", _text("CHANGELOG.md"), re.MULTILINE))  # every one has a date
    days = [datetime.date.fromisoformat(day) for _, day in releases]
    assert days == sorted(days, reverse=True)
    numbers = [_number(version) for version, _ in releases]
    assert numbers == sorted(set(numbers), reverse=True)


def test_the_version_is_the_newest_release_or_on_the_way_to_the_next():
    newest = HEADING.search(_text("CHANGELOG.md"))[1]
    unreleased = "\n## Unreleased\n" in _text("CHANGELOG.md")
    if gaussfold.__version__.endswith(".dev0"):
        assert unreleased
        assert _number(gaussfold.__version__) > _number(newest)
    else:
        assert gaussfold.__version__ == newest


def test_the_citation_names_the_newest_release():
    newest, day = HEADING.search(_text("CHANGELOG.md")).groups()
    citation = _text("CITATION.cff")
    assert re.search(r"^version: (\S+)$", citation, re.MULTILINE)[1] == newest
    assert re.search(r'^date-released: "(\S+)"$', citation, re.MULTILINE)[1] == day
