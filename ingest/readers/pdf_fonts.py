r"""Fonts of a PDF that do not say which letters their glyphs are, mended from the glyphs' names.

A font's ToUnicode map may send ligatures to NUL or to the private use area, or be missing while the names are of a
form that PDF engines do not take apart (``f_f_i``, ``one.taboldstyle``). The names then tell the letters.
"""

import re
from collections.abc import Iterable, Iterator
from typing import Any

from pypdf.generic import DictionaryObject, NameObject, StreamObject

_NAMES = {
    "space": " ", "exclam": "!", "quotedbl": '"', "ampersand": "&", "quoteright": "\u2019", "quotesingle": "'",
    "parenleft": "(", "parenright": ")", "plus": "+", "comma": ",", "hyphen": "-", "period": ".", "slash": "/",
    "zero": "0", "one": "1", "two": "2", "three": "3", "four": "4", "five": "5", "six": "6", "seven": "7",
    "eight": "8", "nine": "9", "colon": ":", "semicolon": ";", "question": "?", "dollar": "$", "percent": "%",
    "bracketleft": "[", "bracketright": "]", "endash": "\u2013", "emdash": "\u2014", "quoteleft": "\u2018",
    "quotedblleft": "\u201c", "quotedblright": "\u201d", "germandbls": "\u00df", "ae": "\u00e6", "oe": "\u0153",
    "dotlessi": "\u0131", "longs": "s", "ff": "ff", "fi": "fi", "fl": "fl", "ffi": "ffi", "ffl": "ffl",
}  # fmt: skip
# Where TeX's two text encodings have their ligatures: OT1 from 11, T1 from 27.
_TEX_LIGATURES = {
    start + at: letters for start in (11, 27) for at, letters in enumerate(("ff", "fi", "fl", "ffi", "ffl"))
}
_TEX_BITMAP_NAME = re.compile(r"/a(\d+)")
_LOWER_CASE = range(ord("a"), ord("z") + 1)
_LETTERS_OF_A_TEXT_FONT = 8

_NOWHERE = rb"(?:0000|[dD][89a-fA-F][0-9a-fA-F]{2}|[eE][0-9a-fA-F]{3}|[fF][0-8][0-9a-fA-F]{2})"
_ENTRY_TO_NOWHERE = re.compile(rb"<([0-9a-fA-F]{2})>(\s*<\1>)?\s*<" + _NOWHERE + rb">")
_UNKNOWN_TO_ENGINES = re.compile(r"[._]|a\d")
_END = b"endcmap"
_MAP = (
    b"/CIDInit /ProcSet findresource begin 12 dict begin begincmap /CMapName /Names def /CMapType 2 def\n"
    b"1 begincodespacerange <00> <ff> endcodespacerange\n"
    b"%sendcmap CMapName currentdict /CMap defineresource pop end end"
)
_SECTION = 100


def mend(font: DictionaryObject) -> bool:
    """Give a font of one-byte codes a ToUnicode map that its glyph names call for; tell whether that changed it."""
    names = dict(_glyph_names(font))
    letters = {code: text for code, name in names.items() if (text := letters_of(name)) is not None}
    if font.get("/Subtype") == "/Type3":
        letters |= _tex_ligatures(names)
    if not letters:
        return False
    old = font.get("/ToUnicode")
    data = old.get_object().get_data() if old is not None else b""
    mended, dropped = _ENTRY_TO_NOWHERE.subn(lambda match: _entry(match, letters), data)
    wanted = {code: text for code, text in letters.items() if _UNKNOWN_TO_ENGINES.search(names[code])}
    missing = {code: text for code, text in wanted.items() if b"<%02x>" % code not in mended.lower()}
    if not (dropped or missing):
        return False
    section = _section(missing)
    stream = StreamObject()
    stream.set_data(mended.replace(_END, section + _END, 1) if old is not None else _MAP % section)
    font[NameObject("/ToUnicode")] = stream
    return True


def letters_of(name: str) -> str | None:
    """Give the letters that a glyph's name stands for, parts joined by ``_`` and a variant after ``.`` understood."""
    parts = [_letter(part) for part in name.removeprefix("/").partition(".")[0].split("_")]
    return None if None in parts else "".join(part for part in parts if part)


def _letter(name: str) -> str | None:
    if len(name) == 1 and name.isalpha():
        return name
    if name in _NAMES:
        return _NAMES[name]
    match = re.fullmatch(r"(?:uni([0-9A-F]{4})|u([0-9A-F]{4,6}))", name)
    code = int(match.group(1) or match.group(2), 16) if match else 0
    return chr(code) if 0x20 <= code < 0x110000 and not 0xD800 <= code < 0xE000 else None


def _glyph_names(font: DictionaryObject) -> Iterator[tuple[int, str]]:
    encoding = font.get("/Encoding")
    encoding = encoding.get_object() if encoding is not None else None
    differences = encoding.get("/Differences") if isinstance(encoding, DictionaryObject) else None
    code = 0
    for item in differences.get_object() if differences is not None else ():
        if isinstance(item, str):
            if code < 256 and item != "/.notdef":
                yield code, item
            code += 1
        else:
            code = int(item)


def _tex_ligatures(names: dict[int, str]) -> dict[int, str]:
    """Give the ligatures of a bitmap font made by TeX, which names its glyphs by their codes only.

    Such a font is taken for a text font when it has enough lower-case letters; mathematical alphabets have few.
    """
    by_code = {code for code, name in names.items() if name == f"/a{code}"}
    if len(by_code) < len(names) or len(by_code.intersection(_LOWER_CASE)) < _LETTERS_OF_A_TEXT_FONT:
        return {}
    return {code: text for code, text in _TEX_LIGATURES.items() if code in by_code}


def _entry(match: "re.Match[bytes]", letters: dict[int, str]) -> bytes:
    """Write an entry that leads nowhere anew, or, where nothing is known of its glyph, as it was."""
    text = letters.get(int(match.group(1), 16))
    if text is None:
        return match.group()
    again = b" <" + match.group(1) + b">" if match.group(2) else b""
    return b"<" + match.group(1) + b">" + again + b" <" + text.encode("utf-16-be").hex().encode() + b">"


def _section(letters: dict[int, str]) -> bytes:
    lines = [b"<%02x> <%s>\n" % (code, text.encode("utf-16-be").hex().encode()) for code, text in letters.items()]
    parts = (lines[at : at + _SECTION] for at in range(0, len(lines), _SECTION))
    return b"".join(b"%d beginbfchar\n%sendbfchar\n" % (len(part), b"".join(part)) for part in parts)


def fonts_of(page: DictionaryObject) -> Iterator[DictionaryObject]:
    """Give the fonts that a page names, those of its forms too."""
    seen: set[int] = set()
    pending: list[Any] = [page.get("/Resources")]
    while pending:
        resources = pending.pop()
        resources = resources.get_object() if resources is not None else None
        if not isinstance(resources, DictionaryObject) or id(resources) in seen:
            continue
        seen.add(id(resources))
        yield from (font for font in _values(resources, "/Font") if isinstance(font, DictionaryObject))
        for form in _values(resources, "/XObject"):
            if isinstance(form, DictionaryObject) and form.get("/Subtype") == "/Form":
                pending.append(form.get("/Resources"))


def _values(resources: DictionaryObject, name: str) -> Iterator[Any]:
    entries = resources.get(name)
    entries = entries.get_object() if entries is not None else None
    for value in entries.values() if isinstance(entries, DictionaryObject) else ():
        yield value.get_object()


def mend_pages(pages: Iterable[DictionaryObject], done: set[int] | None = None) -> bool:
    """Mend all fonts that the pages name, but those in `done`; tell whether any was changed."""
    done = set() if done is None else done
    changed = False
    for page in pages:
        for font in fonts_of(page):
            if id(font) not in done:
                done.add(id(font))
                changed |= mend(font)
    return changed
