"""Answers that a long benchmark keeps, a JSON object a line, so that a run that was stopped goes on."""

import json
from pathlib import Path
from typing import Any


def kept_rows(file: Path) -> dict[str, dict[str, Any]]:
    """Read the rows of a file by their ``query``; a last line that a kill has cut is taken off the file.

    Args:
        file: need not exist.
    """
    if not file.exists():
        return {}
    text = file.read_text(encoding="utf-8")
    whole = text[: text.rfind("\n") + 1]
    if whole != text:
        file.write_text(whole, encoding="utf-8")
    return {row["query"]: row for row in map(json.loads, whole.splitlines())}
