"""The documents as a site: `make docs`. It builds, and is read, without a network."""

import sys
from importlib.metadata import version as installed
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent))

import reference

project = "Weald"
author = copyright = "The Weald authors"  # noqa: A001 - Sphinx's own name
version = release = installed("weald")
extensions = ["myst_parser", "sphinx.ext.autodoc", "sphinx.ext.napoleon"]
html_theme = "furo"
html_title = "Weald"
html_show_sphinx = False
html_copy_source = False
myst_heading_anchors = 3
# Shell sessions show output, and some of it is no shell.
suppress_warnings = ["misc.highlighting_failure"]
autodoc_typehints = "none"
autodoc_member_order = "bysource"
napoleon_google_docstring = False
napoleon_use_rtype = False

reference.write_all(Path(__file__).parent / "reference")
