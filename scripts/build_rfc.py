"""Build the data set ``rfc`` from the Debian packages ``doc-rfc-*``.

    python scripts/build_rfc.py FOLDER... [--out DATASETS]

FOLDERs are unpacked packages, or ``/usr/share/doc/RFC`` where they are installed. Each split becomes a BEIR
folder of its own: a title, an abstract and one section heading each lead to their document, whose text starts
at its first section (no title block, abstract, or table of contents).
"""

from __future__ import annotations

import argparse
import random
from collections import Counter
from pathlib import Path
from typing import get_args

from lmk_rag.evaluation.beir import Dataset, dataset_folder, save
from lmk_rag.evaluation.sources.rfc import Rfc, read_rfcs
from lmk_rag.evaluation.sources.splits import Split, select


def main() -> None:
    """Read the arguments, build every split."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--out", type=Path, default=dataset_folder())
    options = parser.parse_args()
    rfcs = list(read_rfcs(options.folders))
    unique = unique_headings(rfcs)
    for split in get_args(Split):
        for full in (False, True) if split == "test" else (False,):
            dataset = build(select(rfcs, split, full=full), unique)
            folder = options.out / "rfc" / (f"{split}-full" if full else split)
            save(dataset, folder, split)
            print(f"{folder}: {len(dataset.corpus)} documents, {len(dataset.queries)} queries")


def unique_headings(rfcs: list[Rfc]) -> set[str]:
    """The headings, in lower case, of two words or more that stand over one section of one RFC only."""
    counts = Counter(section.heading.lower() for rfc in rfcs for section in rfc.sections)
    return {heading for heading, count in counts.items() if count == 1 and len(heading.split()) > 1}


def build(rfcs: list[Rfc], unique: set[str]) -> Dataset:
    """The data set of these RFCs."""
    queries: dict[str, str] = {}
    kinds: dict[str, str] = {}
    qrels: dict[str, dict[str, int]] = {}
    for rfc in rfcs:
        key = f"rfc{rfc.number}"
        headings = [section.heading for section in rfc.sections if section.heading.lower() in unique]
        heading = random.Random(rfc.number).choice(headings) if headings else ""
        for kind, text in (("title", rfc.title), ("abstract", rfc.abstract), ("heading", heading)):
            if text:
                query = f"{key}-{kind}"
                queries[query], kinds[query], qrels[query] = text, kind, {key: 1}
    corpus = {f"rfc{rfc.number}": rfc.body for rfc in rfcs}
    return Dataset(name="rfc", corpus=corpus, queries=queries, qrels=qrels, kinds=kinds)


if __name__ == "__main__":
    main()
