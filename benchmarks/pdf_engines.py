"""Compare the PDF engines of `ingest.readers.pdf` on real files: text kept, words, time, failures.

    python benchmarks/pdf_engines.py FOLDER... --vocabulary FOLDER [--sample 60] [--seed 0] [--seconds 120]

The vocabulary is the words of other, plain texts: a word that an engine runs together with its neighbour, splits or
garbles is not among them.
"""

import argparse
import itertools
import json
import random
import re
import statistics
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path
from typing import Any

from ingest.cleaning import clean
from ingest.parsing import parse_file
from ingest.readers import ReadError
from ingest.readers.pdf import ENGINES
from ingest.walk import walk

_WORD = re.compile(r"[^\W\d_]{2,}")
_JUNK = re.compile("[\0-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ue000-\uf8ff\ufffd\ufffe]")
_RUN_TOGETHER = 20
_VOCABULARY_FILES = 1500
_FILES_A_WORD = 3


def main() -> None:
    """Run the comparison, or (``--one``) one engine on one file."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path)
    parser.add_argument("--vocabulary", type=Path)
    parser.add_argument("--sample", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--seconds", type=float, default=120.0, help="limit for one engine on one file")
    parser.add_argument("--one", choices=ENGINES, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.one:
        print(json.dumps(_read(options.folders[0], options.one)))
        return
    files = _sample(options.folders, options.sample, options.seed)
    known = _vocabulary(options.vocabulary, options.seed) if options.vocabulary else set()
    results = [{name: _timed(path, name, options.seconds) for name in ENGINES} for path in files]
    _report(files, results, known)


def _sample(folders: list[Path], count: int, seed: int) -> list[Path]:
    """Choose files spread evenly over the sizes: one at random from each of `count` size classes."""
    files = sorted(walk(folders, include=["*.pdf"]), key=lambda path: (path.stat().st_size, path))
    count = min(count, len(files))
    bounds = [len(files) * number // count for number in range(count + 1)]
    generator = random.Random(seed)
    return [generator.choice(files[low:high]) for low, high in itertools.pairwise(bounds)]


def _vocabulary(folder: Path, seed: int) -> set[str]:
    files = list(walk([folder], include=["*.txt", "*.txt.gz"]))
    files = random.Random(seed).sample(files, min(len(files), _VOCABULARY_FILES))
    counts: Counter[str] = Counter()
    for path in files:
        parsed = parse_file(path)
        counts.update(set(_words("\n".join(parsed.file.pages))) if parsed.file else ())
    return {word for word, count in counts.items() if count >= _FILES_A_WORD}


def _words(text: str) -> list[str]:
    return _WORD.findall(text.lower())


def _read(path: Path, engine: str) -> dict[str, Any]:
    started = time.perf_counter()
    texts, lost = [], 0
    try:
        document = ENGINES[engine](path)
    except ReadError as error:
        return {"failed": error.reason}
    junk = 0
    for index in range(document.page_count):
        try:
            raw = document.page(index)
        except ReadError:
            lost += 1
            continue
        junk += len(_JUNK.findall(raw))
        texts.append(clean(raw, join_hyphenated=True).text)
    seconds = time.perf_counter() - started
    document.close()
    return {"pages": document.page_count, "lost": lost, "junk": junk, "seconds": seconds, "text": "\n".join(texts)}


def _timed(path: Path, engine: str, seconds: float) -> dict[str, Any]:
    command = [sys.executable, __file__, str(path), "--one", engine]
    try:
        done = subprocess.run(command, capture_output=True, timeout=seconds, check=True, text=True)
    except subprocess.TimeoutExpired:
        return {"failed": f"over {seconds:g} s"}
    except subprocess.CalledProcessError as error:
        return {"failed": f"exit code {error.returncode}"}
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def _report(files: list[Path], results: list[dict[str, dict[str, Any]]], known: set[str]) -> None:
    both = [result for result in results if not any("failed" in one for one in result.values())]
    print(f"{len(files)} files, {len(both)} read by every engine; vocabulary of {len(known)} words\n")
    print("| | " + " | ".join(ENGINES) + " |\n|---|" + "---:|" * len(ENGINES))
    rows = {name: _row([result[name] for result in both], known) for name in ENGINES}
    for measure in next(iter(rows.values())):
        print(f"| {measure} | " + " | ".join(rows[name][measure] for name in ENGINES) + " |")
    failures = {name: sum("failed" in result[name] for result in results) for name in ENGINES}
    print("| files that failed | " + " | ".join(str(failures[name]) for name in ENGINES) + " |")
    shared = [_agreement(*(result[name]["text"] for name in ENGINES)) for result in both]
    print(f"\nWords in common, of all words, median over the files: {statistics.median(shared):.3f}\n")
    for path, result in zip(files, results, strict=True):
        for name, one in result.items():
            if "failed" in one:
                print(f"{path.name}: {name}: {one['failed']}")
    ranked = sorted(zip(shared, (path for path, r in zip(files, results, strict=True) if r in both), strict=True))
    for share, path in ranked[:8]:
        print(f"least in common: {path.name} {share:.3f}")


def _row(results: list[dict[str, Any]], known: set[str]) -> dict[str, str]:
    texts = [result["text"] for result in results]
    words = [word for text in texts for word in _words(text)]
    right = sum(word in known for word in words)
    long = sum(len(word) >= _RUN_TOGETHER for word in words)
    seconds = sum(result["seconds"] for result in results)
    pages = sum(result["pages"] for result in results)
    return {
        "pages": f"{pages:,}",
        "pages lost": f"{sum(result['lost'] for result in results):,}",
        "characters but white space": f"{sum(len(''.join(text.split())) for text in texts):,}",
        "words": f"{len(words):,}",
        "words in the vocabulary": f"{right:,}",
        "their share": f"{right / max(len(words), 1):.2%}",
        f"words of {_RUN_TOGETHER} letters or more": f"{long:,}",
        "junk characters": f"{sum(result['junk'] for result in results):,}",
        "seconds": f"{seconds:.1f}",
        "ms a page": f"{1000 * seconds / max(pages, 1):.1f}",
    }


def _agreement(first: str, second: str) -> float:
    one, other = Counter(_words(first)), Counter(_words(second))
    return (one & other).total() / max((one | other).total(), 1)


if __name__ == "__main__":
    main()
