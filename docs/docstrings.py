"""A Sphinx extension that reads the short docstrings of this project as numpydoc sections.

The examples and references that close a docstring become sections of their own where they would else be taken for
parameters, and the bars of a norm |x| stay bars.
"""

import re

UNDERLINE = re.compile(r"-{3,}$")
REFERENCES = "References: "
QUOTED_OR_BAR = re.compile(r"(``.*?``|`.*?`)|(?<!\\)\|")


def as_numpydoc(lines):
    """The lines of a docstring with the sections that numpydoc knows."""
    result, inside = [], ""
    for i, line in enumerate(lines):
        if i + 1 < len(lines) and UNDERLINE.match(lines[i + 1]):
            inside = line
        if inside and line.startswith(REFERENCES):
            result += ["References", "----------", line.removeprefix(REFERENCES)]
            inside = "References"
        elif inside and inside != "Examples" and line.startswith(">>>"):
            result += ["Examples", "--------", line]
            inside = "Examples"
        else:
            result.append(line)
    return result


def with_bars(lines):
    """The lines with the bars of norms escaped in sentences, not in formulas and examples."""
    result, verbatim = [], False
    for line in lines:
        verbatim = bool(line.strip()) and (verbatim or line.lstrip().startswith((".. math::", ">>>")))
        result.append(line if verbatim else QUOTED_OR_BAR.sub(lambda found: found[1] or r"\|", line))
    return result


def setup(app):
    def convert(app, what, name, obj, options, lines):
        lines[:] = with_bars(as_numpydoc(lines))

    app.setup_extension("sphinx.ext.autodoc")
    app.connect("autodoc-process-docstring", convert, priority=400)
    return {"version": "1", "parallel_read_safe": True}
