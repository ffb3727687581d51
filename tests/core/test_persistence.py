"""Model files: complete round trips, atomic writes, and a clear error for every damaged or hostile file."""

from __future__ import annotations

import hashlib
import json
import os
import pickle
import random
import stat
import struct
import sys

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import save_file

from mercer.core.errors import InputError, InputTypeError, ModelFileError
from mercer.files import modelfile, persistence
from mercer.files.persistence import load, read_model, register, save, write_model
from mercer.functions import RKHSFunction
from mercer.kernels import Callable, Gaussian, Laplace, Linear, Matern, Precomputed, Spectrum, Subspace

META = {
    "alpha": 0.1 + 0.2,
    "steps": 3,
    "auto": True,
    "nothing": None,
    "nu": float("inf"),
    "names": ["Größe", "面积", "🏠", 'quo"te\\', "\ud800"],
    "kernel": {"class": "Gaussian", "params": {"length_scale": [1.0, 2.0]}},
}
ARRAYS = {
    "X": torch.arange(6, dtype=torch.float64).reshape(3, 2) / 7,
    "coef": torch.tensor([1.0, -2.0, 3.5]),
    "gewählt": torch.tensor([2, 0, 1]),
    "empty": torch.zeros(0, 4),
    "scalar": torch.tensor(2.5),
    "mask": torch.tensor([True, False]),
    "bytes": torch.tensor([0, 255], dtype=torch.uint8),
    "small": torch.tensor([-7], dtype=torch.int32),
}


@pytest.fixture
def path(tmp_path):
    file = tmp_path / "modèle.safetensors"
    write_model(file, "Thing", META, ARRAYS)
    return file


def equal(a, b):
    return a.keys() == b.keys() and all(a[k].dtype == b[k].dtype and torch.equal(a[k], b[k]) for k in a)


# Round trips


def test_everything_comes_back(path):
    name, meta, arrays = read_model(path, {"Other", "Thing"})
    assert name == "Thing"
    assert meta == META
    assert equal(arrays, ARRAYS)


def test_numpy_arrays_views_and_shared_memory_come_back_as_their_values(tmp_path):
    base = torch.arange(12.0).reshape(3, 4)
    arrays = {
        "whole": base,
        "again": base,
        "part": base[:1],
        "turned": base.T,
        "frozen": np.broadcast_to(np.float32(2.0), (3,)),
        "swapped": np.array([1.0, 2.0], dtype=">f8"),
        "reversed": np.arange(3)[::-1],
        "grad": torch.ones(2, requires_grad=True),
        "one, of stride zero": torch.tensor(2.0).expand(1),
        "none, of stride zero": torch.tensor(2.0).expand(0),
    }
    write_model(tmp_path / "m", "Thing", {"shape": (1, 2)}, arrays)
    _, meta, found = read_model(tmp_path / "m", {"Thing"})
    assert meta == {"shape": [1, 2]}
    for name, value in arrays.items():
        expected = value.detach().numpy() if isinstance(value, torch.Tensor) else value
        np.testing.assert_array_equal(found[name].numpy(), expected)


def test_a_model_needs_no_arrays_and_no_meta(tmp_path):
    write_model(str(tmp_path / "m"), "Thing", {}, {})
    assert read_model(str(tmp_path / "m"), {"Thing"}) == ("Thing", {}, {})


def test_loaded_arrays_are_independent_of_the_file(path):
    _, _, arrays = read_model(path, {"Thing"})
    arrays["X"] += 1
    path.write_bytes(b"")
    assert torch.equal(arrays["X"], ARRAYS["X"] + 1)


FRAME = pd.DataFrame(np.random.default_rng(0).normal(size=(4, 2)), columns=["größe", "b"])
FUNCTIONS = [
    RKHSFunction(Gaussian(length_scale=(1.0, 2.0)), FRAME, np.arange(4.0)),
    RKHSFunction(Subspace(Laplace(), ["b"]) + 2.0 * Linear() * Matern(nu=np.inf), FRAME, np.ones((4, 3))),
    RKHSFunction(Gaussian(), torch.eye(3), torch.ones(3)),
    RKHSFunction(Spectrum(k=2), ["kernel", "größer", ""], [1.0, 2.0, 3.0]),
    RKHSFunction(Precomputed(), np.eye(3), np.ones(3)),
]


@pytest.mark.parametrize("f", FUNCTIONS, ids=repr)
def test_functions_come_back_as_the_same_function(f, tmp_path):
    f.save(tmp_path / "f.safetensors")
    g = load(tmp_path / "f.safetensors")
    assert isinstance(g, RKHSFunction)
    assert g.kernel == f.kernel
    assert type(g.coef) is type(f.coef)
    assert g.coef.dtype == f.coef.dtype
    assert np.all(np.asarray(g.distance(f)) == 0.0)
    np.testing.assert_array_equal(g.X, f.X)
    np.testing.assert_array_equal(g(f.X), f(f.X))


def test_column_names_are_part_of_a_saved_function(tmp_path):
    FUNCTIONS[0].save(tmp_path / "f")
    with pytest.raises(InputError, match="columns"):
        load(tmp_path / "f")(FRAME[["b", "größe"]])


def test_functions_that_hold_python_code_or_objects_are_not_saved(tmp_path):
    sets = RKHSFunction(Callable(lambda a, b: float(len(a & b))), [{1}], [1.0])
    with pytest.raises(InputError, match="cannot be saved"):
        sets.save(tmp_path / "f")
    with pytest.raises(InputError, match="is a dict: only strings"):
        RKHSFunction(Spectrum(), ["a", {}], [1.0, 1.0]).save(tmp_path / "f")
    assert not list(tmp_path.iterdir())


def test_a_large_document_fits_and_a_larger_one_is_refused_when_written(tmp_path, monkeypatch):
    words = ['"' * 1000] * 2000  # quoting doubles it, twice
    write_model(tmp_path / "m", "Thing", {"words": words}, {})
    assert read_model(tmp_path / "m", {"Thing"})[1] == {"words": words}
    monkeypatch.setattr(modelfile, "MAX_DOCUMENT", 1000)
    with pytest.raises(InputError, match="characters, the limit is 1000"):
        write_model(tmp_path / "m", "Thing", {"words": words}, {})
    with pytest.raises(ModelFileError, match="characters, the limit is 1000"):
        read_model(tmp_path / "m", {"Thing"})


# What cannot be written


def nested(levels):
    value = 1
    for _ in range(levels):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"a": {"b": [1, {2}]}}, r"meta\['a'\]\['b'\]\[1\] is a set"),
        ({"a": np.ones(2)}, r"meta\['a'\] is a ndarray"),
        ({"a": np.int64(2)}, r"meta\['a'\] is a int64"),
        ({"a": torch.ones(1)}, r"meta\['a'\] is a Tensor"),
        ({"a": float("nan")}, r"meta\['a'\] is NaN"),
        ({"a": 2**64}, r"meta\['a'\] is an integer of more than 64 bits"),
        ({"a": {1: 2}}, r"meta\['a'\] is a dict with the key 1"),
        ({"a": b"bytes"}, r"meta\['a'\] is a bytes"),
        ({"a": nested(modelfile.MAX_DEPTH)}, "nested deeper"),
    ],
)
def test_meta_that_json_cannot_hold_is_named(meta, message, tmp_path):
    with pytest.raises(InputTypeError, match=message):
        write_model(tmp_path / "m", "Thing", meta, {})
    assert not list(tmp_path.iterdir())


def test_the_deepest_meta_that_can_be_written_can_be_read(tmp_path):
    meta = {"a": nested(modelfile.MAX_DEPTH - 3)}
    write_model(tmp_path / "m", "Thing", meta, {})
    assert read_model(tmp_path / "m", {"Thing"})[1] == meta


@pytest.mark.parametrize(
    ("arrays", "error", "message"),
    [
        ({"x": np.array([1.0, np.nan])}, InputError, "array 'x' contains NaN"),
        ({"x": torch.tensor([np.inf])}, InputError, "array 'x' contains infinity"),
        ({"x": np.array(["a"])}, InputTypeError, "array 'x' is of type <U1"),
        ({"x": np.array([{}])}, InputTypeError, "array 'x' is of type object"),
        ({"x": np.ones(1) * 1j}, InputTypeError, "array 'x' is of type complex128"),
        ({"x": torch.ones(1, dtype=torch.bfloat16)}, InputTypeError, "bfloat16"),
        ({"x": torch.ones(2, 2).to_sparse()}, InputTypeError, "array 'x'"),
        ({"x": [1.0]}, InputTypeError, "array 'x' is of type list"),
        ({"__metadata__": np.ones(1)}, InputError, "__metadata__"),
        ({"\ud800": np.ones(1)}, InputError, "named"),
        ({1: np.ones(1)}, InputError, "named 1"),
    ],
)
def test_arrays_that_do_not_belong_in_a_file_are_named(arrays, error, message, tmp_path):
    with pytest.raises(error, match=message):
        write_model(tmp_path / "m", "Thing", {}, arrays)
    assert not list(tmp_path.iterdir())


def test_places_that_cannot_be_written_are_named(tmp_path):
    with pytest.raises(ModelFileError, match=r"Cannot save .*m: the folder .*missing does not exist"):
        write_model(tmp_path / "missing" / "m", "Thing", {}, {})
    with pytest.raises(ModelFileError, match="it is a folder"):
        write_model(tmp_path, "Thing", {}, {})
    with pytest.raises(ModelFileError, match="Cannot save"):
        write_model(tmp_path / ("x" * 300), "Thing", {}, {})
    for bad in (None, 3, "", "a\0b"):
        with pytest.raises(InputTypeError, match="path must be the name of a file"):
            write_model(bad, "Thing", {}, {})


@pytest.mark.skipif(sys.platform == "win32", reason="needs named pipes")
def test_pipes_and_devices_are_neither_read_nor_replaced(tmp_path):
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    with pytest.raises(ModelFileError, match="not a regular file"):
        write_model(pipe, "Thing", {}, {})
    with pytest.raises(ModelFileError, match="not a regular file"):
        read_model(pipe, {"Thing"})
    assert stat.S_ISFIFO(pipe.stat().st_mode)


# Atomic writes


@pytest.mark.parametrize("stage", ["save_file", "fsync", "replace"])
@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), KeyboardInterrupt()])
def test_a_write_that_fails_leaves_the_old_file_and_nothing_else(stage, error, path, monkeypatch):
    before = path.read_bytes()

    def fail(*_, **__):
        raise error

    monkeypatch.setattr(modelfile if stage == "save_file" else os, stage, fail)
    expected = ModelFileError if isinstance(error, OSError) else KeyboardInterrupt
    with pytest.raises(expected, match="No space left" if isinstance(error, OSError) else None):
        write_model(path, "Thing", {"new": 1}, {})
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")
def test_a_full_disk_leaves_the_old_file(path):
    import resource

    before, limits = path.read_bytes(), resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (20_000, limits[1]))
    try:
        with pytest.raises(ModelFileError, match=r"Cannot save .*File too large"):
            write_model(path, "Thing", {}, {"x": torch.ones(10_000)})
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert list(path.parent.iterdir()) == [path]


@pytest.mark.skipif(sys.platform == "win32", reason="needs links and permissions")
def test_links_are_followed_and_permissions_kept(path):
    path.chmod(0o640)
    link = path.with_name("link")
    link.symlink_to(path)
    write_model(link, "Thing", {"new": 1}, {})
    assert link.is_symlink()
    assert read_model(path, {"Thing"})[1] == {"new": 1}
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert len(list(path.parent.iterdir())) == 2


# Damaged and hostile files


def header_and_data(file):
    content = file.read_bytes()
    (length,) = struct.unpack("<Q", content[:8])
    return json.loads(content[8 : 8 + length]), content[8 + length :]


def raw(file, header, data=b""):
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    file.write_bytes(struct.pack("<Q", len(text)) + text + data)


def forge(file, document, tensors=None, digest=None):
    """A well-formed file with a right checksum and any document."""
    tensors = tensors or {}
    text = document if isinstance(document, str) else json.dumps(document)
    right = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        right.update(tensors[name].numpy().tobytes())
    save_file(tensors, file, metadata={"mercer": text, "sha256": digest or right.hexdigest()})


def document(**changes):
    return {"format": 1, "class": "Thing", "meta": {}, "arrays": {}} | changes


def refused(file, message=None):
    with pytest.raises(ModelFileError, match=message) as caught:
        read_model(file, {"Thing"})
    assert str(file) in str(caught.value)
    assert len(str(caught.value)) < 3000


def test_files_that_are_not_models_are_named(tmp_path):
    file = tmp_path / "m"
    refused(file, "does not exist")
    refused(tmp_path, "it is a folder")
    refused(tmp_path / ("x" * 300), "name too long")
    file.write_bytes(b"")
    refused(file, "empty")
    for content in (b"abc", b"PK\3\4" + bytes(100), b"\x93NUMPY" + bytes(100), pickle.dumps({"a": 1}), b"a,b\n1,2\n"):
        file.write_bytes(content)
        refused(file, "not a safetensors file")
    save_file({"x": torch.ones(2)}, file)
    refused(file, "not a mercer model")
    save_file({"x": torch.ones(2)}, file, metadata={"format": "pt"})
    refused(file, "not a mercer model")


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="the superuser may read everything")
def test_a_file_without_read_permission_is_named(path):
    path.chmod(0)
    refused(path, "Permission denied")


def test_a_pickle_is_never_run(tmp_path):
    class Bomb:
        def __reduce__(self):
            return (os.mkdir, (str(tmp_path / "ran"),))

    for data in (pickle.dumps(Bomb()), struct.pack("<Q", 1) + b"{" + pickle.dumps(Bomb())):
        (tmp_path / "m").write_bytes(data)
        refused(tmp_path / "m")
    assert not (tmp_path / "ran").exists()


def test_headers_that_lie_about_their_size_are_refused(tmp_path):
    file = tmp_path / "m"
    file.write_bytes(struct.pack("<Q", 2**63) + b"{}")
    refused(file, "claims a header of 9223372036854775808 bytes")
    file.write_bytes(struct.pack("<Q", 1000) + b"{}")
    refused(file, "truncated")


@pytest.mark.parametrize(
    "entry",
    [
        {"dtype": "F64", "shape": [2**40], "data_offsets": [0, 2**43]},
        {"dtype": "F64", "shape": [2**40], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [2**62, 2**62], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [0, 2**62, 2**62], "data_offsets": [0, 0]},
        {"dtype": "F64", "shape": [-1], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [1], "data_offsets": [8, 0]},
        {"dtype": "PICKLE", "shape": [1], "data_offsets": [0, 8]},
        {"dtype": "F64", "shape": [1]},
        [],
    ],
)
def test_small_headers_that_claim_huge_or_absurd_arrays_are_refused(entry, tmp_path):
    shape = entry["shape"] if entry else []
    text = json.dumps(document(arrays={"x": ["F64", shape]}))
    header = {"__metadata__": {"mercer": text, "sha256": "0" * 64}, "x": entry}
    raw(tmp_path / "m", header, bytes(8))
    refused(tmp_path / "m", "damaged")


def test_a_sparse_file_larger_than_memory_is_refused_unread(path, monkeypatch):
    monkeypatch.setattr(modelfile, "free_memory", lambda: 100)
    refused(path, r"needs .* of memory but 100 B is free")


@pytest.mark.parametrize("text", [b"{", b"{}", b'{"__metadata__": 3}', b"{" * 5000, b'{"a":' * 5000, b"\xff\xfe{}"])
def test_headers_that_are_not_the_right_json_are_refused(text, tmp_path):
    raw(tmp_path / "m", text)
    refused(tmp_path / "m")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", "damaged"),
        ("[1, 2", "damaged"),
        ("3", "not an object"),
        ("[]", "not an object"),
        ("[" * 100_000 + "]" * 100_000, "nested deeper"),
        ('{"a":' * 600 + "1" + "}" * 600, "nested deeper"),
        ("1" * 5000, "damaged"),
        ("NaN", "NaN"),
        ("[" + "[]," * 2_100_000 + "1]", "values, the limit"),
        (document(format=2), r"newer mercer.*format 2.*upgrade"),
        (document(format=0), "format number is 0"),
        (document(format=True), "format number is True"),
        (document(format="1"), "format number is '1'"),
        ({"format": 1}, "has the entries 'format'"),
        (document(extra=1), "has the entries"),
        (document(**{"class": "os.system"}), r"holds a 'os.system'.*'Thing'"),
        (document(**{"class": ["Thing"]}), "holds a "),
        (document(**{"class": "x" * 10_000}), "holds a 'xxx"),
        (document(meta=[]), "not objects"),
        (document(arrays=[]), "not objects"),
        (document(meta={"a": float("nan")}), "NaN"),
        (document(meta={"a": 10**30}), "64 bits"),
        (document(arrays={"y": ["F64", [2]]}), "arrays 'y' are missing"),
    ],
    ids=lambda value: str(value)[:40],
)
def test_documents_that_do_not_describe_a_model_are_refused(content, message, tmp_path):
    forge(tmp_path / "m", content)
    refused(tmp_path / "m", message)


@pytest.mark.parametrize(
    ("arrays", "message"),
    [
        ({}, "arrays 'x' do not belong"),
        ({"x": ["F64", [2]], "y": ["F64", [2]]}, "arrays 'y' are missing"),
        ({"x": ["F64", [2, 1]]}, "array 'x' is F64"),
        ({"x": ["F32", [2]]}, "expected"),
        ({"x": {"dtype": "F64"}}, "expected"),
        ({"x": None}, "expected None"),
        ({"x": "F64"}, "expected 'F64'"),
    ],
)
def test_arrays_other_than_the_document_says_are_refused(arrays, message, tmp_path):
    forge(tmp_path / "m", document(arrays=arrays), {"x": torch.ones(2, dtype=torch.float64)})
    refused(tmp_path / "m", message)


def test_array_types_that_models_do_not_use_are_refused(tmp_path):
    forge(tmp_path / "m", document(arrays={"x": ["F16", [1]]}), {"x": torch.ones(1, dtype=torch.float16)})
    refused(tmp_path / "m", "type F16")


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
def test_arrays_with_nan_or_infinity_are_refused(value, tmp_path):
    forge(tmp_path / "m", document(arrays={"x": ["F32", [2]]}), {"x": torch.tensor([1.0, value])})
    refused(tmp_path / "m", r"array 'x' contains (NaN|infinity) \(first: position 1\)")


def test_a_wrong_checksum_is_refused(tmp_path):
    forge(tmp_path / "m", document(), digest="0" * 64)
    refused(tmp_path / "m", "checksum")


def test_every_cut_of_a_file_is_refused(path):
    content = path.read_bytes()
    for length in [*range(0, len(content), 3), len(content) - 1]:
        path.write_bytes(content[:length])
        refused(path)


def damaged(content, rng):
    """One of several kinds of damage at random places."""
    data = bytearray(content)
    place = rng.randrange(len(data))
    kind = rng.randrange(5)
    if kind == 0:
        data[place] ^= 1 << rng.randrange(8)
    elif kind == 1:
        data[place] = rng.randrange(256)
    elif kind == 2:
        for _ in range(rng.randrange(2, 30)):
            data[rng.randrange(len(data))] = rng.randrange(256)
    elif kind == 3:
        data[place : place + rng.randrange(6)] = bytes(rng.choice(b'{}[]",:0129- ') for _ in range(rng.randrange(6)))
    else:
        digits = [i for i, byte in enumerate(data) if chr(byte).isdigit()]
        data[rng.choice(digits)] = rng.choice(b"0123456789")
    return bytes(data)


def test_random_damage_gives_a_model_file_error_or_the_same_model(path):
    content, rng, refusals = path.read_bytes(), random.Random(0), 0
    for _ in range(1000):
        path.write_bytes(damaged(content, rng))
        try:
            name, meta, arrays = read_model(path, {"Thing"})
        except ModelFileError:
            refusals += 1
        else:
            assert (name, meta) == ("Thing", META)
            assert equal(arrays, ARRAYS)
    assert refusals > 800


# The registry


class Plain:
    """A class with a state, for the registry."""

    def __init__(self, value):
        self.value = value

    def to_state(self):
        return {"value": self.value}, {}

    @classmethod
    def from_state(cls, meta, arrays):
        return cls(meta["value"])


@pytest.fixture
def registry(monkeypatch):
    monkeypatch.setattr(persistence, "_registry", {})
    return register(Plain)


def test_registered_classes_are_saved_and_loaded(registry, tmp_path):
    save(Plain("é"), tmp_path / "m")
    found = load(tmp_path / "m")
    assert type(found) is Plain
    assert found.value == "é"
    assert register(Plain) is Plain


def test_classes_that_are_not_registered_are_neither_saved_nor_loaded(registry, tmp_path):
    class Child(Plain):
        pass

    with pytest.raises(InputTypeError, match=r"Child cannot be saved.*'Plain'"):
        save(Child(1), tmp_path / "m")
    write_model(tmp_path / "m", "Child", {}, {})
    with pytest.raises(ModelFileError, match=r"holds a 'Child'.*'Plain'"):
        load(tmp_path / "m")


def test_a_name_is_registered_once(registry):
    other = type("Plain", (Plain,), {"__module__": "elsewhere"})
    with pytest.raises(InputError, match="Two classes are named Plain"):
        register(other)


@pytest.mark.parametrize(
    ("meta", "arrays"),
    [
        ({}, {}),
        ({"kernel": {"class": "Gaussian", "params": {"length_scale": -1.0}}}, {}),
        ({"kernel": {"class": "os.system", "params": {}}}, {}),
        ({"kernel": nested(200)}, {}),
        ({}, {"coef": np.ones(3)}),
        ({}, {"X": np.ones((2, 2, 2)), "coef": np.ones(2)}),
        ({}, {"X": np.ones((2, 2), dtype=np.int32), "coef": np.ones(3)}),
        ({"names": ["a"]}, {"X": np.ones((2, 2)), "coef": np.ones(2)}),
        ({"names": [1, 2]}, {"X": np.ones((2, 2)), "coef": np.ones(2)}),
        ({"names": "ab"}, {"X": np.ones((2, 2)), "coef": np.ones(2)}),
        ({"objects": "ab"}, {"coef": np.ones(2)}),
        ({"objects": [1, 2]}, {"coef": np.ones(2)}),
        ({"objects": ["a", "b"], "names": ["a"]}, {"coef": np.ones(2)}),
    ],
)
def test_well_formed_files_with_senseless_functions_are_refused(meta, arrays, tmp_path):
    whole = {"kernel": {"class": "Linear", "params": {}}, "names": None, "torch": True, "objects": None} | meta
    write_model(tmp_path / "m", "RKHSFunction", whole, arrays)
    with pytest.raises(ModelFileError, match="does not make a RKHSFunction"):
        load(tmp_path / "m")
