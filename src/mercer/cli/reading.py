"""Files as people have them, read into a `Table`: any encoding, delimiter and decimal mark, header or none."""

from __future__ import annotations

import csv
import gzip
import io
import re
import sys
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from mercer.cli.dials import SNIFFED
from mercer.cli.tables import TEXT_FORMATS, array_names, checked_format, is_index, read_arrays
from mercer.core.errors import InputError
from mercer.data.table import Table
from mercer.data.texts import GAP_WORDS, as_number, decimal_mark, read_each

STDIN = Path("-")
DELIMITERS = {"comma": ",", "semicolon": ";", "tab": "\t", "pipe": "|", "space": " "}


@dataclass(frozen=True)
class Format:
    """What the user says of a text file; None where it is to be found out."""

    encoding: str | None = None
    delimiter: str | None = None


@dataclass(frozen=True)
class Read:
    """A table, where it is from, and what a person should know of how it was read.

    `usual` are the columns to learn from unless told otherwise, all where it is empty; `left_out` says why other arrays
    of the file are no columns.
    """

    table: Table
    source: str
    notes: tuple[str, ...] = ()
    usual: tuple[str, ...] = ()
    left_out: Mapping[str, str] = field(default_factory=dict)

    @property
    def names(self) -> tuple[str, ...]:
        return self.table.names


def read_file(path: Path, form: Format | None = None) -> Read:
    """The table in a file, or on standard input for "-"."""
    form = form or Format()
    if path == STDIN:
        return read_text(sys.stdin.buffer.read(), "standard input", form)
    kind = checked_format(path)
    if kind in TEXT_FORMATS:
        return read_text(_bytes(path), str(path), form, "\t" if ".tsv" in path.suffixes else None)
    columns, features, left_out = read_arrays(path)
    index = tuple(name for name in columns if is_index(name))
    table = Table.of(columns)
    return Read(table.without(index), str(path), _index_notes(index), features if kind == "npz" else (), left_out)


def read_text(data: bytes, source: str, form: Format, delimiter: str | None = None) -> Read:
    r"""The table in the bytes of a text file.

    >>> read = read_text(b"size;price\n1,5;2\n2,5;n/a\n", "houses.csv", Format())
    >>> read.table.columns["size"], read.notes
    (array([1.5, 2.5]), ("Read with delimiter ';' and decimal mark ','.",))
    """
    text, encoding = decoded(data, source, form.encoding)
    lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not lines:
        raise InputError(f"{source} has no rows.")
    mark = DELIMITERS.get(form.delimiter or "", form.delimiter) or delimiter or _sniffed(lines)
    rows = _rows(text, mark, source)
    if _has_header(rows):
        names, rows = [name.strip() for name in rows[0]], rows[1:]
    else:
        names = list(array_names(len(rows[0])))
    if names and names[-1] == "" and all(not row[-1].strip() for row in rows):  # each line ends in a delimiter
        names, rows = names[:-1], [row[:-1] for row in rows]
    _check_names(names, source)
    columns, marks, preferred = {}, set(), _preferred(rows) if mark != "," else "."
    for name, values in zip(names, zip(*rows, strict=True) if rows else [()] * len(names), strict=True):
        columns[name], used = _column(values, preferred)
        marks.add(used)
    index = tuple(name for name in names if is_index(name))
    notes = [] if encoding == "utf-8" else [f"Read as {encoding}; --encoding says otherwise."]
    shown = {"\t": "tab", " ": "space"}.get(mark, repr(mark))
    if mark != "," or "," in marks:
        decimal = " and decimal mark ','" if "," in marks else ""
        notes.append(f"Read with delimiter {shown}{decimal}.")
    if names == list(array_names(len(names))):
        notes.append(
            f"The first line holds numbers, so there is no header: columns are named {names[0]} to {names[-1]}."
        )
    table = Table({name: column for name, column in columns.items() if name not in index}, len(rows))
    return Read(table, source, (*notes, *_index_notes(index)))


def decoded(data: bytes, source: str, encoding: str | None) -> tuple[str, str]:
    """Text and its encoding: what its first bytes say, else UTF-8, else what Windows writes.

    >>> decoded("größe".encode("utf-16"), "f", None), decoded("größe".encode("cp1252"), "f", None)
    (('größe', 'utf-16'), ('größe', 'cp1252'))
    """
    if encoding is None:
        marks = {b"\xff\xfe": "utf-16", b"\xfe\xff": "utf-16", b"\xef\xbb\xbf": "utf-8-sig"}
        found = next((name for start, name in marks.items() if data.startswith(start)), None)
        if found is None and data[1:400:2].count(0) > len(data[1:400:2]) // 2:
            found = "utf-16-le"
        tried = [found] if found else ["utf-8", "cp1252", "latin-1"]
    else:
        tried = [encoding]
    for name in tried:
        try:
            return data.decode(name), "utf-8" if name == "utf-8-sig" else name
        except (UnicodeDecodeError, LookupError) as error:
            reason = str(error)
    raise InputError(f"{source} cannot be read as {tried[-1]}: {reason}. Name its encoding with --encoding.")


def _bytes(path: Path) -> bytes:
    try:
        data = path.read_bytes()
        return gzip.decompress(data) if path.name.lower().endswith(".gz") else data
    except (OSError, EOFError, zlib.error) as error:
        raise InputError(f"{path} cannot be read as a CSV file: {error}.") from error


def _sniffed(lines: Sequence[str]) -> str:
    """The delimiter that cuts lines into the same number of fields, the largest such number."""
    some = lines[:SNIFFED]
    best, most = ",", 1
    for mark in (";", "\t", ",", "|"):
        counts = [len(row) for row in csv.reader(some, delimiter=mark)]
        if counts and min(counts) == max(counts) > most:
            best, most = mark, counts[0]
    if most == 1:
        counts = [len(line.split()) for line in some]
        if min(counts) == max(counts) > 1 and not any("," in line or ";" in line for line in some):
            return " "
        return next((mark for mark in (",", ";", "\t", "|") if mark in lines[0]), ",")
    return best


def _rows(text: str, mark: str, source: str) -> list[list[str]]:
    if len(mark) != 1:
        raise InputError(f"--delimiter {mark!r}: give one character, or comma, semicolon, tab, pipe or space.")
    if mark == " ":
        lines = [line for line in text.splitlines() if line.strip() and not line.lstrip().startswith("#")]
        numbered = [(i, line.split()) for i, line in enumerate(lines, 1)]
    else:
        reader = csv.reader(io.StringIO(text, newline=""), delimiter=mark, skipinitialspace=True)
        try:
            numbered = [
                (reader.line_num, row)
                for row in reader
                if row and not row[0].lstrip().startswith("#") and any(field.strip() for field in row)
            ]
        except csv.Error as error:
            raise InputError(f"{source} cannot be read as a CSV file: {error}.") from error
    if not numbered:
        raise InputError(f"{source} has no rows.")
    if "\0" in text[:4096]:
        raise InputError(f"{source} cannot be read as a CSV file: it holds zero bytes. Is it another kind of file?")
    width = len(numbered[0][1])
    wrong = next(((line, row) for line, row in numbered if len(row) != width), None)
    if wrong is not None:
        raise InputError(
            f"{source} cannot be read as a CSV file: expected {width} columns, got {len(wrong[1])} in line {wrong[0]}. "
            "Quote values that hold the delimiter, or name it with --delimiter."
        )
    return [row for _, row in numbered]


def _has_header(rows: list[list[str]]) -> bool:
    """Names stand in the first line unless a field there is a number, and so are those below it."""
    if len(rows) == 1:
        return True
    decimal = _preferred(rows)
    for first, below in zip(rows[0], zip(*rows[1:6], strict=True), strict=True):
        number = as_number(first, decimal)
        if number is not None and number == number and all(as_number(v, decimal) is not None for v in below):
            return False
    return True


def _check_names(names: list[str], source: str) -> None:
    for i, name in enumerate(names):
        if name in names[:i]:
            raise InputError(f"{source} has two columns named {name!r}; columns need different names.")


def _preferred(rows: Sequence[Sequence[str]]) -> str:
    """The decimal mark of a file: the comma where it stands in numbers and no point does that ends no thousands."""
    fields = [field.strip() for row in rows[:2000] for field in row]
    points = any(re.fullmatch(r"[+-]?(\d+\.\d{1,2}|\d{4,}\.\d+|0\.\d+|\d+\.\d{4,})", text) for text in fields)
    return "," if not points and any(re.fullmatch(r"[+-]?[\d. ]*\d,\d+", text) for text in fields) else "."


def _column(values: Sequence[str], preferred: str) -> tuple[np.ndarray, str]:
    """A column as numbers or text, and its decimal mark where that shows."""
    column = np.empty(len(values), dtype=object)
    column[:] = [None if v.strip().lower() in GAP_WORDS else v.strip() for v in values]
    if all(v is None for v in column):
        return np.full(len(values), np.nan), ""
    mark = decimal_mark(column, preferred)
    if mark is None:
        return column, ""
    numbers = np.array(read_each(column, lambda text: as_number(text, mark)), dtype=np.float64)
    return numbers, mark if any(v is not None and mark in v for v in column) else ""


def _index_notes(index: tuple[str, ...]) -> tuple[str, ...]:
    return tuple(f"Column {name!r} looks like a row index and is not used as a feature." for name in index)
