from __future__ import annotations

import pytest

from hyperelm import experiments


@pytest.fixture
def no_report(monkeypatch: pytest.MonkeyPatch) -> None:
    """No report is written after a run: reports have tests of their own."""
    monkeypatch.setattr(experiments, "write_report", lambda directory: directory / "report.html")
