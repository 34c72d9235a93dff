"""Mutated files: whatever is in them, reading one ends soon, in little memory, runs no code, and fails as documented.

    python tools/fuzz.py model --seed 1 --count 100000
    python tools/fuzz.py series settings cifar results report --count 10000

Case n of a kind and a seed is always the same; `--first n --count 1` repeats it, and `--keep DIR` keeps the files of
the cases that went wrong. Exit code 1 says that there are such cases.
"""

from __future__ import annotations

import argparse
import csv
import faulthandler
import gzip
import io
import json
import pickle
import re
import resource
import shutil
import signal
import sqlite3
import sys
import tarfile
import tempfile
import traceback
import tracemalloc
import warnings
from collections import Counter
from collections.abc import Callable
from contextlib import closing, suppress
from dataclasses import dataclass
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import safetensors.numpy
from sklearn.compose import make_column_transformer
from sklearn.decomposition import PCA
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline
from sklearn.preprocessing import MinMaxScaler, OneHotEncoder, OrdinalEncoder, StandardScaler

from hyperelm import (
    Algebra,
    ColumnPlan,
    ELMAutoencoder,
    ELMClassifier,
    ELMRegressor,
    FrameClassifier,
    FrameRegressor,
    describe,
    experiments,
    load,
    save,
)
from hyperelm._estimators.base import taken_apart
from hyperelm._files import container
from hyperelm.datasets import load_cifar10
from hyperelm.experiments import Store, StoreError, Unit, read_sheet
from hyperelm.experiments import _report as report
from hyperelm.experiments._definition import Experiment, Result

SECONDS = 5.0  # of the processor, until a case hangs
MEMORY = (16, 4 * 2**20)  # bytes for each byte of a file, and in any case
ADDRESSES = 2**30  # bytes that all of the process may take beyond what it has when it begins
# What code that a file brings along would do; of `open` only to write.
FORBIDDEN = re.compile(
    r"exec|import|open|(code|function)\.__new__|subprocess\..*|os\.(system|exec|fork|posix_spawn)|socket\..*|ctypes\..*"
)


@dataclass(frozen=True)
class Kind:
    """A kind of file: sound ones, how to change them, how to read one, and how that may fail."""

    file: str
    sound: Callable[[Path], list[bytes]]  # made in a folder
    mutate: Callable[[Random, bytes], bytes]
    read: Callable[[Path], Any]
    errors: tuple[type[Exception], ...] = (ValueError,)


# ---------------------------------------------------------------------- mutations of bytes and of JSON

NUMBERS = [0, 1, 2, 7, 8, 127, 255, 2**16, 2**31 - 1, 2**31, 2**32, 2**53, 2**63 - 1, 2**63, 2**64 - 1]
VALUES = [
    *(None, True, False, "", "x", "inf", "nan", "x" * 3000, "\x00", "\ud800", "é\u202e", [], {}, [[]], {"": {}}),
    *(
        -1,
        -(2**63),
        10**299,
        10**310,
        0.0,
        -0.0,
        0.5,
        1e308,
        5e-324,
        "os.system",
        "quaternions",
        "svd",
        "object",
        "<c16",
    ),
    *NUMBERS,
]


def scramble(rng: Random, content: bytes) -> bytes:
    """One to four changes anywhere."""
    data = bytearray(content)
    for _ in range(rng.choice([1, 1, 1, 2, 4])):
        at, size = rng.randrange(len(data) + 1), rng.choice([1, 2, 4, 8, 64, 512])
        change = rng.randrange(8)
        if change == 0 and data:
            data[at % len(data)] ^= 1 << rng.randrange(8)
        elif change == 1:
            data[at : at + size] = rng.randbytes(size)
        elif change == 2:
            del data[at:]
        elif change == 3:
            del data[at : at + size]
        elif change == 4:
            data[at:at] = rng.randbytes(size)
        elif change == 5:
            data[at:at] = data[at : at + size] * rng.choice([1, 2, 50])
        elif change == 6:
            data[at : at + 8] = rng.choice(NUMBERS).to_bytes(8, rng.choice(["little", "big"]))
        else:
            data[at : at + 1] = rng.choice([b"\x00", b"\xff", b"[", b"{", b'"', b"-", b"9", b"\n", b","])
    return bytes(data)


def mutate_tree(rng: Random, tree: Any) -> Any:
    """JSON with one value replaced, removed, or moved."""
    places = list(_places(tree))
    if not places:
        return rng.choice(VALUES)
    parent, key = rng.choice(places)
    if isinstance(parent, dict) and rng.random() < 0.15:
        del parent[key]
    elif rng.random() < 0.3:
        other, name = rng.choice(places)
        parent[key] = json.loads(json.dumps(other.get(name) if isinstance(other, dict) else other[name % len(other)]))
    elif isinstance(parent[key], int) and rng.random() < 0.5:
        parent[key] += rng.choice([-1, 1, 2, 1000, 2**32])
    else:
        parent[key] = rng.choice(VALUES)
    return tree


def _places(tree: Any) -> Any:
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for key, value in items:
        yield tree, key
        yield from _places(value)


def dump(rng: Random, tree: Any) -> str:
    """JSON as text, at times with a key twice, nested deeply, or with what JSON lacks."""
    text = json.dumps(tree)
    change = rng.randrange(12)
    if change == 0:
        text = text.replace("{", '{"class": 1, "table": {}, ', 1)
    elif change == 1:
        depth = rng.choice([10, 200, 5000, 100_000])
        text = text.replace(": ", ": [" + "[" * depth + "]" * depth + '], "x": ', 1)
    elif change == 2:
        text = re.sub(r"\d+", lambda digits: rng.choice(["NaN", "1e999", "9" * 5000, digits[0]]), text, count=3)
    return text


# ---------------------------------------------------------------------- model files


def sound_models(folder: Path) -> list[bytes]:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((30, 6))
    mine = Algebra.from_table([["-0.1", "k", "-j"], ["k", "0.7", "i"], ["-j", "i", "-1"]], name="mine")
    shared = {"n_hidden": 3, "ridge": 0.1, "random_state": 0}
    labels = np.array(["yes", "no", "perhaps"])[np.arange(30) % 3]
    models = [
        ELMRegressor(mine, direct_link=True, packing="imaginary", **shared).fit(X, X[:, :2]),
        ELMRegressor("complex", bias=False, **shared).fit(X.reshape(30, 3, 2), X[:, 0]),
        FrameRegressor("complex", **shared).fit(1000 * X, X[:, :1]),
        ELMClassifier("quaternions", solver="qr", class_weight={"yes": 2.0, "no": 1, "perhaps": 1}, **shared),
        ELMAutoencoder("klein4", encoder="orthogonal", **shared).fit(X.astype(np.float32)),
    ]
    models[3].fit(X, labels)
    frame = {"a": X[:, 0], "b": np.where(X[:, 1] > 1, np.nan, X[:, 1]), "c": labels.astype(object)}
    plan = ColumnPlan.of(frame)
    planned = FrameClassifier("complex", **shared).fit(plan.apply(frame), labels)
    models.append(planned.name_columns(plan.features, ["label"], plan=plan))
    models.append(sound_pipeline(shared))
    models.append(ELMRegressor("complex", **shared).fit(X[:, :3] + 1j * X[:, 3:], X[:, 0] + 1j))
    models.append(ELMAutoencoder("quaternions", **shared).fit(X[:, :6].reshape(30, 2, 3)))
    models[0].feature_names_in_ = np.array(list("abcdef"), dtype=object)
    contents = []
    for model in models:
        for state in (False, True):
            save(model, folder / "sound", state=state)
            contents.append((folder / "sound").read_bytes())
    (folder / "sound").unlink()
    return contents


MIXED = np.array([[colour, n % 5, 0.5 * n] for n, colour in enumerate(["red", "green", "blue"] * 10)], dtype=object)


def sound_pipeline(shared: dict[str, Any]) -> Any:
    """A model behind scalers, encoders and imputers of scikit-learn."""
    numbers = make_pipeline(SimpleImputer(add_indicator=True, missing_values=0), StandardScaler(), PCA(2))
    columns = make_column_transformer(
        (OneHotEncoder(drop="first"), [0]), (OrdinalEncoder(), [1]), (numbers, [1, 2]), remainder="passthrough"
    )
    columns.set_params(remainder=MinMaxScaler((0, 2)))
    return make_pipeline(columns, "passthrough", ELMRegressor("klein4", **shared)).fit(MIXED, np.arange(30.0))


def mutate_model(rng: Random, content: bytes) -> bytes:
    way = rng.random()
    if way < 0.4:
        return scramble(rng, content)
    size = int.from_bytes(content[:8], "little")
    outer, data = json.loads(content[8 : 8 + size]), content[8 + size :]
    if way < 0.6:
        text = dump(rng, mutate_tree(rng, outer)).encode(errors="replace")
        length = len(text) + (rng.choice([-1, 1, 8, 2**20, 2**62]) if rng.random() < 0.1 else 0)
        return length.to_bytes(8, "little") + text + data
    # By somebody who knows the format: the checksum fits.
    header = json.loads(outer["__metadata__"][container.KEY].split("\n", 2)[2])
    arrays = safetensors.numpy.load(content)
    if way < 0.8:
        header = mutate_tree(rng, header)
    else:
        mutate_arrays(rng, arrays)
    text = dump(rng, header).encode(errors="replace").decode()
    version = rng.choice(["3"] * 200 + ["0", "1", "2", "4", "", "x", "1" * 5000])
    return safetensors.numpy.save(arrays, container.signed(version, text, arrays))


def mutate_arrays(rng: Random, arrays: dict[str, Any]) -> None:
    name = rng.choice(sorted(arrays))
    array = arrays[name]
    change = rng.randrange(8)
    if change == 0:
        del arrays[name]
    elif change == 1:
        arrays[name] = array.astype(
            rng.choice([np.float16, np.float32, np.float64, np.int64, np.uint8, np.uint32, bool])
        )
    elif change == 2:
        arrays[name] = np.ascontiguousarray(array.T)
    elif change == 3:
        arrays[name] = array.reshape(rng.choice([(-1,), (*array.shape, 1), (1, *array.shape)]))
    elif change == 4:
        arrays[name] = array[tuple(slice(rng.randrange(size + 1)) for size in array.shape)].copy()
    elif change == 5:
        arrays[name] = np.full_like(array, rng.choice([0, 1, 255]))
    elif change == 6:
        flat = array.reshape(-1).copy()
        if flat.size and flat.dtype.kind == "f":
            flat[rng.randrange(flat.size)] = rng.choice([np.nan, np.inf, -1e30, 1e-30, 3.0])
        elif flat.size:
            flat.view(np.uint8)[rng.randrange(flat.nbytes)] = rng.randrange(256)
        arrays[name] = flat.reshape(array.shape)
    else:
        arrays[rng.choice(["more", "state.rows", "feature_names_in_", "classes_", "table"])] = array
    arrays.update({key: np.array(value, order="C") for key, value in arrays.items()})


def read_model(path: Path) -> None:
    """Load a model and use it; what it then says may be anything, as its weights may."""
    model = load(path).set_params(verbose=0)
    describe(path)
    with warnings.catch_warnings(action="ignore"), np.errstate(all="ignore"):
        if isinstance(model, Pipeline):
            with suppress(ValueError):  # in scikit-learn's own words, of several lines
                model.predict(MIXED[:3])
            return
        X = np.zeros(model.network_.input.shape(3), complex if model.network_.input.is_complex else float)
        (model.reconstruct if isinstance(model, ELMAutoencoder) else model.predict)(X)
        if taken_apart(model).accumulator is not None:
            y = (
                model.classes_[[0, 1, 0]]
                if isinstance(model, ELMClassifier)
                else np.zeros(model.network_.output.shape(3), complex if model.network_.output.is_complex else float)
            )
            model.partial_fit(X, y)


# ---------------------------------------------------------------------- the other files


def sound_series(_: Path) -> list[bytes]:
    rows = np.random.default_rng(0).standard_normal((400, 3))
    lines = [",".join(f"{value:.4g}" for value in row) for row in rows]
    german = [f"{line.replace(',', ';').replace('.', ',')}" for line in lines]
    places = [f"{'abc'[n % 3]};{n % 28 + 1}.{n % 12 + 1}.2020;{line}" for n, line in enumerate(german)]
    mixed = [f'{n},"place, {n % 4}",{n % 7}%,{"" if n % 9 else "NA"},2020-01-{n % 28 + 1:02d}' for n in range(400)]
    files = [
        "\n".join(lines).encode(),
        "\r\n".join(["x,y,z", *lines, ""]).encode("utf-8-sig"),
        "\n".join(["x;y;z", *german]).encode(),
        "\n".join(["place;date;x;y;z", *places]).encode("utf-16"),
        "\n".join([",place,share,gap,date", *mixed]).encode(),
    ]
    return [*files, gzip.compress(files[1]), gzip.compress(files[4])]


def read_series(path: Path) -> None:
    """Read a file as `fit` does, check what was read, and take it as a series if it holds numbers alone."""
    sheet = read_sheet(str(path), "DATA")
    check_sheet(sheet, path.read_bytes())
    frame, forms = sheet.frame(sheet.names)
    plan = ColumnPlan.of(frame, notes=forms)
    assert ColumnPlan.from_json(json.loads(json.dumps(plan.to_json()))) == plan
    if plan.used:
        X = plan.apply(frame)
        assert X.shape == (len(sheet), len(plan.features))
        assert np.isfinite(X).all()
    if all(column.dtype.kind == "f" and not np.isnan(column).any() for column in frame.values()):
        experiments.load("lorenz", quick=True, changes=[f"series={path}"])


def check_sheet(sheet: experiments.Sheet, content: bytes) -> None:
    """Compare the cells and the numbers of a sheet with what Python's csv module and `float` make of the file."""
    content = gzip.decompress(content) if content[:2] == b"\x1f\x8b" else content
    text = content.decode("utf-16" if content[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig")
    lines = io.StringIO(text.replace("\r\n", "\n").replace("\r", "\n"))
    rows = list(csv.reader(lines, delimiter=sheet.sep))
    while rows and not rows[-1]:
        rows.pop()
    width = max(map(len, rows))
    rows = [row or [""] * width for row in rows][sheet.first_row - 1 :]
    columns = list(zip(*rows, strict=True))[width - len(sheet.names) :]
    for name, cells, column in zip(sheet.names, columns, sheet.columns, strict=True):
        assert list(cells) == column.tolist(), f"cells of {name!r}"
        if sheet.names.count(name) == 1 and sheet.kind(name) == "number":
            for cell, value in zip(cells, sheet.numbers(name), strict=True):
                assert _agrees(cell.strip(), value, sheet.decimal), f"{cell!r} read as {value!r}"


def _agrees(cell: str, value: float, decimal: str) -> bool:
    plain = cell if decimal == "." else cell.replace(".", "").replace(",", ".")
    plain = {"true": "1", "false": "0"}.get(plain.lower(), plain.replace(",", "").removesuffix("%").strip())
    return (
        np.isnan(value)
        if plain.lower() in ("", "na", "n/a", "#n/a", "nan", "null", "<na>", "nat")
        else (float(plain) == value)
    )


def sound_settings(_: Path) -> list[bytes]:
    settings = experiments.load("lorenz", quick=True).settings
    return [f"{key}={json.dumps(value)}".encode() for key, value in settings.items() if key != "sensitivity"] + [
        b'sensitivity=[{name = "a", change = {dt = 0.02}}]'
    ]


def mutate_settings(rng: Random, content: bytes) -> bytes:
    if rng.random() < 0.5:
        return scramble(rng, content)
    key, _, _ = content.partition(b"=")
    return key + b"=" + dump(rng, rng.choice([value for value in VALUES if not _is_large(value)])).encode()


def _is_large(value: Any) -> bool:
    """Work that was asked for takes its time."""
    return isinstance(value, int) and 10_000 < value < 2**63


def read_settings(path: Path) -> None:
    text = path.read_bytes().decode(errors="replace")
    # Digits that a change made more of ask for more work, and no series may come from another file.
    if not re.search(r"\d{5}", text) and not text.startswith("series"):
        experiments.load("lorenz", quick=True, changes=[text])


def sound_cifar(_: Path) -> list[bytes]:
    rng = np.random.default_rng(0)
    pixels, labels = rng.integers(256, size=(2, 3072), dtype=np.uint8), [3, 9]
    binary = b"".join(bytes([label]) + row.tobytes() for label, row in zip(labels, pixels))
    batch = {b"batch_label": b"training batch 1 of 5", b"labels": labels, b"data": pixels}
    pickles = [pickle.dumps(batch, protocol) for protocol in (2, 3, 4, 5)]
    archives = []
    for mode in ("w", "w:gz", "w:bz2"):
        with io.BytesIO() as file:
            with tarfile.open(fileobj=file, mode=mode) as archive:
                member = tarfile.TarInfo("cifar/data_batch_1.bin")
                member.size = len(binary)
                archive.addfile(member, io.BytesIO(binary))
            archives.append(file.getvalue())
    return [binary, *pickles, *pickles, *archives]


def mutate_cifar(rng: Random, content: bytes) -> bytes:
    """Mostly where the structure is: before and behind the pixels."""
    if content[:1] != b"\x80" or rng.random() < 0.2:
        return scramble(rng, content)
    cut = rng.choice([160, len(content) - 160])
    return scramble(rng, content[:cut]) + content[cut:] if cut == 160 else content[:cut] + scramble(rng, content[cut:])


def read_cifar(path: Path) -> None:
    """As an archive or as a file of a folder, after what it was made of."""
    with path.open("rb") as file:
        archived = file.read(2) in (b"\x1f\x8b", b"BZ", b"ci")
    images, labels = load_cifar10(path if archived else path.parent, "batch_1")
    assert images.shape[1:] == (32, 32, 3)
    assert images.dtype == labels.dtype == np.uint8


def sound_results(folder: Path) -> list[bytes]:
    experiment = Experiment("lorenz", {"seed": 0, "models": ["real", "klein4"], "dt": 0.1}, {})
    with Store.running(folder / "sound", experiment) as store:
        store.begin_session()
        for algebra in ("real", "klein4"):
            unit = Unit("main", "", algebra, 3, 0, 2)
            rows = [{"network": n, "seed": n, "gain": 0.5 + n} for n in range(2)]
            store.add(unit, Result(rows, {f"{algebra}/a": np.arange(12.0).reshape(3, 4)}))
    with closing(sqlite3.connect(folder / "sound" / "results.sqlite")) as connection:
        connection.execute("pragma journal_mode = delete")
    content = (folder / "sound" / "results.sqlite").read_bytes()
    for file in (folder / "sound").iterdir():
        file.unlink()
    (folder / "sound").rmdir()
    return [content]


def sound_report(folder: Path) -> list[bytes]:
    few = ["models=['real','klein4']", "n_hidden=[3]", "few_hidden=[3]", "positions=500", "networks=2"]
    experiments.run(experiments.load("lorenz", quick=True, changes=few), folder / "sound", jobs=1)
    with closing(sqlite3.connect(folder / "sound" / "results.sqlite")) as connection:
        connection.execute("pragma journal_mode = delete")
    content = (folder / "sound" / "results.sqlite").read_bytes()
    shutil.rmtree(folder / "sound")
    return [content]


def read_report(path: Path) -> None:
    """All of a report but the drawing."""
    with Store.open(path.parent) as store:
        document = report._document(store)
        report._page(store, document)
        report._command(store, document)


def read_results(path: Path) -> None:
    with Store.open(path.parent) as store:
        store.rows(None)
        store.sessions()
        for name in ("real/a", "klein4/a"):
            store.array(name)


KINDS = {
    "model": Kind("model.hyperelm", sound_models, mutate_model, read_model),
    "series": Kind("series.csv", sound_series, scramble, read_series),
    "settings": Kind("setting", sound_settings, mutate_settings, read_settings),
    "cifar": Kind("data_batch_1", sound_cifar, mutate_cifar, read_cifar),
    "results": Kind("results.sqlite", sound_results, scramble, read_results, (StoreError,)),
    "report": Kind("results.sqlite", sound_report, scramble, read_report, (StoreError,)),
}


# ---------------------------------------------------------------------- watching one case


class Hang(BaseException):
    """A case takes too long."""


class Watch:
    """What happens while a file is read: code that runs, time, and memory that Python and NumPy ask for."""

    def __init__(self) -> None:
        self.events: list[str] | None = None
        sys.addaudithook(self._note)
        signal.signal(signal.SIGPROF, self._hang)
        tracemalloc.start()

    def _note(self, event: str, arguments: tuple[Any, ...]) -> None:
        if self.events is not None and FORBIDDEN.fullmatch(event):
            reads = event == "open" and (arguments[1] is None or not set(str(arguments[1])) & set("wax+"))
            decodes = event == "import" and str(arguments[0]).startswith("encodings.")
            if not reads and not decodes:
                self.events.append(f"{event} {arguments!r}"[:200])

    def _hang(self, *_: Any) -> None:
        raise Hang

    def problem(self, kind: Kind, path: Path, content: bytes) -> tuple[str, str]:
        """How reading this content ended, and what is wrong with that, if anything."""
        path.write_bytes(content)
        wrong = ""
        tracemalloc.reset_peak()
        before = tracemalloc.get_traced_memory()[0]
        signal.setitimer(signal.ITIMER_PROF, SECONDS)
        self.events = []
        try:
            kind.read(path)
            end = "read"
        except Hang:
            end = wrong = f"takes more than {SECONDS:g} seconds"
        except kind.errors as error:
            end = re.sub(r"[\d.]+|'[^']*'", "*", str(error))[-60:]
            wrong = f"a message of several lines: {error}" if "\n" in str(error) else ""
        except Exception:  # any other is what is looked for
            end, wrong = "wrong", traceback.format_exc()
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            events, self.events = self.events, None
        peak = tracemalloc.get_traced_memory()[1] - before
        allowed = MEMORY[0] * len(content) + MEMORY[1]
        if events:
            wrong = wrong or f"does what only code does: {events[0]}"
        if peak > allowed:
            wrong = wrong or f"takes {peak:,} bytes for a file of {len(content):,}"
        return end, wrong


def fuzz(name: str, seed: int, first: int, count: int, keep: Path | None, watch: Watch) -> int:
    """The number of cases that went wrong."""
    kind, ends, problems = KINDS[name], Counter[str](), 0
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / kind.file
        sound = kind.sound(Path(folder))
        for content in sound * 2:  # whatever is loaded or cached once comes now
            path.write_bytes(content)
            kind.read(path)
        for n in range(first, first + count):
            rng = Random(f"{name}/{seed}/{n}")
            content = kind.mutate(rng, rng.choice(sound))
            end, wrong = watch.problem(kind, path, content)
            ends[end] += 1
            if wrong:
                problems += 1
                print(f"{name}: seed {seed}, case {n}: {wrong}", flush=True)
                if keep:
                    keep.mkdir(parents=True, exist_ok=True)
                    (keep / f"{name}-{seed}-{n}").write_bytes(content)
    print(f"{name}: {count:,} cases, {ends['read']:,} read, {count - ends['read']:,} refused, {problems:,} wrong")
    for end, times in ends.most_common(8):
        print(f"  {times:8,}  {end}")
    return problems


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("kinds", nargs="*", default=list(KINDS), metavar="KIND", help=", ".join(KINDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--count", type=int, default=100)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--keep", type=Path)
    options = parser.parse_args()
    faulthandler.enable()
    warnings.simplefilter("error")
    pages = int(Path("/proc/self/statm").read_text().split()[0])
    limit = pages * resource.getpagesize() + ADDRESSES
    resource.setrlimit(resource.RLIMIT_AS, (limit, resource.getrlimit(resource.RLIMIT_AS)[1]))
    watch = Watch()
    wrong = [fuzz(name, options.seed, options.first, options.count, options.keep, watch) for name in options.kinds]
    return 1 if any(wrong) else 0


if __name__ == "__main__":
    sys.exit(main())
