"""`Report`: what was done, how well it went and what to worry about, for a person to read."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from html import escape


@dataclass(frozen=True)
class Report:
    """A title, labelled lines and warnings; prints as aligned text and shows as a table in notebooks.

    >>> print(Report("Fit", (("rows", "442"), ("solver", "cholesky")), ("alpha is at the edge of its path",)))
    Fit
      rows    442
      solver  cholesky
    Worth a look
      - alpha is at the edge of its path
    """

    title: str
    lines: tuple[tuple[str, str], ...]
    concerns: tuple[str, ...] = ()

    def __str__(self) -> str:
        width = max((len(label) for label, _ in self.lines), default=0)
        text = [self.title, *(f"  {label:<{width}}  {value}" for label, value in self.lines)]
        if self.concerns:
            text += ["Worth a look", *(f"  - {concern}" for concern in self.concerns)]
        return "\n".join(text)

    __repr__ = __str__

    def as_dict(self) -> dict[str, str]:
        """The labelled lines as a dictionary."""
        return dict(self.lines)

    def _repr_html_(self) -> str:
        rows = "".join(f"<tr><th>{escape(label)}</th><td>{escape(value)}</td></tr>" for label, value in self.lines)
        concerns = "".join(f"<li>{escape(concern)}</li>" for concern in self.concerns)
        worries = f"<p>Worth a look</p><ul>{concerns}</ul>" if self.concerns else ""
        return f"<table><caption>{escape(self.title)}</caption>{rows}</table>{worries}"


def make_report(title: str, lines: Iterable[tuple[str, object]], concerns: Iterable[str] = ()) -> Report:
    """A report whose values are turned into text."""
    return Report(title, tuple((label, str(value)) for label, value in lines), tuple(concerns))
