"""What `tools.pages` asks of the built site: it finds what is wrong, and nothing in a page that is right."""

import pytest
from tools import pages

RIGHT = """<html lang="en"><head><title>T</title><meta name="viewport" content="width=device-width"></head><body>
<h1 id="top">T</h1><h2>S</h2><a href="#top">up</a><a href="other.html#there">on</a><img src="p.png" alt="a bell curve">
<table><tr><th>name</th></tr></table></body></html>"""


@pytest.fixture
def site(tmp_path):
    (tmp_path / "p.png").write_bytes(b"")
    (tmp_path / "index.html").write_text(RIGHT)
    (tmp_path / "other.html").write_text(
        RIGHT.replace("other.html#there", "index.html").replace("<h2>", '<h2 id="there">')
    )
    return tmp_path


def test_nothing_is_wrong_with_a_right_page(site):
    assert list(pages.faults(site)) == []


@pytest.mark.parametrize(
    ("before", "after", "fault"),
    [
        ("other.html#there", "gone.html", "gone.html, which is not there"),
        ("other.html#there", "other.html#gone", "other.html#gone, a part which is not there"),
        ("#top", "#bottom", "#bottom, a part which is not there"),
        ("p.png", "q.png", "q.png, which is not there"),
        ('alt="a bell curve"', 'alt=" "', "a picture without words: p.png"),
        ("<h2>S</h2>", "<h3>S</h3>", "headings [1, 3]"),
        ("<h2>S</h2>", "<h1>S</h1>", "headings [1, 1]"),
        ("<th>name</th>", "<th></th>", "an empty head of a column"),
        (' lang="en"', "", "not a language"),
        ("<title>T</title>", "", "not a title"),
        ("viewport", "author", "not a width for small screens"),
    ],
)
def test_what_is_wrong_is_named(site, before, after, fault):
    page = site / "index.html"
    page.write_text(RIGHT.replace(before, after))
    (found,) = pages.faults(site)
    assert found.startswith("index.html: ")
    assert fault in found
