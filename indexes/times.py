"""The clock, in the one form that a collection stores."""

from datetime import UTC, datetime


def now() -> str:
    """Return the present moment as ISO 8601 in UTC, to the second: `2026-01-31T12:00:00Z`."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
