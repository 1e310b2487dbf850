"""Build the training text from unpacked Debian packages.

    python scripts/build_training_text.py CORPORA... --out FOLDER

CORPORA are unpacked packages (what ``dpkg -x PACKAGE.deb PACKAGE`` leaves) or folders with one subfolder a package;
see ``docs/training.md`` for the list that the shipped adapters were trained on. What is held out
(``training/held_out.txt``) is left out and named, and of the RFCs only the training split is taken. The text stays on
this machine.
"""

from __future__ import annotations

import argparse
import hashlib
import re
import sys
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path

from lmk_rag.encoding.base_model import base_model
from lmk_rag.evaluation.sources.markup import Manual, parse_html, parse_man, parse_pdf, read_bytes
from lmk_rag.evaluation.sources.rfc import Section, read_rfcs
from lmk_rag.evaluation.sources.splits import select
from lmk_rag.training.corpus import Text, write

HELD_OUT = Path(__file__).parent.parent / "training" / "held_out.txt"
FAMILIES = (
    ("doc-rfc-", "rfc"),
    ("texlive-", "texlive"),
    ("r-", "r"),
    ("manpages", "man"),
    ("libssl-", "man"),
    ("perl-", "man"),
)
LARGEST_PDF = 1_500_000
"""Bytes: larger ones are mostly pictures or specimens of type."""
_NO_PACKAGE = re.compile(r"debs$|\.")


def main() -> None:
    """Read the arguments, build, say how much there is of what."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("corpora", nargs="+", type=Path)
    parser.add_argument("--out", required=True, type=Path)
    parser.add_argument("--pdfs", type=int, default=250, help="PDFs of each package at most")
    parser.add_argument("--share", type=float, default=1.0, help="share of the documents to keep, 0 to 1")
    options = parser.parse_args()
    found = [package for root in options.corpora for package in packages_of(root)]
    packages = [package for package in found if not any(is_held_out(part) for part in names_of(package))]
    for package in found:
        if package not in packages:
            print(f"{package.name}: held out, not taken", file=sys.stderr)
    counted: Counter[str] = Counter()

    def counting(texts: Iterator[Text]) -> Iterator[Text]:
        for text in texts:
            if is_kept(text.id, options.share):
                counted[text.source] += 1
                yield text

    tokens = write(options.out, counting(read_all(packages, options.pdfs)), Path(base_model()) / "tokenizer.json")
    for source, count in counted.most_common():
        print(f"{source:24} {count:6} documents")
    print(f"{tokens} tokens")


def packages_of(root: Path) -> list[Path]:
    """The folder itself where it is an unpacked package, else the package folders in it."""
    if (root / "usr").is_dir():
        return [root.resolve()]
    return [folder for folder in sorted(root.iterdir()) if folder.is_dir() and not _NO_PACKAGE.match(folder.name)]


def names_of(package: Path) -> tuple[str, ...]:
    """The names a package folder is known by: its own, and inside an unpacked package those from that one on."""
    parts = package.resolve().parts
    return parts[max(parts.index("usr") - 1, 0) :] if "usr" in parts else parts[-1:]


@cache
def is_held_out(name: str) -> bool:
    """Whether a package or folder of that name may never be trained on."""
    lines = HELD_OUT.read_text(encoding="utf-8").splitlines()
    return any(fnmatchcase(name.lower(), line) for line in lines if line and not line.startswith("#"))


def read_all(packages: list[Path], pdfs: int) -> Iterator[Text]:
    """The RFCs of the training split, then every English manual of the other packages, each text once."""
    rfcs = list(read_rfcs([folder for folder in packages if folder.name.startswith("doc-rfc-")]))
    for rfc in select(rfcs, "train"):
        yield Text(id=f"rfc{rfc.number}", source="rfc", title=rfc.title, abstract=rfc.abstract, sections=rfc.sections)
    files = [
        (path, package.name)
        for package in packages
        if not package.name.startswith("doc-rfc-")
        for path in manual_files(package, pdfs)
    ]
    seen: set[str] = set()
    with ProcessPoolExecutor(2) as pool:
        for (path, package), manual in zip(
            files, pool.map(read_manual, [p for p, _ in files], chunksize=16), strict=True
        ):
            if manual is None or not is_english(manual.text):
                continue
            digest = hashlib.sha256(manual.text.encode()).hexdigest()
            if digest not in seen:
                seen.add(digest)
                yield Text(
                    id=f"{package}/{path.name}",
                    source=family(package),
                    title=manual.title,
                    abstract="",
                    sections=manual.sections,
                )


def manual_files(package: Path, pdfs: int) -> list[Path]:
    """The HTML pages, man pages and PDFs of one package: no links, no translations, no large PDFs, nothing held out."""
    html, man, pdf = list[Path](), list[Path](), list[Path]()
    for path in sorted(package.rglob("*")):
        if path.is_symlink() or not path.is_file() or is_translation(path):
            continue
        if any(is_held_out(folder) for folder in path.relative_to(package).parts[:-1]):
            continue
        name = path.name.removesuffix(".gz")
        if name.endswith((".html", ".html.en", ".htm")):
            html.append(path)
        elif re.search(r"/man\d/[^/]+\.\d\w*$", str(path).removesuffix(".gz")):
            man.append(path)
        elif name.endswith(".pdf") and path.stat().st_size <= LARGEST_PDF:
            pdf.append(path)
    pdf.sort(key=lambda path: hashlib.sha256(path.name.encode()).digest())
    return html + man + pdf[:pdfs]


def is_kept(key: str, share: float) -> bool:
    """Whether a document is in a share of the text; a larger share holds all of a smaller one."""
    return int.from_bytes(hashlib.sha256(key.encode()).digest()[:4]) < share * 2**32


def is_translation(path: Path) -> bool:
    """Whether the path names a language other than English."""
    marks = re.findall(r"(?:^|[/._-])([a-z]{2})(?:[_-][A-Za-z]{2})?(?=[/.]|$)", str(path).split("/usr/")[-1])
    return any(mark in _LANGUAGES for mark in marks)


def is_english(text: str) -> bool:
    """Whether the text is long enough to tell and one word in eighty or more is "the"."""
    words = re.findall(r"\w+", text.lower())
    return len(words) >= 60 and words.count("the") * 80 >= len(words)


def family(package: str) -> str:
    """The name a package's text is counted and drawn under."""
    return next((name for prefix, name in FAMILIES if package.startswith(prefix)), package)


def read_manual(path: Path) -> Manual | None:
    """Parse a file by its kind; the heading that is the title itself is left out of the text."""
    name = path.name.removesuffix(".gz")
    if name.endswith(".pdf"):
        manual = parse_pdf(path)
    elif ".htm" in name:
        manual = parse_html(read_bytes(path))
    else:
        manual = parse_man(path)
    if manual is None:
        return None
    return replace(
        manual,
        sections=tuple(
            Section(heading="" if part.heading == manual.title else part.heading, text=part.text)
            for part in manual.sections
        ),
    )


_LANGUAGES = frozenset(
    (
        "ar", "bg", "ca", "cs", "da", "de", "el", "eo", "es", "eu", "fa", "fi", "fr",
        "gl", "he", "hr", "hu", "id", "it", "ja", "ko", "lt", "nb", "nl", "nn", "no",
        "pl", "pt", "ro", "ru", "sk", "sl", "sr", "sv", "th", "tr", "uk", "vi", "zh",
    )
)  # fmt: skip

if __name__ == "__main__":
    main()
