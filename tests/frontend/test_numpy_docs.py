"""docs/numpy.md is what the rows say; ``--update-golden`` writes it."""

from __future__ import annotations

from pathlib import Path

import numpy_table
import pytest

PAGE = Path(__file__).parents[2] / "docs" / "numpy.md"


@pytest.mark.long
def test_the_table_is_made_from_the_rows(request: pytest.FixtureRequest) -> None:
    text = numpy_table.text()
    if request.config.getoption("--update-golden"):
        PAGE.parent.mkdir(exist_ok=True)
        PAGE.write_text(text, encoding="utf-8")
    assert PAGE.read_text(encoding="utf-8") == text
