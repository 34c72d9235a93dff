"""Attributes that are computed once, and forks while another thread computes one."""

from __future__ import annotations

import os
import pickle
import signal
import threading
import time
from contextlib import contextmanager

import pytest

from helpers import needs_fork
from hyperelm import Algebra, algebras
from hyperelm._algebra import properties
from hyperelm._backend import workspace
from hyperelm._lazy import lazy

forks = pytest.mark.filterwarnings("ignore:This process.*is multi-threaded:DeprecationWarning")


class Counted:
    def __init__(self):
        self.count = 0

    @lazy
    def value(self):
        """What it is."""
        self.count += 1
        return [self.count]


def test_a_value_is_computed_once_and_pickled():
    one = Counted()
    assert one.value is one.value
    assert one.count == 1
    assert pickle.loads(pickle.dumps(one)).count == 1
    assert Counted().value is not one.value
    assert Counted.value.__doc__ == "What it is."


def test_an_error_is_not_a_value():
    class Fails:
        tries = 0

        @lazy
        def value(self):
            self.tries += 1
            raise ValueError(self.tries)

    fails = Fails()
    for tries in ("1", "2"):
        with pytest.raises(ValueError, match=tries):
            _ = fails.value


@contextmanager
def held(hold, *, patient=True):
    """Another thread is inside `hold(wait)`, where it has called `wait`, until the end if it is patient."""
    inside, leave = threading.Event(), threading.Event()

    def wait():
        inside.set()
        if patient:
            leave.wait(30)

    thread = threading.Thread(target=hold, args=(wait,))
    thread.start()
    assert inside.wait(30)
    try:
        yield
    finally:
        leave.set()
        thread.join()


def finishes_in_a_fork(work):
    """Whether a child of this process does the work within some seconds."""
    child = os.fork()
    if child == 0:
        signal.signal(signal.SIGALRM, signal.SIG_DFL)  # which ends it
        signal.alarm(20)
        try:
            work()
        except BaseException:
            os._exit(1)
        os._exit(0)
    return os.waitpid(child, 0)[1] == 0


@needs_fork
@forks
def test_a_fork_while_a_thread_computes_a_property(monkeypatch):
    holds = properties.holds

    def slow(wait):
        def waiting(law, table):
            if threading.current_thread() is not threading.main_thread():
                wait()
            return holds(law, table)

        monkeypatch.setattr(properties, "holds", waiting)
        assert Algebra(algebras.get("quaternions").table).is_associative

    with held(slow):
        assert finishes_in_a_fork(lambda: Algebra(algebras.get("octonions").table).structure)


@needs_fork
@forks
def test_a_fork_while_a_thread_limits_blas():
    def limit(wait):
        with workspace._lock:
            wait()
            time.sleep(0.2)  # for which the fork waits

    with held(limit, patient=False):
        assert finishes_in_a_fork(lambda: workspace.one_blas().__enter__())
