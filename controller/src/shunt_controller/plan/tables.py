# SPDX-License-Identifier: Apache-2.0
"""Plain text tables."""

from collections.abc import Sequence


def table(heads: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Formats rows as columns with headings. Numbers are right-aligned, and fractions have one decimal."""
    cells = [list(heads)] + [[f"{cell:.1f}" if isinstance(cell, float) else str(cell) for cell in row] for row in rows]
    width = [max(len(line[column]) for line in cells) for column in range(len(heads))]
    is_number = [bool(rows) and all(isinstance(row[column], (int, float)) for row in rows) for column in range(len(heads))]
    lines = []
    for line in cells:
        parts = [
            cell.rjust(width[column]) if is_number[column] else cell.ljust(width[column]) for column, cell in enumerate(line)
        ]
        lines.append("  ".join(parts).rstrip())
    return "\n".join(lines)


def facts(rows: Sequence[tuple[str, object]]) -> str:
    """Formats names and values, one pair per line."""
    width = max(len(name) for name, _ in rows)
    said = [(name, f"{value:.1f}" if isinstance(value, float) else str(value)) for name, value in rows]
    return "\n".join(f"{name.ljust(width)}  {value}" for name, value in said)
