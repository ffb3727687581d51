"""Sphinx configuration."""

from importlib.metadata import version as installed_version

project = "mercer"
author = "The mercer developers"
copyright = "The mercer developers"
version = release = installed_version("mercer")

extensions = [
    "myst_parser",
    "numpydoc",
    "sphinx.ext.autodoc",
    "sphinx.ext.autosummary",
    "sphinx.ext.doctest",
    "sphinx.ext.mathjax",
    "sphinx_copybutton",
    "sphinx_gallery.gen_gallery",
]
exclude_patterns = ["_build", "gallery/**/*.ipynb", "gallery/**/*.py"]
templates_path = ["_templates"]

html_theme = "pydata_sphinx_theme"
html_title = "mercer"
html_theme_options = {"navbar_align": "left", "show_prev_next": False}

myst_enable_extensions = ["dollarmath"]
myst_heading_anchors = 3

autosummary_imported_members = True
autosummary_ignore_module_all = False
autodoc_typehints = "none"
autodoc_default_options = {
    "exclude-members": "set_fit_request, set_partial_fit_request, set_predict_request, set_score_request, "
    "set_transform_request",
}
numpydoc_show_class_members = False

copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

sphinx_gallery_conf = {
    "examples_dirs": "../examples",
    "gallery_dirs": "gallery",
    "filename_pattern": r"\.py$",
    "write_computation_times": False,
    "show_signature": False,
}
