"""Build data sets of HTML pages, or of their sections, from Debian packages.

    python scripts/build_manuals.py FOLDER... [--out DATASETS]

FOLDERs are unpacked packages, or ``/usr/share/doc`` where they are installed. For the evaluation: ``python-docs`` and
``python-sections`` (``python3.11-doc``), ``linux-docs``, a fixed draw of 800 pages beside the whole
(``linux-docs-full``; ``linux-doc-6.1``). For development: ``django-docs`` and ``django-sections``
(``python-django-doc``), ``cmake-docs`` (``cmake-doc``).
"""

from __future__ import annotations

import argparse
import re
from pathlib import Path

from lmk_rag.evaluation.beir import Dataset, dataset_folder, save
from lmk_rag.evaluation.sources.manuals import pages, sections
from lmk_rag.evaluation.sources.markup import Manual, parse_html, read_bytes
from lmk_rag.evaluation.sources.rfc import Section

LINUX_PAGES = 800
_OLD_RELEASES = ("_modules/", "releases/0", "releases/1", "releases/2")
_NOT_TEXT = re.compile(
    r"(?:^|/)(?:genindex|py-modindex|search|contents|index|download|copyright|changelog|_static|translations)[^/]*(?:/|$)"
)


def main() -> None:
    """Read the arguments, build what the folders hold."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=dataset_folder())
    options = parser.parse_args()
    python = manuals(options.folders, "python3.11/html")
    linux = manuals(options.folders, "linux-doc-6.1/html")
    django = manuals(options.folders, "python-django-doc/html")
    cmake = manuals(options.folders, "cmake-data/html")
    if python:
        put(pages("python-docs", python), options.out)
        put(sections("python-sections", python, limit=1000), options.out)
    if linux:
        put(pages("linux-docs", linux, limit=LINUX_PAGES), options.out)
        put(pages("linux-docs-full", linux), options.out)
    if django:
        kept = [(key, untitled(page)) for key, page in django if not key.startswith(_OLD_RELEASES)]
        put(pages("django-docs", kept), options.out)
        put(sections("django-sections", kept, limit=400), options.out)
    if cmake:
        put(pages("cmake-docs", [(key, page) for key, page in cmake if not key.startswith("release/")]), options.out)


def manuals(folders: list[Path], root: str) -> list[tuple[str, Manual]]:
    """The HTML pages below folders whose path ends in ``root``, by their path, indexes and lists left out."""
    found: dict[str, Manual] = {}
    for folder in folders:
        for top in [path for path in folder.rglob("html") if str(path).endswith(root)]:
            for path in sorted(top.rglob("*.html*")):
                key = str(path.relative_to(top)).removesuffix(".gz").removesuffix(".html")
                if _NOT_TEXT.search(key) or path.is_symlink():
                    continue
                manual = parse_html(read_bytes(path))
                if manual is not None:
                    found[key] = manual
    return sorted(found.items())


def untitled(page: Manual) -> Manual:
    """Take the title away: on Django's pages it is that of the whole documentation, and asks for none of them."""
    first, *others = page.sections
    return Manual(title="", sections=(Section(heading="", text=first.text), *others))


def put(dataset: Dataset, out: Path) -> None:
    """Write a data set and say how large it is."""
    save(dataset, out / dataset.name, "test")
    print(f"{out / dataset.name}: {len(dataset.corpus)} documents, {len(dataset.queries)} queries")


if __name__ == "__main__":
    main()
