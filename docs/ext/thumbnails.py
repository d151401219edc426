"""Words for the thumbnails of the guides: sphinx-gallery leaves them without."""

from __future__ import annotations

from pathlib import PurePosixPath
from typing import Any

from docutils import nodes

END = "_thumb"


def name(app: Any, document: nodes.document) -> None:
    """Say of every thumbnail whose it is."""
    del app
    for picture in document.findall(nodes.image):
        stem = PurePosixPath(picture["uri"]).stem
        if stem.endswith(END) and not picture.get("alt"):
            guide = stem.removeprefix("sphx_glr_").removesuffix(END).replace("_", " ")
            picture["alt"] = f"The last picture of the guide: {guide}"


def setup(app: Any) -> dict[str, bool]:
    """What Sphinx calls."""
    app.connect("doctree-read", name)
    return {"parallel_read_safe": True}
