"""How sentences for people are worded."""


def count(number: int, noun: str) -> str:
    """Write a number with its noun: 1 page, 2 pages, 1,799 pages."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"
