"""What does training cost on rows larger than memory, on several workers, and on a large cluster?

memory   Fits an auto-encoder of 450 neurons to 8-bit RGB patches of 32 x 32 from a memory map, scaled chunk by chunk.
         Measures the anonymous memory of the process, and compares the time of a row with a fit to 10,000 rows in
         memory.
cluster  Fits a network to 384,000 rows by `hyperelm.dask`, with one and with two workers of one thread.
model    Compares the cost model of docs/scale.md with measurements at three sizes, and applies it to a billion rows.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits
from timing import best_times

from hyperelm import ELMAutoencoder, ELMRegressor, algebras
from hyperelm._algebra.blocks import decompose
from hyperelm._algebra.forms import gram_forms, gram_plan
from hyperelm._algebra.schemes import is_large_product, scheme

PIXELS, NEURONS = 1024, 450
PARTS = ["memory", "cluster", "model"]
CHUNK = 1000  # rows of a chunk
AT_MOST = {"memory": 1.5e9, "time a row": 1.1, "2 workers": 1.6}
NAMES = ["real", "R[-1,+1]", "quaternions"]
SIZES = [(64, 100, 16), (256, 200, 256), (1024, 450, 1024)]  # D, L, N of the model's three measurements


# ---------------------------------------------------------------------- rows larger than memory


class Patches:
    """Patches from a file of bytes, as numbers with a zero real part, scaled to [-1, 1]. They can be read again."""

    def __init__(self, path: Path, rows: int) -> None:
        self.bytes = np.memmap(path, dtype=np.uint8, mode="r", shape=(rows, PIXELS, 3))

    def __iter__(self) -> Iterator[np.ndarray]:
        for start in range(0, len(self.bytes), CHUNK):
            colours = self.bytes[start : start + CHUNK]
            chunk = np.zeros((len(colours), PIXELS, 4))
            np.multiply(colours, 1 / 127.5, out=chunk[..., 1:])
            chunk[..., 1:] -= 1
            yield chunk


def write_patches(path: Path, rows: int) -> None:
    """Write smooth noise that resembles images: the same thousand patches again and again, with another byte added."""
    rng = np.random.default_rng(0)
    noise = rng.uniform(0, 255, (1000, 16, 16, 3)).repeat(2, axis=1).repeat(2, axis=2)
    patches = (0.7 * noise + rng.uniform(0, 70, (1000, 32, 32, 3))).astype(np.uint8)
    with path.open("wb") as file:
        for start in range(0, rows, 1000):
            file.write((patches + np.uint8(start // 1000 % 256)).reshape(1000, -1)[: rows - start].tobytes())


def auto_encoder(name: str) -> ELMAutoencoder:
    return ELMAutoencoder(name, NEURONS, bias=False, ridge=0.0, weight_scale="paper", random_state=0)


class Sampler(threading.Thread):
    """Finds the peak of the anonymous memory of this process. It looks twenty times a second."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.peak, self.done = 0, threading.Event()

    def run(self) -> None:
        while not self.done.wait(0.05):
            lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
            self.peak = max(
                self.peak, next(int(line.split()[1]) * 1024 for line in lines if line.startswith("RssAnon"))
            )


def timed(model: ELMAutoencoder, X: object) -> dict[str, float]:
    """Measure the seconds of a fit by the clock, and of the processor, which exclude those of other processes."""
    clock, processor = time.perf_counter(), time.process_time()
    model.fit(X)
    return {"clock": time.perf_counter() - clock, "processor": time.process_time() - processor}


def measure_memory(name: str, path: Path, rows: int) -> None:
    """Print times and peak memory of a fit from a file. Runs in a process of its own, which does nothing else."""
    sampler = Sampler()
    sampler.start()
    # A first fit warms up: what is searched once in a process is not part of a fit.
    timed(auto_encoder(name), Patches(path, min(rows, 2 * CHUNK)))
    model = auto_encoder(name)
    times = timed(model, Patches(path, rows))
    sampler.done.set()
    sampler.join()
    print(json.dumps({**times, "peak": sampler.peak, "method": model.solver_}))


def measure_in_memory(name: str, path: Path, rows: int, repeats: int) -> None:
    X = np.concatenate(list(Patches(path, rows)))
    times = [timed(auto_encoder(name), X) for _ in range(repeats + 1)][1:]
    print(json.dumps({kind: min(one[kind] for one in times) for kind in times[0]}))


def larger_than_memory(rows: int, names: list[str], repeats: int) -> dict[str, float]:
    """Compare fits from a file with fits in memory, which are timed before and after, since other load may change."""
    found: dict[str, float] = {}
    small = min(rows, 10_000)
    with tempfile.TemporaryDirectory() as directory:
        path = Path(directory) / "patches"
        write_patches(path, rows)
        print(f"{rows:,} patches in {path.stat().st_size / 1e9:.2f} GB", flush=True)
        for name in names:
            inside = ["--in-memory-of", name, "--rows", str(small), "--repeats", str(repeats), "--file", str(path)]
            before = child(*inside)
            whole = child("--memory-of", name, "--file", str(path), "--rows", str(rows))
            after = child(*inside)
            print(f"{name} by {whole['method']}")
            verdict("  anonymous memory, GB", whole["peak"] / 1e9, AT_MOST["memory"] / 1e9, most=True)
            found[f"{name} peak"] = whole["peak"]
            for kind in ("clock", "processor"):
                print(
                    f"  {kind}: {small:,} rows in memory {before[kind]:.2f} s before and {after[kind]:.2f} s after, "
                    f"all rows from the file {whole[kind]:.1f} s"
                )
                ratio = whole[kind] / rows / ((before[kind] + after[kind]) / 2 / small)
                verdict(f"  time a row / in memory, {kind}", ratio, AT_MOST["time a row"], most=True)
                found[f"{name} time a row, {kind}"] = ratio
    return found


def child(*arguments: str) -> dict[str, Any]:
    """Run this script in a process of its own, and return what it prints."""
    done = subprocess.run([sys.executable, __file__, *arguments], stdout=subprocess.PIPE, text=True, check=True)
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def verdict(label: str, value: float, limit: float, *, most: bool) -> None:
    fine = value <= limit if most else value >= limit
    print(
        f"{label:40}{value:8.3f}  {'at most' if most else 'at least'} {limit:.2f}  {'ok' if fine else 'MISSED'}",
        flush=True,
    )


# ---------------------------------------------------------------------- a cluster


def cluster(repeats: int) -> dict[str, float]:
    """Let one and two workers take turns on 48 partitions of 8,000 rows, which the workers make themselves.

    Seconds are by the clock, and of the processor: of this process, which is also the scheduler, and of the busier
    worker.
    """
    import dask.array as da
    from distributed import Client, LocalCluster

    import hyperelm.dask

    X = da.random.default_rng(0).standard_normal((384_000, 256), chunks=(8000, 256))
    options = {"threads_per_worker": 1, "host": "127.0.0.1", "dashboard_address": "127.0.0.1:0"}
    best = {(kind, workers): float("inf") for kind in ("clock", "processor") for workers in (1, 2)}
    with ExitStack() as stack:
        clients = {}
        for workers in (1, 2):
            at = stack.enter_context(LocalCluster(n_workers=workers, **options))
            clients[workers] = stack.enter_context(Client(at, set_as_default=False))
        for _ in range(repeats + 1):  # the first round warms up
            for workers, client in clients.items():
                model = ELMRegressor(n_hidden=200, weight_scale=0.05, ridge=1.0, random_state=0)
                before, mine, start = client.run(time.process_time), time.process_time(), time.perf_counter()
                with client.as_current():
                    hyperelm.dask.fit(model, X, X[:, :64])
                clock, mine = time.perf_counter() - start, time.process_time() - mine
                after = client.run(time.process_time)
                busiest = max(after[worker] - before[worker] for worker in after)
                for kind, seconds in (("clock", clock), ("processor", mine + busiest)):
                    best[kind, workers] = min(best[kind, workers], seconds)
    print("384,000 rows of 64 quaternions, 200 neurons")
    found = {}
    for kind in ("clock", "processor"):
        found[f"{kind} speedup"] = best[kind, 1] / best[kind, 2]
        print(f"  {kind}: 1 worker {best[kind, 1]:.2f} s, 2 workers {best[kind, 2]:.2f} s")
        verdict(f"  2 workers / 1 worker, {kind}", found[f"{kind} speedup"], AT_MOST["2 workers"], most=False)
    return found


# ---------------------------------------------------------------------- the cost model of docs/scale.md


class Cost(NamedTuple):
    """The cost of one fit without bias.

    row : floating-point operations in matrix products for a row
    numbers : values of a row that are touched one by one, as in tanh
    solution : operations of the solution
    state : bytes of an accumulator
    """

    row: float
    numbers: int
    solution: float
    state: float

    def seconds(self, rows: float, speed: float, touch: float) -> float:
        """The seconds of a fit, with `speed` operations a second and `touch` seconds for a value."""
        return (rows * self.row + self.solution) / speed + rows * self.numbers * touch


def products(name: str, D: int, L: int, N: int) -> tuple[int, int, int]:
    """Count the real products.

    p : of the hidden layer
    g : of the Gram matrix, where a symmetric product counts 1 and others count 2
    q : of HᵀT
    """
    algebra = algebras.get(name)
    hidden = len(scheme(algebra, search=is_large_product(D, L)).terms) if is_large_product(D, L) else algebra.dim**2
    sums = gram_plan(algebra, search=is_large_product(L, L)).sums
    gram = sum(2 - (a == b) for total in sums for a, b, _ in total)
    return hidden, gram, len(scheme(algebra, search=is_large_product(L, N)).terms)


def touched(name: str, D: int, L: int, N: int) -> int:
    """Count the values in the planes of x, h and t for a row, each formed once."""
    if algebras.get(name).dim == 1:
        return D + L + N
    p, _, q = products(name, D, L, N)
    return p * (D + L) + q * (L + N)


def gram_cost(name: str, D: int, L: int, N: int, itemsize: int = 8) -> Cost:
    p, g, q = products(name, D, L, N)
    algebra = algebras.get(name)
    solution = 0.0
    for block in decompose(algebra):
        K, R = block.size * L, block.copies * N
        solution += block.parts**2 * (K**3 / 3 + 2 * K**2 * R)
    state = itemsize * (sum(len(block.forms) for block in gram_forms(algebra)) * L**2 + algebra.dim * L * N)
    return Cost(2.0 * p * D * L + g * L**2 + 2 * q * L * N, touched(name, D, L, N), solution, state)


def qr_cost(name: str, D: int, L: int, N: int, itemsize: int = 8) -> Cost:
    p, _, _ = products(name, D, L, N)
    numbers = touched(name, D, L, N)
    row, solution, state = 2.0 * p * D * L, 0.0, 0.0
    for block in decompose(algebras.get(name)):
        K, R = block.size * L, block.copies * N
        row += block.size * block.parts**2 * (2 * K**2 + 4 * K * R)
        solution += block.parts**2 * (8 * K**3 + 2 * K**2 * R)
        state += itemsize * block.parts * (K**2 + K * R)
    return Cost(row, numbers, solution, state)


def yardsticks(D: int, L: int) -> dict[str, Callable[[], object]]:
    """Jobs that measure the machine: 20 products as in the hidden layer, and 20 times tanh of its inputs."""
    rng = np.random.default_rng(0)
    A, B = rng.standard_normal((1000, D)), rng.standard_normal((D, L))
    product, image = np.empty((1000, L)), np.empty_like(A)
    return {
        "product": lambda: [np.matmul(A, B, out=product) for _ in range(20)],
        "tanh": lambda: [np.tanh(A, out=image) for _ in range(20)],
    }


def cost_model(repeats: int) -> dict[str, float]:
    found: dict[str, float] = {}
    with threadpool_limits(1):
        print(f"{'':44}{'model, s':>10}{'here, s':>10}{'here / model':>14}")
        for D, L, N in SIZES:
            rows = int(np.clip(1e11 / gram_cost("quaternions", D, L, N).row, 2000, 20_000))
            X = np.random.default_rng(0).standard_normal((rows, D, 4))
            Y = np.random.default_rng(1).standard_normal((rows, N, 4))
            scale = 0.5 / (4 * D) ** 0.5
            jobs = yardsticks(D, L)
            for name, solver in [*((name, "gram") for name in NAMES), *((name, "qr") for name in NAMES if L <= 200)]:
                d = algebras.get(name).dim
                model = ELMRegressor(name, L, bias=False, ridge=1.0, solver=solver, weight_scale=scale)
                rows_of = np.ascontiguousarray(X[..., :d]), np.ascontiguousarray(Y[..., :d])
                jobs[f"{name} {solver}"] = partial(model.fit, *rows_of)
            times = best_times(jobs, repeats, time.process_time)
            speed, touch = 20 * 2000 * D * L / times.pop("product"), times.pop("tanh") / (20 * 1000 * D)
            print(f"one thread: {speed / 1e9:.1f} Gflop/s in matrix products, {touch * 1e9:.1f} ns for a value")
            for label, seconds in times.items():
                name, solver = label.split()
                price = (gram_cost if solver == "gram" else qr_cost)(name, D, L, N)
                expected = price.seconds(rows, speed, touch)
                title = f"{label}, M={rows:,} D={D} L={L} N={N}"
                print(f"{title:44}{expected:10.2f}{seconds:10.2f}{seconds / expected:14.2f}")
                found[title] = seconds / expected
    billion(speed, touch)
    return found


def billion(speed: float, touch: float, rows: float = 1e9, workers: int = 100, bandwidth: float = 1.25e9) -> None:
    """Apply the model to the paper's auto-encoder on a billion patches, with partitions of 100,000 rows."""
    print(f"\n{rows:,.0f} rows on {workers} workers of one thread, {speed / 1e9:.0f} Gflop/s and 10 Gbit/s each")
    for name in NAMES:
        d = algebras.get(name).dim
        D, L = (PIXELS, NEURONS) if d > 1 else (3 * PIXELS, 600)
        price, partitions = gram_cost(name, D, L, D), rows / 1e5
        train = price._replace(solution=0.0).seconds(rows / workers, speed, touch)
        # Every accumulator is sent once, and each merged one again. In a tree of four that makes 4/3 of them.
        moved = 4 / 3 * partitions * price.state
        print(
            f"{name:12} training {train / 3600:6.1f} h, merging {moved / workers / bandwidth:5.1f} s "
            f"({moved / 1e9:,.0f} GB), solution {price.solution / speed:5.1f} s, accumulator {price.state / 1e6:.0f} MB"
        )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--rows", type=int, default=1_000_000, help="patches in the file")
    parser.add_argument("--algebras", nargs="+", default=["R[-1,+1]", "quaternions"])
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--json", type=Path)
    for hidden in ("--memory-of", "--in-memory-of", "--file"):
        parser.add_argument(hidden, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.memory_of:
        measure_memory(arguments.memory_of, Path(arguments.file), arguments.rows)
    elif arguments.in_memory_of:
        measure_in_memory(arguments.in_memory_of, Path(arguments.file), arguments.rows, arguments.repeats)
    else:
        found = {}
        if "memory" in arguments.parts:
            found |= larger_than_memory(arguments.rows, arguments.algebras, arguments.repeats)
        if "cluster" in arguments.parts:
            found |= cluster(arguments.repeats)
        if "model" in arguments.parts:
            found |= cost_model(arguments.repeats)
        if arguments.json:
            arguments.json.write_text(json.dumps(found, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
