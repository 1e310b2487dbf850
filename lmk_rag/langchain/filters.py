"""Filters as LangChain users write them: on the metadata that a `Document` shows."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from indexes.errors import FilterError
from indexes.filters import Filter, Sql
from lmk_rag.langchain.documents import SOURCE

_NONE = "0"  # no document


@dataclass(frozen=True, slots=True)
class _MetadataFilter(Filter):
    """Conditions on the metadata of LangChain's documents; files are asked for their fields too.

    LangChain's users keep "source", "title", "id" or "page" in their metadata, where the command line's fields of
    the same names mean something else.
    """

    files: Filter | None = None

    def to_sql(self) -> Sql:
        """Return a condition on the table `documents`, and its parameters."""
        condition, parameters = Filter.to_sql(self)
        files, more = self.files.to_sql() if self.files else (_NONE, ())
        own = "documents.source = ?"
        return f"({own} AND ({condition})) OR (NOT {own} AND ({files}))", (SOURCE, *parameters, SOURCE, *more)


def as_filter(given: Mapping[str, Any] | str | None) -> Filter | None:
    """Read a filter.

    Args:
        given: a mapping such as ``{"source": "a.txt", "year": {"$gte": 2024}}``, whose keys are those of a
            document's metadata (for files also ``type``, ``language``, ``pages`` and so on, and ``source`` is the
            path); or an expression of the command line, such as ``pages>10`` or ``metadata.year=2024``.

    Raises:
        FilterError: it cannot be read.
    """
    if not given:
        return None
    if isinstance(given, str):
        return Filter.parse(given)
    if not isinstance(given, Mapping):
        raise FilterError(f"A filter is a mapping or an expression, not a {type(given).__name__}.")
    strange = next((key for key in given if not isinstance(key, str) or key.startswith("$")), None)
    if strange is not None:
        raise FilterError(f"A filter has no {strange!r}: its keys are those of the metadata, and all must hold.")
    return _MetadataFilter(
        Filter.from_dict(
            {f"metadata.{key.removeprefix('metadata.')}": value for key, value in given.items()}
        ).conditions,
        _of_files(given),
    )


def _of_files(given: Mapping[str, Any]) -> Filter | None:
    """Read the same filter for files; None where no file can match, as with an id that is no number."""
    try:
        return Filter.from_dict({"path" if key == "source" else key: value for key, value in given.items()})
    except FilterError:
        return None
