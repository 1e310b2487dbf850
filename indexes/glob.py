"""Shell patterns in the form that SQLite's GLOB reads, with the meaning of Python's `fnmatch`."""

_NOTHING = "[^\x01-\U0010ffff]"


def to_sqlite(pattern: str) -> str:
    """Return the GLOB pattern that matches what `fnmatch.fnmatchcase` matches.

    GLOB knows `*` and `?` in the same way; a class is negated by `^` in place of `!`, and a `[` that opens no
    class is no ordinary character to it.
    """
    result = []
    position = 0
    while position < len(pattern):
        end = _class_end(pattern, position) if pattern[position] == "[" else -1
        if end > 0:
            result.append(_class(pattern[position + 1 : end]))
            position = end + 1
        else:
            result.append("[[]" if pattern[position] == "[" else pattern[position])
            position += 1
    return "".join(result)


def _class_end(pattern: str, start: int) -> int:
    """Return where the class that opens at `start` closes, or -1; a `]` that comes first is one of its members."""
    first = start + 1
    if pattern[first : first + 1] == "!":
        first += 1
    return pattern.find("]", first + 1)


def _class(body: str) -> str:
    negated = body.startswith("!")
    ranges = _ranges(body[1:] if negated else body)
    # "]" is ordinary only in the first place, "-" only in the first or last, "^" in any but the first.
    singles = {low for low, high in ranges if low == high}
    members = "]" * ("]" in singles)
    members += "".join(f"{low}-{high}" for low, high in ranges if low < high)
    members += "".join(sorted(singles - set("]^-")))
    if not (members or singles):  # only empty ranges
        return "?" if negated else _NOTHING
    if singles == {"^"} and not members and not negated:
        return "^"
    if not members and not negated:
        return "[-^]" if "^" in singles else "-"
    return f"[{'^' * negated}{members}{'^' * ('^' in singles)}{'-' * ('-' in singles)}]"


def _ranges(body: str) -> list[tuple[str, str]]:
    """Return the ranges of a class, single characters as ranges of one; an empty range is left out."""
    ranges = []
    position = 0
    while position < len(body):
        low = body[position]
        if body[position + 1 : position + 2] == "-" and position + 2 < len(body):
            high = body[position + 2]
            position += 3
            if high < low:
                continue
        else:
            high = low
            position += 1
        ranges.append((low, high))
    return ranges
