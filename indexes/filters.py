"""Conditions on documents, from an expression or a mapping to SQL with bound parameters."""

import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Self

from indexes.errors import FilterError
from indexes.glob import to_sqlite
from indexes.query import clean

_EXPRESSION = re.compile(r"\s*([^=!~<>]*[^=!~<>\s])\s*(!=|>=|<=|=|~|>|<)\s*(.*?)\s*", re.DOTALL)
_TO_HOUR = r"\d{4}(?:-\d\d(?:-\d\d(?:[T ]\d\d)?)?)?"
_TO_SECOND = r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d)?"
_DATE = re.compile(rf"({_TO_HOUR})Z?|({_TO_SECOND})(?:\.\d+)?(Z|[+-]\d\d(?::?\d\d){{0,2}})?", re.ASCII)
_FIRST = "0001-01-01T00:00:00"  # what a date is filled up with
_WORD_OPERATORS = {"$eq": "=", "$ne": "!=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<=", "$in": "in"}
_OPERATORS = ("=", "!=", "~", ">", ">=", "<", "<=", "in")
_EQUALITY = ("=", "!=", "in")
_METADATA = "metadata."
_MOST_CONDITIONS = 5000
"""Of three parameters each, and twice where a filter asks in two ways: SQLite binds 32,766."""
_LISTED = "(SELECT value FROM json_each(?))"  # one parameter, however many values there are

_TEXT_FIELDS = {
    "type": "kind",
    "path": "external_id",
    "title": "title",
    "language": "language",
    "source": "source",
}
_NUMBER_FIELDS = {"id": "id", "pages": "pages", "characters": "characters"}
_DATE_FIELDS = {"added": "added", "updated": "updated"}

Sql = tuple[str, tuple[Any, ...]]


@dataclass(frozen=True, slots=True)
class Condition:
    """One field, one operator, one value (a tuple for "in")."""

    field: str
    operator: str
    value: Any


@dataclass(frozen=True, slots=True)
class Filter:
    """Conditions that all must hold, 5,000 at most; without any it lets everything through.

    Operators: `=`, `!=`, `~` (shell pattern: `*`, `?`, `[...]`, on the whole value, case counts), `>`, `>=`, `<`,
    `<=`. Fields: `type`, `path`, `title`, `language`, `source`, `id`, `pages`, `characters`, `added`, `updated`
    (ISO dates in UTC, or with an offset from it; compared to the precision that is given, a second at most: what is
    finer is cut, as it is of the times that a collection keeps), and any key of a document's metadata that does not
    begin with `$`; `metadata.KEY` reaches any key, also one that has the name of a field. A metadata list matches by
    any of its values.

    Raises:
        FilterError: there are more conditions.
    """

    conditions: tuple[Condition, ...] = ()

    def __post_init__(self) -> None:
        """Refuse more conditions than one question to SQLite can hold."""
        if len(self.conditions) > _MOST_CONDITIONS:
            raise FilterError(
                f"The filter has {len(self.conditions):,} conditions, and {_MOST_CONDITIONS:,} is the most: give the "
                "values of one field as a list, which may be of any length, for example {'id': [1, 2, 3]}"
            )

    @classmethod
    def parse(cls, expression: str) -> Self:
        """Read one condition, such as `type=pdf` or `pages>10`.

        Raises:
            FilterError: it is none, or it can have no meaning.
        """
        match = _EXPRESSION.fullmatch(expression)
        if match is None:
            raise FilterError(
                f"The filter {expression!r} is not FIELD OPERATOR VALUE: write for example 'type=pdf', 'pages>10', "
                "'path~*/reports/*' or 'added>2026-01-01'"
            )
        field, operator, value = match.groups()
        return cls((_checked(Condition(field, operator, value)),))

    @classmethod
    def all(cls, filters: "Iterable[Filter | str]") -> Self:
        """Join filters, or their expressions: all must hold.

        Raises:
            FilterError: an expression is none, or there are too many.
        """
        read = (cls.parse(item) if isinstance(item, str) else item for item in filters)
        return cls(tuple(condition for item in read for condition in item.conditions))

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> Self:
        """Read `{"type": "pdf", "pages": {">": 10}, "year": [2024, 2025], "author": None}`.

        A value alone means equal, a list any of its values, however many, None that there is no value; the operators
        may be written `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`, `$in` too. A date may be a `datetime`; one that
        knows its time zone is taken to UTC, any other is UTC.

        Raises:
            FilterError: a key, an operator or a value cannot be used.
        """
        conditions = []
        for field, value in mapping.items():
            if not isinstance(field, str):
                raise FilterError(
                    f"The filter has the key {field!r}, which is not a text: the keys are fields and keys of the "
                    "metadata, for example {'type': 'pdf', 'year': 2024}"
                )
            spelled = value if isinstance(value, Mapping) else {"in" if _is_list(value) else "=": value}
            if not spelled:
                raise FilterError(
                    f"The filter on {field!r} is an empty mapping, which asks for nothing: leave it out, or write for "
                    "example {'type': 'pdf'} or {'pages': {'>': 10}}"
                )
            for operator, operand in spelled.items():
                known = _WORD_OPERATORS.get(operator, operator)
                items = tuple(operand) if _is_list(operand) else operand
                conditions.append(_checked(Condition(field, known, items)))
        return cls(tuple(conditions))

    def __bool__(self) -> bool:
        """Whether there is any condition."""
        return bool(self.conditions)

    def to_sql(self) -> Sql:
        """Return a condition on the table `documents`, and its parameters."""
        parts = [_sql(condition) for condition in self.conditions]
        if not parts:
            return "1", ()
        return _joined([sql for sql, _ in parts]), tuple(p for _, found in parts for p in found)


def _joined(parts: Sequence[str]) -> str:
    """Join by AND in halves: a chain would be deeper than the 1,000 steps that SQLite goes into an expression."""
    if len(parts) == 1:
        return f"({parts[0]})"
    middle = len(parts) // 2
    return f"({_joined(parts[:middle])} AND {_joined(parts[middle:])})"


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple | set | frozenset)


def _checked(condition: Condition) -> Condition:
    """Refuse a condition that can have no meaning, before anything is searched."""
    field, operator, value = condition.field, condition.operator, condition.value
    if field.startswith("$"):
        raise FilterError(
            f"The filter has {field!r} where a field belongs: its conditions must all hold, a list means any of its "
            f"values, and the operators that follow a field are {' '.join((*_OPERATORS, *_WORD_OPERATORS))}, for "
            "example {'type': ['pdf', 'html'], 'pages': {'>': 10}}"
        )
    if operator not in _OPERATORS:
        raise FilterError(
            f"The filter on {field!r} has the operator {operator!r}: use one of "
            f"{' '.join(_OPERATORS)}, for example {{'pages': {{'>': 10}}}}"
        )
    items = value if operator == "in" and _is_list(value) else (value,)
    if _is_list(value) != (operator == "in") or any(_has_items(item) for item in items):
        raise FilterError(
            f"The filter on {field!r} has {_shown(value)} for {operator!r}: a list goes with 'in' and one text, number "
            "or date with the others, for example {'year': [2024, 2025]}"
        )
    if operator not in _EQUALITY and (value is None or isinstance(value, bool)):
        raise FilterError(
            f"The filter on {field!r} has {value!r} for {operator!r}: None, True and False go with "
            f"{', '.join(_EQUALITY)} alone, for example {{'author': {{'!=': None}}}}"
        )
    if operator == "~" and field in (*_NUMBER_FIELDS, *_DATE_FIELDS):
        raise FilterError(
            f"The filter '{field}~{value}' asks for a pattern where there is no text: write for "
            f"example '{field}>=...' or 'path~*.pdf'"
        )
    _sql(condition)
    return condition


def _has_items(value: object) -> bool:
    return isinstance(value, Iterable) and not isinstance(value, str)


def _shown(value: object) -> str:
    shown = repr(value)
    return shown if len(shown) <= 100 else f"{shown[:100]}…"


def _sql(condition: Condition) -> Sql:
    field, operator, value = condition.field, condition.operator, condition.value
    if operator == "in":
        return _equal(field, value)
    if operator == "=":
        return _equal(field, (value,))
    if operator == "!=":  # a document without the value is unequal to it too
        sql, parameters = _equal(field, (value,))
        return f"NOT ({sql})", parameters
    if field in _TEXT_FIELDS:
        text = _text(field, value)
        if operator == "~":
            return f"coalesce({_TEXT_FIELDS[field]}, '') GLOB ?", (to_sqlite(text),)
        return f"coalesce({_TEXT_FIELDS[field]}, '') {operator} ?", (text,)
    if field in _NUMBER_FIELDS:
        return f"{_NUMBER_FIELDS[field]} {operator} ?", (_required_number(field, operator, value),)
    if field in _DATE_FIELDS:
        date = _required_date(field, operator, value)
        return f"substr({_DATE_FIELDS[field]}, 1, {len(date)}) {operator} ?", (date,)
    return _metadata_compared(field.removeprefix(_METADATA), operator, value)


def _equal(field: str, values: Sequence[Any]) -> Sql:
    """Ask for any of some values."""
    if field in _TEXT_FIELDS:
        return f"coalesce({_TEXT_FIELDS[field]}, '') IN {_LISTED}", (_list(_text(field, each) for each in values),)
    if field in _NUMBER_FIELDS:
        numbers = _list(_required_number(field, "=", each) for each in values)
        return f"{_NUMBER_FIELDS[field]} IN {_LISTED}", (numbers,)
    if field in _DATE_FIELDS:
        dates = [_required_date(field, "=", each) for each in values]
        lengths = sorted({len(date) for date in dates})  # as many as there are precisions
        parts = [f"substr({_DATE_FIELDS[field]}, 1, {length}) IN {_LISTED}" for length in lengths]
        lists = (_list(date for date in dates if len(date) == length) for length in lengths)
        return " OR ".join(parts) or "0", tuple(lists)
    return _metadata_equal(field.removeprefix(_METADATA), values)


def _list(values: Iterable[str | float]) -> str:
    """Write values as a JSON list, without the infinities, that JSON has not and nothing is equal to."""
    return json.dumps([each for each in values if isinstance(each, str) or math.isfinite(each)], ensure_ascii=False)


def _text(field: str, value: object) -> str:
    text = "" if value is None else clean(str(value))
    return text.lower() if field in ("type", "language") else text


def _metadata_equal(key: str, values: Sequence[Any]) -> Sql:
    """Ask for any of some values in a metadata key, or in its list: numbers are numbers', texts texts' equals."""
    given = [each if isinstance(each, str | int | float) else str(each) for each in values if each is not None]
    texts = [clean(each) for each in given if isinstance(each, str)]
    numbers = [found for each in given if not isinstance(each, bool) and (found := _number(each)) is not None]
    truths = {str(each).lower() for each in given if isinstance(each, str | bool)} & {"true", "false"}
    test = (
        f"(item.type = 'text' AND item.value IN {_LISTED}) "
        f"OR (item.type IN ('integer', 'real') AND item.value IN {_LISTED}) "
        f"OR item.type IN ({', '.join(repr(truth) for truth in sorted(truths))})"
    )
    parts: list[Sql] = [(_some_item(test), (clean(key), _list(texts), _list(numbers)))] if given else []
    if len(given) < len(values):
        none = "SELECT 1 FROM json_each(documents.metadata) entry WHERE entry.key = ? AND entry.type != 'null'"
        parts.append((f"NOT EXISTS ({none})", (clean(key),)))
    return " OR ".join(sql for sql, _ in parts) or "0", tuple(p for _, found in parts for p in found)


def _metadata_compared(key: str, operator: str, value: object) -> Sql:
    """Compare a metadata key's value, or any value of its list: numbers with numbers, text with text."""
    value = value if isinstance(value, str | int | float) else str(value)
    if operator == "~":
        return _some_item("item.type = 'text' AND item.value GLOB ?"), (clean(key), to_sqlite(clean(str(value))))
    tests = []
    parameters: list[Any] = [clean(key)]
    if isinstance(value, str):
        tests.append(f"(item.type = 'text' AND item.value {operator} ?)")
        parameters.append(clean(value))
    if (number := _number(value)) is not None:
        tests.append(f"(item.type IN ('integer', 'real') AND item.value {operator} ?)")
        parameters.append(number)
    return _some_item(" OR ".join(tests) or "0"), tuple(parameters)


def _some_item(test: str) -> str:
    """Ask whether a test holds for the value of a metadata key, the first parameter, or for one in its list."""
    # The second json_each gives a list's values; for any other value it goes over the metadata again, to the key.
    return (
        "EXISTS (SELECT 1 FROM json_each(documents.metadata) entry, "
        "json_each(CASE entry.type WHEN 'array' THEN entry.value ELSE documents.metadata END) item "
        f"WHERE entry.key = ? AND (entry.type = 'array' OR item.key = entry.key) AND ({test}))"
    )


def _number(value: str | float) -> int | float | None:
    for kind in (int, float) if isinstance(value, str) else (type(value),):
        try:
            number = kind(value)
            return number if abs(number) < 2**63 else float(number)  # SQLite's integers have 64 bits
        except (ValueError, OverflowError):
            continue
    return None


def _required_number(field: str, operator: str, value: object) -> int | float:
    number = _number(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
    if number is None or math.isnan(number):
        raise FilterError(
            f"The filter '{field}{operator}{value}' compares with {value!r}, "
            f"which is not a number: write for example '{field}>10'"
        )
    return number


def _required_date(field: str, operator: str, value: object) -> str:
    """Bring a date to the form that is stored, as far as it goes: UTC, to the second."""
    match = _DATE.fullmatch(str(value))
    wrong = "which is not an ISO date"
    if match is not None:
        date, zone = (match[1] or match[2]).replace(" ", "T"), match[3] or "Z"
        try:
            return datetime.fromisoformat(date + _FIRST[len(date) :] + zone).astimezone(UTC).isoformat()[: len(date)]
        except (ValueError, OverflowError):
            wrong = "and there is no such date or time"
    raise FilterError(
        f"The filter '{field}{operator}{value}' compares with {str(value)!r}, {wrong}: write for example "
        f"'{field}>2026-01-01'"
    )
