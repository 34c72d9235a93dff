"""The paper's experiments: repeatable, resumable, reported.

An experiment is a TOML file (settings, what the paper leaves unsaid, the paper's claims) and a module that turns units
of work into rows of results. `run` does the units that a `Store` does not hold yet. `write_report` reads the store
alone.
"""

from hyperelm.experiments._columns import read_csv
from hyperelm.experiments._definition import MAIN, Experiment, Row, Unit, load, names
from hyperelm.experiments._report import outcome, write_report
from hyperelm.experiments._runner import Watch, run
from hyperelm.experiments._sheet import Sheet, column_names, read_sheet
from hyperelm.experiments._store import Store, StoreError

__all__ = ["MAIN", "Experiment", "Row", "Sheet", "Store", "StoreError", "Unit", "Watch"]
__all__ += ["column_names", "load", "names", "outcome", "read_csv", "read_sheet", "run", "write_report"]
