"""Threads change the time, and nothing else but rounding."""

from __future__ import annotations

import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from threadpoolctl import ThreadpoolController, threadpool_limits

from hyperelm import algebras
from hyperelm.solvers import Gram
from hyperelm.solvers.accumulator import check_finite
from hyperelm.solvers.sums import by_rows
from hyperelm.solvers.team import Team, cuts, one_blas, pieces, team

LARGE = 1e12


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

    def summed(crew):
        state = Gram(algebra, L, N, dtype)
        for rows in (slice(0, 300), slice(300, 700)):
            state.update(H[rows], T[rows], weight[rows], team=crew)
        known.add((state.weight, state.square))
        return [array for problem in state.problems() for array in (problem.gram, problem.cross)]

    known = set()
    with threadpool_limits(1, user_api="blas"), ThreadPoolExecutor(3) as pool:
        alone, *others = [summed(Team(pool, threads)) for threads in (1, 2, 2, 4, 4)]
        assert all(np.array_equal(a, b) for a, b in zip(alone, summed(None)))
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
    with ThreadPoolExecutor(2) as pool, pytest.raises(ValueError, match="got nan in row 1210"):
        check_finite(x, "x", 7, Team(pool, 2))


def test_blas_is_limited_inside_and_restored_after():
    with threadpool_limits(2, user_api="blas"):
        if max(blas_threads()) < 2:
            pytest.skip("BLAS has one thread here")
        before = blas_threads()
        with team(LARGE) as crew:
            assert set(blas_threads()) == {1}
            assert not is_serial(crew)
        assert blas_threads() == before
        with pytest.raises(KeyError), team(LARGE):
            raise KeyError
        assert blas_threads() == before

        def fails():
            raise KeyError

        with pytest.raises(KeyError), team(LARGE) as crew:
            crew.run([fails])
        assert blas_threads() == before
        with one_blas():
            assert 1 in blas_threads()
        assert blas_threads() == before
        with pytest.raises(KeyError), one_blas():
            raise KeyError
        assert blas_threads() == before


def test_limits_that_overlap_are_restored():
    """As fits in several threads of the caller do: whoever comes first need not leave last."""
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        for makers in product([partial(team, LARGE), one_blas], repeat=2):
            first, second = (make() for make in makers)
            first.__enter__()
            second.__enter__()
            first.__exit__(None, None, None)
            second.__exit__(None, None, None)
            assert blas_threads() == before


def test_one_blas_thread_is_a_serial_team():
    with threadpool_limits(1, user_api="blas"), team(LARGE) as crew:
        assert is_serial(crew)


def test_small_work_is_a_serial_team():
    with threadpool_limits(2, user_api="blas"):
        before = blas_threads()
        with team(1e6) as crew:
            assert is_serial(crew)
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
            parts = by_rows(x, lambda part: part[0], crew, rows=64)
            assert parts == [float(start) for start in range(0, 1000, 64)]
    assert by_rows(x[:0], np.sum, Team()) == []


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
