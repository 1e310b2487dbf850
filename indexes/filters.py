"""Conditions on documents, from an expression or a mapping to SQL with bound parameters."""

import math
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Self

from indexes.errors import FilterError
from indexes.glob import to_sqlite
from indexes.query import clean

_EXPRESSION = re.compile(r"\s*([^=!~<>]*[^=!~<>\s])\s*(!=|>=|<=|=|~|>|<)\s*(.*?)\s*", re.DOTALL)
_DATE = re.compile(r"\d{4}(-\d\d(-\d\d([T ]\d\d(:\d\d(:\d\d)?)?)?)?)?Z?")
_WORD_OPERATORS = {"$eq": "=", "$ne": "!=", "$gt": ">", "$gte": ">=", "$lt": "<", "$lte": "<=", "$in": "in"}
_OPERATORS = ("=", "!=", "~", ">", ">=", "<", "<=", "in")
_METADATA = "metadata."

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
    """Conditions that all must hold; without any it lets everything through.

    Operators: `=`, `!=`, `~` (shell pattern: `*`, `?`, `[...]`, on the whole value, case counts), `>`, `>=`, `<`,
    `<=`. Fields: `type`, `path`, `title`, `language`, `source`, `id`, `pages`, `characters`, `added`, `updated`
    (ISO dates, compared to the precision that is given), and any key of a document's metadata; `metadata.KEY`
    reaches a key that has the name of a field. A metadata list matches by any of its values.
    """

    conditions: tuple[Condition, ...] = ()

    @classmethod
    def parse(cls, expression: str) -> Self:
        """Read one condition, such as `type=pdf` or `pages>10`.

        Raises:
            FilterError: it is none.
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
        """Join filters, or their expressions: all must hold."""
        read = (cls.parse(item) if isinstance(item, str) else item for item in filters)
        return cls(tuple(condition for item in read for condition in item.conditions))

    @classmethod
    def from_dict(cls, mapping: Mapping[str, Any]) -> Self:
        """Read `{"type": "pdf", "pages": {">": 10}, "year": [2024, 2025], "author": None}`.

        A value alone means equal, a list any of its values, None that there is no value; the operators may be
        written `$eq`, `$ne`, `$gt`, `$gte`, `$lt`, `$lte`, `$in` too.

        Raises:
            FilterError: an operator or a value cannot be used.
        """
        conditions = []
        for field, value in mapping.items():
            spelled = value if isinstance(value, Mapping) else {"in" if _is_list(value) else "=": value}
            for operator, operand in spelled.items():
                known = _WORD_OPERATORS.get(operator, operator)
                items = tuple(operand) if _is_list(operand) else operand
                conditions.append(_checked(Condition(str(field), known, items)))
        return cls(tuple(conditions))

    def __bool__(self) -> bool:
        """Whether there is any condition."""
        return bool(self.conditions)

    def to_sql(self) -> Sql:
        """Return a condition on the table `documents`, and its parameters."""
        parts = [_sql(condition) for condition in self.conditions]
        if not parts:
            return "1", ()
        return " AND ".join(f"({sql})" for sql, _ in parts), tuple(p for _, found in parts for p in found)


def _is_list(value: object) -> bool:
    return isinstance(value, list | tuple | set | frozenset)


def _checked(condition: Condition) -> Condition:
    """Refuse a condition that can have no meaning, before anything is searched."""
    if condition.operator not in _OPERATORS:
        raise FilterError(
            f"The filter on {condition.field!r} has the operator {condition.operator!r}: use one of "
            f"{' '.join(_OPERATORS)}, for example {{'pages': {{'>': 10}}}}"
        )
    if _is_list(condition.value) != (condition.operator == "in"):
        raise FilterError(
            f"The filter on {condition.field!r} has {condition.value!r} for {condition.operator!r}: a list goes with "
            "'in' and one value with the others, for example {'year': [2024, 2025]}"
        )
    if condition.operator == "~" and condition.field in (*_NUMBER_FIELDS, *_DATE_FIELDS):
        raise FilterError(
            f"The filter '{condition.field}~{condition.value}' asks for a pattern where there is no text: write for "
            f"example '{condition.field}>=...' or 'path~*.pdf'"
        )
    _sql(condition)
    return condition


def _sql(condition: Condition) -> Sql:
    field, operator, value = condition.field, condition.operator, condition.value
    if operator == "in":
        parts = [_sql(Condition(field, "=", item)) for item in value]
        return " OR ".join(f"({sql})" for sql, _ in parts) or "0", tuple(p for _, found in parts for p in found)
    if operator == "!=":  # a document without the value is unequal to it too
        sql, parameters = _sql(Condition(field, "=", value))
        return f"NOT ({sql})", parameters
    if field in _TEXT_FIELDS:
        return _text(_TEXT_FIELDS[field], operator, value)
    if field in _NUMBER_FIELDS:
        return f"{_NUMBER_FIELDS[field]} {operator} ?", (_required_number(condition),)
    if field in _DATE_FIELDS:
        date = _required_date(condition)
        return f"substr({_DATE_FIELDS[field]}, 1, {len(date)}) {operator} ?", (date,)
    return _metadata(field.removeprefix(_METADATA), operator, value)


def _text(column: str, operator: str, value: object) -> Sql:
    text = "" if value is None else clean(str(value))
    if operator == "~":
        return f"coalesce({column}, '') GLOB ?", (to_sqlite(text),)
    if column in ("kind", "language"):
        text = text.lower()
    return f"coalesce({column}, '') {operator} ?", (text,)


def _metadata(key: str, operator: str, value: object) -> Sql:
    """Compare a metadata key's value, or any value of its list: numbers with numbers, text with text."""
    if value is None:
        return (
            "NOT EXISTS (SELECT 1 FROM json_each(documents.metadata) entry "
            "WHERE entry.key = ? AND entry.type != 'null')",
            (clean(key),),
        )
    if not isinstance(value, str | int | float):
        value = str(value)
    tests = []
    parameters: list[Any] = []
    if isinstance(value, str) or operator == "~":
        glob = operator == "~"
        tests.append(f"item.type = 'text' AND item.value {'GLOB' if glob else operator} ?")
        parameters.append(to_sqlite(clean(str(value))) if glob else clean(str(value)))
    if not isinstance(value, bool) and operator != "~" and (number := _number(value)) is not None:
        tests.append(f"item.type IN ('integer', 'real') AND item.value {operator} ?")
        parameters.append(number)
    if operator == "=" and str(value).lower() in ("true", "false"):
        tests.append("item.type = ?")
        parameters.append(str(value).lower())
    # The second json_each gives a list's values; for any other value it goes over the metadata again, to the key.
    return (
        "EXISTS (SELECT 1 FROM json_each(documents.metadata) entry, "
        "json_each(CASE entry.type WHEN 'array' THEN entry.value ELSE documents.metadata END) item "
        "WHERE entry.key = ? AND (entry.type = 'array' OR item.key = entry.key) "
        f"AND ({' OR '.join(f'({test})' for test in tests) or '0'}))",
        (clean(key), *parameters),
    )


def _number(value: str | float) -> int | float | None:
    for kind in (int, float) if isinstance(value, str) else (type(value),):
        try:
            number = kind(value)
            return number if abs(number) < 2**63 else float(number)  # SQLite's integers have 64 bits
        except (ValueError, OverflowError):
            continue
    return None


def _required_number(condition: Condition) -> int | float:
    value = condition.value
    number = _number(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None
    if number is None or math.isnan(number):
        raise FilterError(
            f"The filter '{condition.field}{condition.operator}{condition.value}' compares with {condition.value!r}, "
            f"which is not a number: write for example '{condition.field}>10'"
        )
    return number


def _required_date(condition: Condition) -> str:
    text = str(condition.value)
    if not _DATE.fullmatch(text):
        raise FilterError(
            f"The filter '{condition.field}{condition.operator}{condition.value}' compares with {text!r}, which is "
            f"not an ISO date: write for example '{condition.field}>2026-01-01'"
        )
    return text.replace(" ", "T").removesuffix("Z")
