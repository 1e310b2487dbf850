"""Libraries that only evaluation needs, asked for in one sentence where they are missing."""

from __future__ import annotations

import importlib
from types import ModuleType


def require(module: str) -> ModuleType:
    """Import a library of the extra ``eval``.

    Raises:
        ValueError: it is not installed; the message says how to install it.
    """
    try:
        return importlib.import_module(module)
    except ModuleNotFoundError as error:
        raise ValueError(
            f"Evaluation needs {module}, which is not installed: run pip install 'lmk-rag[eval]'."
        ) from error
