"""The paper's experiments: repeatable, resumable, reported.

An experiment is a TOML file (settings, what the paper left unsaid, the paper's claims) and a module that turns a unit
of work into rows of results (``definition``). The runner executes the units that a store does not hold yet (``runner``,
``store``); the report reads the store alone (``report``).
"""

from hyperelm.experiments.definition import MAIN, Experiment, Row, Unit, load, names
from hyperelm.experiments.runner import run
from hyperelm.experiments.store import Store, StoreError

__all__ = ["MAIN", "Experiment", "Row", "Store", "StoreError", "Unit", "load", "names", "run"]
