"""Pages of the reference that are made when the site is built."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def made(app: Any, name: str, page: Callable[[], str]) -> dict[str, bool]:
    """Have Sphinx write ``reference/name.md`` before it reads pages; the file is only touched if it differs."""

    def write(app: Any) -> None:
        path, text = Path(app.srcdir) / "reference" / f"{name}.md", page()
        if not path.is_file() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")

    app.connect("builder-inited", write)
    return {"parallel_read_safe": True}
