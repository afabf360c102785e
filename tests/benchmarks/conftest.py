"""Collects the rows of the benchmarks and prints them as tables at the end of the run."""

from __future__ import annotations

import pytest

_tables: dict[str, list[dict[str, str]]] = {}


@pytest.fixture
def record_row():
    """Return record_row(table, **cells): one row of a table that is printed at the end."""

    def record(table: str, **cells: object) -> None:
        _tables.setdefault(table, []).append(
            {key: f"{value:.3g}" if isinstance(value, float) else str(value) for key, value in cells.items()}
        )

    return record


def pytest_terminal_summary(terminalreporter):
    for title, rows in _tables.items():
        columns = list(dict.fromkeys(key for row in rows for key in row))
        widths = {c: max(len(c), *(len(row.get(c, "")) for row in rows)) for c in columns}
        terminalreporter.section(title)
        terminalreporter.write_line("  ".join(c.ljust(widths[c]) for c in columns))
        for row in rows:
            terminalreporter.write_line("  ".join(row.get(c, "").ljust(widths[c]) for c in columns))
