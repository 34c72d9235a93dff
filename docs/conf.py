"""How the site is built: `make docs`. Nothing here or in the pages needs the network."""

from __future__ import annotations

from typing import Any

from docutils import nodes

import hyperelm

project = "hyperelm"
author = "The hyperelm developers"
version = release = hyperelm.__version__
project_copyright = author

extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.viewcode",
    "numpydoc",
    "myst_parser",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "_templates"]
templates_path = ["_templates"]
# A name in single backticks becomes a link where it can be found.
default_role = "autolink"
nitpicky = True
# Fitted attributes that are properties have no entry of their own: the page of their class lists them.
_PROPERTIES = ("hidden_weights_", "output_weights_", "readout_table_", "readout_algebra_", "n_parameters_", "plan_")
nitpick_ignore = [("py:obj", name) for name in _PROPERTIES]
# Other projects' names, which no file of this site describes.
nitpick_ignore_regex = [(r"py:.*", r"(numpy|scipy|sklearn|dask|torch|joblib|onnx|onnxruntime|pathlib|collections)\b.*")]
myst_heading_anchors = 3

autosummary_generate = True
# The docstrings say types and shapes; hints in signatures would say them twice.
autodoc_typehints = "none"
autodoc_member_order = "bysource"
numpydoc_show_class_members = False

html_theme = "pydata_sphinx_theme"
html_title = "hyperelm"
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_favicon = "_static/icon.svg"
html_context = {"default_mode": "auto"}
# These pages are not part of a section, so there is nothing to show beside them.
_ALONE = ("quickstart", "experiments", "performance", "design", "contributing", "changelog")
html_sidebars: dict[str, list[str]] = {name: [] for name in _ALONE}
html_show_sourcelink = False
html_copy_source = False
html_show_copyright = False
html_theme_options = {
    "logo": {
        "text": "hyperelm",
        "image_light": "_static/icon.svg",
        "image_dark": "_static/icon.svg",
        "alt_text": "hyperelm, home",
    },
    # The wide button has a visible text that is not all in its label, and takes the room of the links beside it.
    "navbar_persistent": ["search-button"],
    "navigation_with_keys": False,
    "show_nav_level": 2,
    "header_links_before_dropdown": 6,
    "footer_start": [],
    "footer_end": [],
    "secondary_sidebar_items": ["page-toc"],
    "show_prev_next": True,
}

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"/plot_",
    "within_subsection_order": "FileNameSortKey",
    "backreferences_dir": "gallery/uses",
    "doc_module": ("hyperelm",),
    "abort_on_example_error": False,
    "download_all_examples": False,
    "capture_repr": (),
    "show_signature": False,
    "write_computation_times": False,
    "image_srcset": ["2x"],
}


def describe_thumbnails(_app: Any, doctree: nodes.document) -> None:
    """Give the thumbnails of the gallery an alternative text, which sphinx-gallery leaves empty."""
    for image in doctree.findall(nodes.image):
        if not image.get("alt"):
            name = image["uri"].rpartition("sphx_glr_plot_")[2].removesuffix("_thumb.png")
            image["alt"] = f"Thumbnail of the example: {name.replace('_', ' ')}"


def leave_out(_app: Any, _what: str, name: str, *_: Any) -> bool | None:
    """What scikit-learn adds to every estimator is described there."""
    return True if name.startswith("set_") and name.endswith("_request") else None


def setup(app: Any) -> None:
    app.connect("autodoc-skip-member", leave_out)
    app.connect("doctree-read", describe_thumbnails)
