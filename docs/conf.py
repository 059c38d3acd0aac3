"""Sphinx configuration: MyST sources, the Furo theme, nothing fetched while building."""

from wirebound import __version__

project = "wirebound"
author = "The wirebound developers"
project_copyright = "The wirebound developers"
version = release = __version__

extensions = ["myst_parser"]
myst_enable_extensions = ["amsmath", "deflist", "dollarmath"]
myst_heading_anchors = 3
exclude_patterns = ["_build"]
nitpicky = True

html_theme = "furo"
html_title = f"wirebound {__version__}"
