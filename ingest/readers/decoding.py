"""Bytes to text: byte order mark, then UTF-8, then the best guess."""

import codecs

from ingest.readers import ReadError

_MARKS = (
    (codecs.BOM_UTF8, "utf-8-sig"),
    (codecs.BOM_UTF32_LE, "utf-32"),
    (codecs.BOM_UTF32_BE, "utf-32"),
    (codecs.BOM_UTF16_LE, "utf-16"),
    (codecs.BOM_UTF16_BE, "utf-16"),
)
_GUESS_FROM = 1 << 18
_CONTROLS_IN_UTF_8 = 0.1
_CONTROLS_IN_8_BIT_TEXT = 0.01
_SHORT = 64
_TEXT_CONTROLS = frozenset(b"\t\n\x0b\x0c\r\x1b\x08")


def decode(data: bytes) -> tuple[str, tuple[str, ...]]:
    """Decode text of an encoding that nobody stated.

    Returns:
        The text, with surrogates where the bytes have them, and a warning where the encoding is a guess.

    Raises:
        ReadError: The bytes are no text.
    """
    for mark, encoding in _MARKS:
        if data.startswith(mark):
            return _marked(data, encoding)
    controls = _control_share(data)
    try:
        text = data.decode("utf-8", "surrogatepass")
    except UnicodeDecodeError:
        if controls > _CONTROLS_IN_8_BIT_TEXT:
            raise ReadError("not text: the file is binary") from None
        encoding = _guess(data)
        return data.decode(encoding, "replace"), (f"not UTF-8: read as {encoding}, the best guess",)
    if controls > _CONTROLS_IN_UTF_8:
        raise ReadError("not text: the file is binary")
    return text, ()


def _marked(data: bytes, encoding: str) -> tuple[str, tuple[str, ...]]:
    try:
        return data.decode(encoding, "surrogatepass"), ()
    except UnicodeDecodeError:
        name = encoding.removesuffix("-sig").upper()
        return data.decode(encoding, "replace"), (f"damaged {name}: bytes that are none were replaced by U+FFFD",)


def _control_share(data: bytes) -> float:
    """Give the share of control characters that no text has, in the first part; strays in a short text are forgiven."""
    head = data[:_GUESS_FROM]
    controls = sum(head.count(code) for code in range(32) if code not in _TEXT_CONTROLS)
    return controls / max(len(head), _SHORT)


def _guess(data: bytes) -> str:
    from charset_normalizer import from_bytes

    best = from_bytes(data[:_GUESS_FROM]).best()
    if best is None:
        raise ReadError("not text: no known encoding fits the bytes")
    return best.encoding
