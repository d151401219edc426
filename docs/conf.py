"""The site: ``python -m tools.site`` (``nox -s docs``) builds it into ``output/site``, offline, warnings as errors."""

from __future__ import annotations

import os
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT))

import gaussfold  # noqa: E402  the package that is documented, found by the line above

project = "gaussfold"
author = "The gaussfold founders"
copyright = "2026, The gaussfold founders"  # noqa: A001  Sphinx's name for it
version = release = gaussfold.__version__

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx_copybutton",
    "sphinx_design",
    "sphinx_gallery.gen_gallery",
    "docs.ext.command_line",
    "docs.ext.error_messages",
    "docs.ext.own_members",
    "docs.ext.thumbnails",
]
exclude_patterns = ["skeletons", "figures", "ext", "_build"]
templates_path = ["_templates"]
nitpicky = False

myst_enable_extensions = ["colon_fence", "deflist"]
myst_heading_anchors = 3

autosummary_generate = True
autodoc_typehints = "none"  # numpydoc's sections have them in words
autodoc_member_order = "groupwise"
numpydoc_show_class_members = False
numpydoc_class_members_toctree = False

sphinx_gallery_conf = {
    "examples_dirs": [str(ROOT / "examples")],
    "gallery_dirs": ["guides"],
    "filename_pattern": r"\.py$",
    "ignore_pattern": r"(__init__|breast_cancer|gaussian_process)\.py",  # for readers without matplotlib
    "within_subsection_order": "FileNameSortKey",
    "remove_config_comments": True,
    "show_memory": False,
    "only_warn_on_example_error": True,  # all of them at once; -W makes them errors
    "plot_gallery": "GAUSSFOLD_SITE_QUICK" not in os.environ,
}

html_theme = "pydata_sphinx_theme"
html_title = "gaussfold"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_show_sourcelink = False
html_sidebars = {"choosing": []}  # pages without pages below them
html_theme_options = {
    "logo": {"text": "gaussfold"},
    "navbar_align": "left",
    "navigation_with_keys": False,
    "show_prev_next": True,
    "footer_start": ["copyright"],
    "footer_end": [],
    "pygments_light_style": "a11y-high-contrast-light",
    "pygments_dark_style": "a11y-high-contrast-dark",
}
copybutton_prompt_text = r"\$ |>>> |\.\.\. "
copybutton_prompt_is_regexp = True
suppress_warnings = ["config.cache"]
