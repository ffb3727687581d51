"""The model file: one `.safetensors` file whose metadata is a JSON document; nothing in it is ever run.

Its metadata has two entries: `mercer`, a document with the format number, the class, its plain data and the arrays
to expect; and `sha256`, a digest of that document and of every array. All of it is checked before use.
"""

from __future__ import annotations

import hashlib
import json
import math
import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file
from torch import Tensor

from mercer.core.arrays import check_finite
from mercer.core.errors import InputError, InputTypeError, ModelFileError
from mercer.core.files import replacing
from mercer.core.memory import free_memory, readable

FORMAT = 1
"""Number of the format written here; a larger one comes from a newer mercer."""

MAX_HEADER_BYTES = 100_000_000  # the limit of safetensors itself
MAX_DOCUMENT = 48_000_000  # characters; quoting inside the header can double them
MAX_VALUES = 4_000_000
MAX_DEPTH = 400

DTYPES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}

PathLike = str | os.PathLike[str]
Description = tuple[str, list[int]]  # type and shape of an array


def write_model(
    path: PathLike, class_name: str, meta: Mapping[str, Any], arrays: Mapping[str, Tensor | np.ndarray]
) -> None:
    """Write plain data and arrays to one file; a write that fails leaves the old file as it was.

    `meta` holds dicts with string keys, lists, strings, numbers (no NaN), booleans, None, and tuples, which come
    back as lists. `arrays` holds finite arrays of float64, float32, int64, int32, uint8 or bool.

    >>> from tempfile import TemporaryDirectory
    >>> with TemporaryDirectory() as folder:
    ...     write_model(f"{folder}/m.safetensors", "Ridge", {"alpha": 0.5}, {"coef": np.ones(2)})
    ...     read_model(f"{folder}/m.safetensors", {"Ridge"})
    ('Ridge', {'alpha': 0.5}, {'coef': tensor([1., 1.], dtype=torch.float64)})
    """
    tensors = _storable(arrays)
    document = _document(class_name, meta, tensors)
    metadata = {"mercer": document, "sha256": _digest(document, tensors)}
    _check_target(path)
    try:
        with replacing(path) as temporary:
            save_file(tensors, temporary, metadata=metadata)
    except (OSError, SafetensorError) as error:
        raise _unwritable(path, _reason(error)) from error


def read_model(path: PathLike, allowed: Collection[str]) -> tuple[str, dict[str, Any], dict[str, Tensor]]:
    """Class name, plain data and CPU arrays of a file, after every check; the class must be one of `allowed`.

    >>> read_model("/", {"Ridge"})
    Traceback (most recent call last):
    mercer.core.errors.ModelFileError: Cannot load /: it is a folder.
    """
    _check_source(path)
    try:
        with safe_open(path, framework="pt", device="cpu") as file:
            metadata = file.metadata() or {}
            if metadata.keys() != {"mercer", "sha256"}:
                raise unreadable(path, "it is a safetensors file but not a mercer model")
            name, meta, expected = _parse(path, metadata["mercer"], allowed)
            found = {key: file.get_slice(key) for key in file.keys()}  # noqa: SIM118 - not a dict
            _check_arrays(path, {k: (v.get_dtype(), v.get_shape()) for k, v in found.items()}, expected)
            arrays = {key: file.get_tensor(key).clone() for key in found}
    except ModelFileError:
        raise
    except Exception as error:
        raise unreadable(path, f"the file is damaged ({_reason(error)})") from error
    if _digest(metadata["mercer"], arrays) != metadata["sha256"]:
        raise unreadable(path, "the file is damaged (its content does not match its checksum)")
    for key, values in arrays.items():
        try:
            check_finite(values, f"array {key!r:.60}")
        except InputError as error:
            raise unreadable(path, _reason(error)) from error
    return name, meta, arrays


def unreadable(path: PathLike, cause: str) -> ModelFileError:
    """The error for a file that cannot be loaded, with its cause."""
    return ModelFileError(f"Cannot load {os.fspath(path)}: {cause}.")


def listed(names: Collection[Any]) -> str:
    """Names in a message: sorted, and shortened where a hostile file has many or long ones."""
    shown = [f"{name!r:.60}" for name in sorted(names)[:20]]
    return ", ".join(shown + ["..."] * (len(names) > 20)) or "none"


# The document


def _document(class_name: str, meta: Mapping[str, Any], tensors: Mapping[str, Tensor]) -> str:
    meta = dict(meta)
    problem = _not_plain(meta)
    if problem is not None:
        raise InputTypeError(f"meta{problem[0]} is {problem[1]}; it cannot go into a model file.")
    arrays = {name: [DTYPES[t.dtype], list(t.shape)] for name, t in tensors.items()}
    document = json.dumps({"format": FORMAT, "class": class_name, "meta": meta, "arrays": arrays})
    excess = _too_large(document)
    if excess is not None:
        raise InputError(f"meta does not fit a model file: {excess}.")
    return document


def _parse(path: PathLike, document: str, allowed: Collection[str]) -> tuple[str, dict[str, Any], dict[str, Any]]:
    excess = _too_large(document)
    if excess is not None:
        raise unreadable(path, excess)
    try:
        content = json.loads(document)
    except RecursionError as error:
        raise unreadable(path, f"its JSON document is nested deeper than {MAX_DEPTH} levels") from error
    except ValueError as error:
        raise unreadable(path, f"its JSON document is damaged ({_reason(error)})") from error
    problem = _not_plain(content)
    if problem is not None:
        raise unreadable(path, f"its JSON document at {problem[0]} is {problem[1]}")
    if not isinstance(content, dict):
        raise unreadable(path, "its JSON document is not an object")
    _check_format(path, content.get("format"))
    if content.keys() != {"format", "class", "meta", "arrays"}:
        raise unreadable(path, f"its JSON document has the entries {listed(content)}")
    name, meta, arrays = content["class"], content["meta"], content["arrays"]
    if not isinstance(name, str) or name not in allowed:
        raise unreadable(path, f"it holds a {name!r:.60}; the classes that can be loaded here: {listed(allowed)}")
    if not isinstance(meta, dict) or not isinstance(arrays, dict):
        raise unreadable(path, "the entries meta and arrays of its JSON document are not objects")
    return name, meta, arrays


def _check_format(path: PathLike, number: Any) -> None:
    if type(number) is not int or number < 1:
        raise unreadable(path, f"its format number is {number!r:.60}, which no version of mercer writes")
    if number > FORMAT:
        newer = f"a newer mercer wrote it (format {number}, this version reads up to {FORMAT})"
        raise unreadable(path, f"{newer}; upgrade with: pip install --upgrade mercer")


def _not_plain(value: Any, depth: int = 0) -> tuple[str, str] | None:
    """Place and description of the first value that JSON cannot hold exactly, else None."""
    if depth > MAX_DEPTH:
        return "...", f"nested deeper than {MAX_DEPTH} levels"
    if isinstance(value, dict | list | tuple):
        for key, inner in value.items() if isinstance(value, dict) else enumerate(value):
            if isinstance(value, dict) and not isinstance(key, str):
                return "", f"a dict with the key {key!r:.60}, which is not a string"
            problem = _not_plain(inner, depth + 1)
            if problem is not None:
                return f"[{key!r:.60}]{problem[0]:.200}", problem[1]
        return None
    if isinstance(value, float) and math.isnan(value):
        return "", "NaN"
    if isinstance(value, int) and abs(value) >= 2**64:
        return "", "an integer of more than 64 bits"
    return None if value is None or isinstance(value, str | int | float) else ("", f"a {type(value).__name__}")


def _too_large(document: str) -> str | None:
    if len(document) > MAX_DOCUMENT:
        return f"its JSON document has {len(document)} characters, the limit is {MAX_DOCUMENT}"
    values = sum(document.count(mark) for mark in ",[{")
    if values > MAX_VALUES:
        return f"its JSON document has about {values} values, the limit is {MAX_VALUES}"
    return None


# The arrays


def _storable(arrays: Mapping[str, Tensor | np.ndarray]) -> dict[str, Tensor]:
    """The arrays as contiguous CPU tensors that share no memory, which safetensors requires."""
    tensors: dict[str, Tensor] = {}
    storages: set[int] = set()
    for name, value in arrays.items():
        if not isinstance(name, str) or name == "__metadata__" or not name.isprintable():
            raise InputError(f"An array is named {name!r:.60}; names are printable and not '__metadata__'.")
        tensor = _tensor(value, f"array {name!r}")
        check_finite(tensor, f"array {name!r}")
        storage = tensor.untyped_storage().data_ptr()
        tensors[name] = tensor.clone() if storage in storages else tensor
        storages.add(storage)
    return tensors


def _tensor(value: Any, name: str) -> Tensor:
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiub":
        value = torch.from_numpy(np.array(value, dtype=value.dtype.newbyteorder("=")))
    if not isinstance(value, Tensor) or value.layout is not torch.strided or value.dtype not in DTYPES:
        kind = getattr(value, "dtype", type(value).__name__)
        raise InputTypeError(f"{name} is of type {kind}; a model file holds {', '.join(map(str, DTYPES))}.")
    return value.detach().cpu().contiguous()


def _check_arrays(path: PathLike, found: dict[str, Description], expected: dict[str, Any]) -> None:
    """Compare what the header says of each array with what the document asks for, before any is read."""
    missing, extra = expected.keys() - found.keys(), found.keys() - expected.keys()
    if missing:
        raise unreadable(path, f"the arrays {listed(missing)} are missing")
    if extra:
        raise unreadable(path, f"the arrays {listed(extra)} do not belong to it")
    for name, (dtype, shape) in found.items():
        if [dtype, shape] != expected[name]:
            raise unreadable(path, f"array {name!r:.60} is {dtype} {shape}, expected {expected[name]!r:.60}")
        if dtype not in DTYPES.values():
            raise unreadable(path, f"array {name!r:.60} has the type {dtype}, which no model uses")


def _digest(document: str, tensors: Mapping[str, Tensor]) -> str:
    digest = hashlib.sha256(document.encode())
    for name in sorted(tensors):
        digest.update(tensors[name].numpy().data)
    return digest.hexdigest()


# The file


def _check_source(path: PathLike) -> None:
    """Whether the path is a file that can be a model by its kind, size and first bytes."""
    file = _as_path(path)
    try:
        if not file.exists():
            raise unreadable(path, "the file does not exist")
        if not file.is_file():
            raise unreadable(path, "it is a folder" if file.is_dir() else "it is not a regular file")
        size = file.stat().st_size
        with file.open("rb") as stream:
            start = stream.read(9)
    except OSError as error:
        raise unreadable(path, _reason(error)) from error
    header = int.from_bytes(start[:8], "little")
    if not start:
        raise unreadable(path, "the file is empty")
    if len(start) < 9 or not start.endswith(b"{"):
        raise unreadable(path, "it is not a safetensors file")
    if header > MAX_HEADER_BYTES:
        raise unreadable(path, f"it claims a header of {header} bytes, the limit is {MAX_HEADER_BYTES}")
    if 8 + header > size:
        raise unreadable(path, f"the file is truncated: it has {size} bytes, its header alone needs {8 + header}")
    if size > free_memory():
        raise unreadable(path, f"it needs {readable(size)} of memory but {readable(free_memory())} is free")


def _check_target(path: PathLike) -> None:
    target = _as_path(path)
    try:
        if not target.parent.is_dir():
            raise _unwritable(path, f"the folder {target.parent} does not exist")
        if target.exists() and not target.is_file():
            raise _unwritable(path, "it is a folder" if target.is_dir() else "it is not a regular file")
    except OSError as error:
        raise _unwritable(path, _reason(error)) from error


def _as_path(path: Any) -> Path:
    if not isinstance(path, str | os.PathLike) or not os.fspath(path) or "\0" in str(path):
        raise InputTypeError(f"path must be the name of a file, got {path!r:.60}.")
    return Path(path)


def _unwritable(path: PathLike, cause: str) -> ModelFileError:
    return ModelFileError(f"Cannot save {os.fspath(path)}: {cause}.")


def _reason(error: BaseException) -> str:
    text = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return (text or type(error).__name__).rstrip(".")[:200]
