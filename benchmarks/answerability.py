"""How well "not found in these documents" is told: measures the constants of `lmk_rag/answering/threshold.py`.

    python benchmarks/answerability.py [--model FOLDER] [--documents 70]

Needs the data sets `rfc`, `python-docs` and `linux-docs` (scripts/build_rfc.py, scripts/build_manuals.py; their folder
is `LMK_RAG_DATASETS`). A collection is made of some RFCs of the split dev and some pages of Python's documentation.
Questions are made from titles (which the texts of the RFCs here lack), headings, sentences, and descriptions of
functions ("What does shlex.split do?", "How do I split the string s using shell-like syntax?"): answerable ones from
documents in the collection, unanswerable ones in the same way from documents that are not in it, other RFCs and other
pages (near) and the kernel's documentation (far), where no document of the collection holds the words that are asked
for. A logistic regression is fitted five times, each time without the questions of a fifth of the documents; the error
rates are of those. The constants are of all questions.
"""

import argparse
import hashlib
import random
import re
import warnings
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import numpy.typing as npt
from rich.console import Console
from rich.progress import track
from rich.table import Table
from sentencex import segment

from indexes.collection import Collection
from indexes.fulltext import query_terms
from indexes.records import Document
from lmk_rag.answering.extractive import look
from lmk_rag.answering.threshold import TERMS_ALONE, WITH_VECTORS, features
from lmk_rag.encoding.encoder import Encoder
from lmk_rag.evaluation.beir import Dataset, dataset_folder, find, load
from lmk_rag.indexing import Indexer
from lmk_rag.search import Searcher

_SHORTEST, _LONGEST = 3_000, 14_000  # code points of a document: minutes of work, not hours
_A_DOCUMENT = 2  # questions of each kind
_MOST = {"in": 120, "near": 80, "far": 40}  # questions
_FOLDS = 5
_ABOUT = ("What is {}?", "How does {} work?", "What do the documents say about {}?", "Explain {}.")
_DEFINES = re.compile(
    r"(?:The |An? )?(?P<subject>[A-Z][\w/-]+(?: [\w/-]+){0,4}) (?P<verb>is|are) "
    r"(?P<rest>(?:an?|the|used|defined) .{20,160})[.]"
)
_DESCRIBES = re.compile(
    r"^(?P<name>[A-Za-z_]\w*(?:\.\w+)+)\([^\n]*\)(?: *[-→][^\n]*)?\n+(?P<what>[A-Z][a-z]+ [^.\n]{15,300})[.]",
    re.MULTILINE,
)
_VAGUE = {"Deprecated", "If", "Is", "Like", "Return", "Returns", "Same", "See", "Test", "The", "This", "When"}
_HOW = 7  # words of a description that are asked for
_POINTS = re.compile(
    r"(?i)(all|another|any|as|each|for|here|however|if|in|it|its|most|note|one|other|return|since|some|such|that|there|"
    r"these|they|this|those|we|what|when|where|you)\b"
)
_SETS = {"rfc": "dev", "python-docs": "test", "linux-docs": "test"}  # never the RFCs that search is tested on
out = Console(highlight=False)


@dataclass(frozen=True, slots=True)
class Question:
    """A question, the document that it was made from, how, and whether the collection can answer it."""

    text: str
    key: str
    kind: str
    place: str
    words: str

    @property
    def answerable(self) -> bool:
        """Whether it was made from a document of the collection."""
        return self.place == "in"

    @property
    def fold(self) -> int:
        """The fifth of the documents that it belongs to."""
        return hashlib.sha256(self.key.encode()).digest()[0] % _FOLDS


def main() -> None:
    """Read the arguments, measure, print the constants and the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", default="default", help="as lmk-rag ingest takes it")
    parser.add_argument("--pooling", default=None)
    parser.add_argument("--documents", type=int, default=70, help="RFCs in the collection; half as many other pages")
    parser.add_argument("--folder", type=Path, default=None, help="where collections are kept")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    sets = {name: load(find(name, split), split) for name, split in _SETS.items()}
    counts = {"rfc": options.documents, "python-docs": options.documents // 2}
    inside = {name: draw(sets[name], count) for name, count in counts.items()}
    encoder = Encoder.load(options.model, pooling=options.pooling)
    folder = options.folder or dataset_folder() / "answerability"
    texts = {key: sets[name].corpus[key] for name, keys in inside.items() for key in keys}
    searcher = Searcher(make_collection(folder, texts, encoder))
    asked = list(questions(sets, inside, searcher.collection))
    rows = [measure(searcher, question) for question in track(asked, "questions", console=out)]
    for title, constants in (("WITH_VECTORS", WITH_VECTORS), ("TERMS_ALONE", TERMS_ALONE)):
        names = [name for name in constants if name != "intercept"]
        report(asked, np.array([[row[name] for name in names] for row in rows]), title, names)


def draw(dataset: Dataset, count: int) -> list[str]:
    """Draw documents of middling length, always the same ones."""
    keys = [key for key, text in sorted(dataset.corpus.items()) if _SHORTEST <= len(text) <= _LONGEST]
    return random.Random(count).sample(keys, min(count, len(keys)))


def make_collection(folder: Path, texts: dict[str, str], encoder: Encoder) -> Collection:
    """Index the documents, once for each encoder."""
    fingerprint = sorted((key, value) for key, value in encoder.fingerprint().items() if key != "model")
    told = repr((sorted(texts.items()), fingerprint))
    collection = Collection.open(folder / hashlib.sha256(told.encode()).hexdigest()[:16], create=True)
    with collection.write("benchmark"):
        indexer = Indexer(collection, [encoder])
        missing = [key for key in texts if collection.find(key) is None]
        for key in track(missing, "documents", console=out):
            indexer.add([Document(external_id=key, pages=(texts[key],))])
        collection.persist_caches()
    return collection


def questions(sets: dict[str, Dataset], inside: dict[str, list[str]], collection: Collection) -> Iterator[Question]:
    """Make the questions; an unanswerable one asks for words that no document of the collection holds."""
    made: dict[str, list[Question]] = {"in": [], "near": [], "far": []}
    for name, keys in inside.items():
        made["in"] += of_documents(sets[name], keys, "in")
        others = [key for key in draw(sets[name], 10**9) if key not in set(keys)]
        others = random.Random(1).sample(others, min(len(others), 2 * len(keys)))
        made["near"] += [each for each in of_documents(sets[name], others, "near") if lacks(collection, each.words)]
    far = of_documents(sets["linux-docs"], draw(sets["linux-docs"], len(inside["rfc"])), "far")
    made["far"] += [each for each in far if lacks(collection, each.words)]
    for place, each in made.items():
        yield from random.Random(2).sample(each, min(len(each), _MOST[place]))


def lacks(collection: Collection, words: str) -> bool:
    """Whether no document holds these words together."""
    return not collection.fulltext('"' + words.replace('"', " ") + '"', 1)


def of_documents(dataset: Dataset, keys: Sequence[str], place: str) -> Iterator[Question]:
    """Make questions from the titles, the headings, the defining sentences and the functions of documents."""
    asked: dict[str, list[tuple[str, str]]] = {}
    for query, grades in dataset.qrels.items():
        for key in grades:
            asked.setdefault(key, []).append((dataset.kinds.get(query, ""), dataset.queries[query]))
    for key in keys:
        chance = random.Random(key)
        for kind, words in asked.get(key, ()):
            if kind in ("title", "heading") and len(query_terms(words)) > 1:
                yield Question(chance.choice(_ABOUT).format(words), key, kind, place, words)
        for make in (of_sentences, of_functions):
            made = list(make(dataset.corpus[key], key, place))
            yield from chance.sample(made, min(len(made), 2 * _A_DOCUMENT))


def of_sentences(text: str, key: str, place: str) -> Iterator[Question]:
    """Ask for the subject of a defining sentence, or, by what is said of it, for its name."""
    for sentence in segment("en", text):
        found = _DEFINES.match(" ".join(sentence.split()))
        if found and not _POINTS.match(found["subject"]) and len(query_terms(found["subject"])) > 1:
            subject, rest = found["subject"], " ".join(found["rest"].split()[:14])
            yield Question(f"What {found['verb']} {subject}?", key, "subject", place, subject)
            yield Question(f"What {found['verb']} {rest}?", key, "predicate", place, rest)


def of_functions(text: str, key: str, place: str) -> Iterator[Question]:
    """Ask what a function does, and how to do what its description says it does."""
    for found in _DESCRIBES.finditer(text):
        words = found["what"].split()
        yield Question(f"What does {found['name']} do?", key, "function", place, found["name"])
        what = " ".join([words[0].lower(), *words[1:_HOW]]).rstrip(",;:(")
        if words[0] not in _VAGUE and len(query_terms(what)) > 2:
            yield Question(f"How do I {what}?", key, "how", place, what)


def measure(searcher: Searcher, question: Question) -> dict[str, float]:
    """Give the features of a question, as `lmk-rag ask` has them."""
    return features(look(searcher, question.text))


def fit(rows: npt.NDArray[np.float64], wanted: npt.NDArray[np.float64]) -> npt.NDArray[np.float64]:
    """Fit a logistic regression by Newton's method, both classes weighing the same; intercept first."""
    design = np.hstack([np.ones((len(rows), 1)), rows])
    balance = np.where(wanted == 1, 0.5 / wanted.mean(), 0.5 / (1 - wanted.mean()))
    weights = np.zeros(design.shape[1])
    for _ in range(50):
        chance = 1 / (1 + np.exp(-design @ weights))
        gradient = design.T @ (balance * (chance - wanted)) + 1e-2 * weights
        bend = (design * (balance * chance * (1 - chance))[:, None]).T @ design + 1e-2 * np.eye(len(weights))
        weights -= np.linalg.solve(bend, gradient)
    return weights


def report(asked: Sequence[Question], rows: npt.NDArray[np.float64], title: str, names: Iterable[str]) -> None:
    """Print the constants and both error rates, each of questions that the fit had not seen."""
    wanted = np.array([float(each.answerable) for each in asked])
    folds = np.array([each.fold for each in asked])
    found = np.zeros(len(asked), bool)
    for fold in range(_FOLDS):
        weights = fit(rows[folds != fold], wanted[folds != fold])
        found[folds == fold] = rows[folds == fold] @ weights[1:] + weights[0] > 0
    weights = fit(rows, wanted)
    constants = ", ".join(f'"{name}": {value:.2f}' for name, value in zip(("intercept", *names), weights, strict=True))
    out.print(f"\n{title} = {{{constants}}}", soft_wrap=True)
    table = Table("questions", "number", "found", "error", title=f"{title}, cross-validated by document")
    for place, answerable in (("in", True), ("near", False), ("far", False)):
        for kind in ("title", "heading", "subject", "predicate", "function", "how", "all"):
            chosen = np.array([each.place == place and kind in (each.kind, "all") for each in asked])
            if chosen.any():
                share = found[chosen].mean()
                error = 1 - share if answerable else share
                table.add_row(f"{place}, {kind}", str(chosen.sum()), f"{share:.1%}", f"{error:.1%}")
    out.print(table)


if __name__ == "__main__":
    main()
