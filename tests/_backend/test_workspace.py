"""Threads change the time, and nothing else but rounding; scratch memory is zeros to write to, of any size."""

from __future__ import annotations

import os
import threading
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_array_equal
from threadpoolctl import ThreadpoolController, threadpool_limits

from helpers import fork, needs_fork
from hyperelm import algebras
from hyperelm._backend import workspace
from hyperelm._backend.by_numpy import _by_rows
from hyperelm._backend.workspace import (
    Team,
    at_work,
    current_team,
    cuts,
    keeping_scratch,
    one_blas,
    pieces,
    scratch,
    scratch_copy,
)
from hyperelm._linalg.planes import Numbers
from hyperelm._solvers.accumulator import check_finite
from hyperelm._solvers.gram import Gram

LARGE = 1e12


# ---------------------------------------------------------------------- threads


def blas_threads():
    return [library["num_threads"] for library in ThreadpoolController().select(user_api="blas").info()]


def is_serial(crew):
    """Whether tasks run in this thread."""
    names = set()
    crew.run([lambda: names.add(threading.get_ident()) for _ in range(4)])
    return names == {threading.get_ident()}


@pytest.mark.parametrize("N", [41, 1100])
@pytest.mark.parametrize("name", ["real", "klein4", "tessarines", "quaternions", "paper-Cl(1,1)", "octonions"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_which_thread_does_it_does_not_matter(name, dtype, N):
    """Bit for bit with the same number of threads, to rounding with another."""
    algebra = algebras.get(name)
    M, L = 700, 33
    rng = np.random.default_rng(0)
    H = rng.standard_normal((M, L, algebra.dim)).astype(dtype)
    T = rng.standard_normal((M, N, algebra.dim)).astype(dtype)
    T[:300, :, 0] *= algebra.dim == 1
    weight = rng.uniform(0, 2, M)

    def summed(crew=None):
        accumulator = Gram(algebra, L, N, dtype)
        with workspace._current(crew) if crew else nullcontext():
            for rows in (slice(0, 300), slice(300, 700)):
                accumulator.update(H[rows], T[rows], weight[rows])
        known.add((accumulator.weight, accumulator.square))
        return [array for problem in accumulator.problems() for array in (problem.gram, problem.cross)]

    known = set()
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(3) as pool:
        alone, *others = [summed(Team(pool, threads)) for threads in (1, 2, 2, 4, 4)]
        assert all(np.array_equal(a, b) for a, b in zip(alone, summed()))
    assert len(known) == 1
    for one, two in zip(others[::2], others[1::2]):
        assert all(np.array_equal(a, b) for a, b in zip(one, two))
        for a, b in zip(one, alone):
            assert np.abs(a - b).max() < 8 * np.sqrt(M) * np.finfo(dtype).eps * np.abs(b).max()


@pytest.mark.parametrize("threads", [1, 2])
def test_exceptions_reach_the_caller(threads):
    def fails():
        raise ZeroDivisionError("in a task")

    with ThreadPoolExecutor(threads) as pool:
        for crew in (Team(), Team(pool, 2)):
            with pytest.raises(ZeroDivisionError, match="in a task"):
                crew.run([lambda: None, fails, lambda: None])
            done = []
            crew.run([lambda done=done: done.append(1)] * 3)
            assert len(done) == 3


def test_a_fault_is_found_by_many_threads():
    x = np.zeros((2000, 3, 2))
    x[1203, 1, 1] = np.nan
    with (
        ThreadPoolExecutor(2) as pool,
        workspace._current(Team(pool, 2)),
        pytest.raises(ValueError, match="got nan in row 1210"),
    ):
        check_finite(Numbers(x), "x", 7)


def test_blas_is_limited_inside_and_restored_after():
    with threadpool_limits(2, user_api="blas"):
        if max(blas_threads()) < 2:
            pytest.skip("BLAS has one thread here")
        before = blas_threads()
        with at_work(LARGE):
            assert set(blas_threads()) == {1}
            assert not is_serial(current_team())
        assert blas_threads() == before
        with pytest.raises(KeyError), at_work(LARGE):
            raise KeyError
        assert blas_threads() == before

        def fails():
            raise KeyError

        with pytest.raises(KeyError), at_work(LARGE):
            current_team().run([fails])
        assert blas_threads() == before
        with one_blas():
            assert (1 in blas_threads()) == bool(workspace._of_numpy_alone())
        assert blas_threads() == before
        with pytest.raises(KeyError), one_blas():
            raise KeyError
        assert blas_threads() == before


def overlapping(first, second):
    """Two functions for two threads: the first to enter its context is the first to leave it."""
    first_in, second_in, first_out = (threading.Event() for _ in range(3))

    def one():
        with first():
            first_in.set()
            assert second_in.wait(30)
        first_out.set()

    def other():
        assert first_in.wait(30)
        with second():
            second_in.set()
            assert first_out.wait(30)

    return one, other


def test_limits_that_overlap_are_restored():
    """As fits in several threads of the caller do: whoever comes first need not leave last."""
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        for makers in product([partial(at_work, LARGE), one_blas], repeat=2):
            with ThreadPoolExecutor(2) as callers:
                for fit in [callers.submit(function) for function in overlapping(*makers)]:
                    fit.result()
            assert blas_threads() == before


def test_one_blas_thread_is_a_serial_team():
    with threadpool_limits(1, user_api="blas"), at_work(LARGE):
        assert is_serial(current_team())


def test_small_work_is_a_serial_team():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with at_work(1e6):
            assert is_serial(current_team())
            assert set(blas_threads()) == {1}
        with one_blas(1e6):
            assert set(blas_threads()) == {1}
        assert blas_threads() == before


def test_memory_is_lent_again():
    crew = Team()
    first = crew.array("a", (4, 5), np.float64)
    assert first.shape == (4, 5)
    assert np.shares_memory(first, crew.array("a", (2, 3), np.float64))
    assert not np.shares_memory(first, crew.array("b", (4, 5), np.float64))
    assert not np.shares_memory(first, crew.array("a", (4, 5), np.float32))
    assert crew.array("a", (40, 5), np.float64).shape == (40, 5)
    assert crew.array("a", (0, 5), np.float64).shape == (0, 5)


def test_memory_of_a_thread_is_its_own():
    barrier = threading.Barrier(2)
    arrays = []

    with ThreadPoolExecutor(2) as pool:
        crew = Team(pool, 2)

        def task():
            barrier.wait()
            arrays.append(crew.array("own", (8,), np.float64, of_thread=True))

        crew.run([task, task])
    assert not np.shares_memory(*arrays)


def test_results_by_rows_are_in_order():
    x = np.arange(1000.0)
    with ThreadPoolExecutor(2) as pool:
        for crew in (Team(), Team(pool, 2)):
            parts = _by_rows(x, lambda part: part[0], crew, 64)
            assert parts == [float(start) for start in range(0, 1000, 64)]
    assert _by_rows(x[:0], np.sum, Team()) == []


@pytest.mark.parametrize(("length", "count"), [(10, 3), (3, 8), (0, 8), (8, 8), (1, 1)])
def test_pieces(length, count):
    slices = pieces(length, count)
    assert len(slices) == max(1, min(length, count))
    assert np.array_equal(np.concatenate([np.arange(length)[part] for part in slices]), np.arange(length))
    sizes = [part.stop - part.start for part in slices]
    assert max(sizes) - min(sizes) <= 1


@given(tasks=st.integers(0, 40), threads=st.integers(1, 16))
def test_cuts_give_all_threads_the_same_and_leave_whole_what_they_can(tasks, threads):
    counts = cuts(tasks, threads)
    whole = [count for count in counts if count == 1]
    assert len(counts) == tasks
    assert counts == sorted(counts)
    assert len(whole) >= tasks - tasks % threads
    # Pieces of one size, so many that they can be dealt out evenly, and no more than that takes.
    for count in set(counts):
        assert counts.count(count) * count % threads == 0
        assert count <= threads


def test_mapped_results_are_in_order():
    with ThreadPoolExecutor(2) as pool:
        for crew in (Team(), Team(pool, 3)):
            assert crew.map(lambda n: n * n, range(50)) == [n * n for n in range(50)]
            assert crew.map(len, []) == []
            with pytest.raises(ZeroDivisionError):
                crew.map(lambda n: 1 // n, [1, 0, 2])


@pytest.mark.parametrize("threads", [1, 2, 7, 16])
def test_every_task_is_handed_out_once(threads):
    """Also of many tasks that take no time, when many threads ask for the next one."""
    counts = [0] * 20_000

    def task(n):
        counts[n] += 1

    with ThreadPoolExecutor(max(1, threads - 1)) as pool:
        crew = Team(pool, threads)
        for _ in range(3):
            crew.run(partial(task, n) for n in range(len(counts)))
    assert set(counts) == {3}


def test_a_task_that_takes_long_holds_up_nobody():
    """The others take all other tasks in the meantime."""
    first, done = threading.Event(), []

    def long():
        assert first.wait(30)

    def short(n):
        done.append(n)
        if len(done) == 50:
            first.set()

    with ThreadPoolExecutor(1) as pool:
        Team(pool, 2).run([long, *(partial(short, n) for n in range(50))])
    assert sorted(done) == list(range(50))


def test_all_threads_are_at_work():
    """As many tasks as threads wait for each other: with one thread less they would wait for ever."""
    barrier = threading.Barrier(4)
    with ThreadPoolExecutor(3) as pool:
        Team(pool, 4).run([partial(barrier.wait, timeout=30)] * 4)


def test_what_is_made_once():
    crew, made = Team(), []

    def make():
        made.append(1)
        return made

    assert crew.once("key", make) is crew.once("key", make)
    assert made == [1]
    crew.once(("another", 1), make)
    assert made == [1, 1]
    assert Team().once("key", lambda: 5) == 5


def test_the_current_team():
    """Where no work was announced, every call has a team of its own, and nothing is kept."""
    assert current_team() is not current_team()
    assert current_team().threads == 1
    with at_work(0):
        outer = current_team()
        assert current_team() is outer
        with at_work(0):
            assert current_team() is not outer
        assert current_team() is outer
        with pytest.raises(KeyError), at_work(0):
            raise KeyError
        assert current_team() is outer
    assert current_team() is not outer


def test_threads_of_the_caller_have_teams_of_their_own():
    barrier, teams = threading.Barrier(2), []

    def fit():
        with at_work(0):
            barrier.wait(30)
            teams.append(current_team())
            barrier.wait(30)

    callers = [threading.Thread(target=fit) for _ in range(2)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()
    assert teams[0] is not teams[1]


# ---------------------------------------------------------------------- libraries of BLAS


class Library:
    """What threadpoolctl tells of a BLAS library."""

    def __init__(self, filepath):
        self.filepath, self.num_threads = filepath, 4

    def set_num_threads(self, threads):
        self.num_threads = threads


@pytest.fixture
def two_libraries(monkeypatch, tmp_path):
    """A process with two BLAS libraries, and which of them answers NumPy and SciPy."""
    libraries = [Library(str(tmp_path / name)) for name in ("one", "two")]
    answers = {}
    monkeypatch.setattr(workspace, "_blas", lambda: libraries)
    monkeypatch.setattr(workspace, "_library_of", lambda module: answers[module.partition(".")[0]])
    workspace._of_numpy_alone.cache_clear()
    yield libraries, answers
    workspace._of_numpy_alone.cache_clear()


@pytest.mark.parametrize(
    ("of_numpy", "of_scipy", "expected"),
    [(0, 1, [0]), (1, 0, [1]), (0, 0, []), (None, 1, []), (0, None, []), (None, None, [])],
)
def test_which_library_numpy_has_alone(monkeypatch, two_libraries, of_numpy, of_scipy, expected):
    """None where both share one, or where the linker does not tell."""
    libraries, answers = two_libraries
    for name, n in (("numpy", of_numpy), ("scipy", of_scipy)):
        answers[name] = None if n is None else libraries[n].filepath
    assert workspace._of_numpy_alone() == [libraries[n] for n in expected]
    monkeypatch.setattr(workspace, "processors", lambda: 8)
    with one_blas():
        assert [library.num_threads for library in libraries] == [1 if n in expected else 4 for n in range(2)]
    assert [library.num_threads for library in libraries] == [4, 4]


def test_a_library_that_threadpoolctl_does_not_know_is_left_alone(two_libraries, tmp_path):
    libraries, answers = two_libraries
    answers |= {"numpy": str(tmp_path / "three"), "scipy": libraries[0].filepath}
    assert workspace._of_numpy_alone() == []


def test_the_library_of_a_module():
    """One of those that threadpoolctl finds, or none; none for modules that call no BLAS or are not there."""
    known = {os.path.realpath(library.filepath) for library in workspace._blas()}
    for module in ("numpy.linalg._umath_linalg", "scipy.linalg._fblas"):
        assert workspace._library_of(module) in {*known, None}
    assert {os.path.realpath(library.filepath) for library in workspace._of_numpy_alone()} <= known
    for module in ("no.such.module", "json", "sys"):
        assert workspace._library_of(module) is None


# ---------------------------------------------------------------------- memory

# Empty, small, on both sides of the size from which arrays get pages of their own, and not a multiple of a page.
SHAPES = [(), (0,), (3, 0, 2), (1,), (2, 3, 4), (2**17 - 1,), (2**17,), (2**17 + 1,), (7, 191, 503), (1, 2**18)]
DTYPES = [np.float32, np.float64, np.complex64, np.complex128, "f8", np.dtype(np.intp)]


@pytest.mark.parametrize("shape", SHAPES, ids=str)
@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_zeros_that_can_be_written(shape, dtype):
    array = scratch(shape, dtype)
    assert array.shape == shape
    assert array.dtype == np.dtype(dtype)
    assert array.flags.c_contiguous
    assert array.flags.writeable
    assert not array.any()
    array[...] = 1
    assert array.sum() == array.size


@pytest.mark.parametrize("size", [10, 2**18])
def test_every_array_has_its_own_memory(size):
    first = scratch((size,), np.float64)
    first[...] = 7
    second = scratch((size,), np.float64)
    assert not np.shares_memory(first, second)
    assert not second.any()
    second[...] = 5
    assert np.all(first == 7)


@pytest.mark.parametrize("size", [10, 2**18])
def test_zeros_again_after_an_array_was_dropped(size):
    for _ in range(5):
        array = scratch((size,), np.float64)
        assert not array.any()
        array[...] = np.nan
        del array


def test_a_view_keeps_its_memory():
    view = scratch((4, 2**18), np.float64)[2, 5:9]
    view[...] = 3
    others = [scratch((4, 2**18), np.float64) for _ in range(3)]
    for other in others:
        other[...] = 9
    assert view.tolist() == [3.0] * 4


@needs_fork
def test_a_forked_process_writes_to_its_own_pages():
    array = workspace.scratch((2**18,), np.float64)
    array[...] = 0

    def write():
        array[...] = 1

    child = fork(write)
    child.join(60)
    assert child.exitcode == 0
    assert not array.any()


@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (1, 1), (5, 7), (301, 502), (1000, 1), (1, 2**18)])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.complex128])
@pytest.mark.parametrize("layout", ["C", "F", "strided", "reversed", "read-only"])
def test_copies_are_in_fortran_order(shape, dtype, layout):
    rows, columns = shape
    array = np.random.default_rng(0).standard_normal((2 * rows, columns)).astype(dtype)
    array = {"strided": array[::2], "reversed": array[:rows][::-1]}.get(layout, array[:rows])
    if layout in "CF":
        array = np.array(array, order=layout)
    array.flags.writeable = layout != "read-only"
    before = array.copy()
    copy = scratch_copy(array)
    assert copy.shape == shape
    assert copy.dtype == dtype
    assert copy.flags.f_contiguous
    assert copy.flags.writeable
    assert not np.shares_memory(copy, array)
    assert_array_equal(copy, array)
    copy[...] = 0
    assert_array_equal(array, before)


@pytest.mark.skipif(not hasattr(workspace.mmap, "MAP_PRIVATE"), reason="scratch memory is plain memory on this system")
def test_dropped_memory_serves_again():
    """While it is kept, and not while a view is left; zeros are zeros again."""

    def address(array):
        return array.__array_interface__["data"][0]

    with keeping_scratch():
        first = scratch((2**19,), np.float64)
        first[...] = 1
        view, place = first[5:9], address(first)
        del first
        other = scratch((2**19,), np.float64)
        assert address(other) != place
        assert view.tolist() == [1] * 4
        del view
        second = scratch((2**18, 2), np.float32)
        assert address(second) == place
        assert not second.any()
        assert address(scratch((2**19,), np.float64)) != place
        kept = second
        del second
        spare = workspace._spare.get()
    assert workspace._spare.get() is None
    del kept  # after the context its memory goes back to the system
    assert spare.taken(1) is None


@pytest.mark.skipif(not hasattr(workspace.mmap, "MAP_PRIVATE"), reason="scratch memory is plain memory on this system")
def test_not_all_dropped_memory_is_kept(monkeypatch):
    monkeypatch.setattr(workspace, "_SPARE", 2**23)
    with keeping_scratch():
        arrays = [scratch((2**19,), np.float64) for _ in range(4)]
        del arrays
        spare = workspace._spare.get()
        assert [spare.taken(2**22) is None for _ in range(3)] == [False, False, True]
