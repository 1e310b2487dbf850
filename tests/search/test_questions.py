"""A collection's own test: questions read, matched to documents, and measured, against sums by hand."""

import math
from collections.abc import Callable
from pathlib import Path

import pytest

from indexes.collection import Collection
from indexes.records import Document
from lmk_rag.evaluation.beir import Dataset, save
from lmk_rag.questions import from_beir, from_csv, measure
from lmk_rag.search import Searcher

pytestmark = pytest.mark.filterwarnings("ignore::lmk_rag.encoding.base_model.ModelWarning")
TEXTS = ["whales whales sing", "iron rusts", "bread and salt", "stars shine, whales sleep"]
Make = Callable[..., Collection]


def add(collection: Collection, *paths: str) -> None:
    with collection.write("test"), collection.transaction() as transaction:
        for path in paths:
            transaction.put(Document(external_id=path, pages=("x",)), {})


def test_paths_are_found_whole_or_by_an_end_that_one_alone_has(make_collection: Make) -> None:
    collection = make_collection(TEXTS)
    add(collection, "/a/2023/report.pdf", "/a/2024/report.pdf", "/b/notes.md")
    ids = {document.path: document.id for document in collection.documents()}
    questions = from_csv(
        "\ufeffQuery, Path\n"
        "one,/a/2023/report.pdf\n"
        "two,2024/report.pdf\n"
        "three,notes\n"
        "three,/0.txt\n"
        "four,report.pdf\n"
        '"five, with a comma",absent.pdf\n'
        ",/0.txt\n",
        collection,
    )
    by_text = {questions.queries[key]: found for key, found in questions.answers.items()}
    assert by_text == {
        "one": {ids["/a/2023/report.pdf"]},
        "two": {ids["/a/2024/report.pdf"]},
        "three": {ids["/b/notes.md"], ids["/0.txt"]},
    }
    assert questions.unknown == ("report.pdf", "absent.pdf")


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("", "is empty: a question set needs"),
        ("question,file\na,b\n", "has the columns question, file: a question set needs"),
        ("query,path\n", "has no questions: below the line 'query,path' it needs a line for each"),
        ('query,path\niron,1.txt\n"whales,0.txt\nbread,2.txt\n', r'The quote \("\) that line 3 of the file opens'),
        ('query,path\n\n"bread\nand salt",2.txt\n"whales" sing,0.txt\n', "that line 5 of the file opens is not closed"),
        (
            "query,path\nwhales,absent.txt\n",
            "No question names a document of this collection .the first is 'absent.txt'.",
        ),
    ],
)
def test_a_file_that_cannot_be_used_says_why(make_collection: Make, text: str, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        from_csv(text, make_collection(TEXTS))


@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_semicolons_separate_the_columns_where_a_spreadsheet_writes_them(make_collection: Make, end: str) -> None:
    lines = ["path; query; kind", '0.txt;"whales, or; ""fish"" in', 'the sea";new', "1.txt;iron, wet", "2.txt"]
    questions = from_csv(end.join(lines), make_collection(TEXTS))
    assert list(questions.queries.values()) == [f'whales, or; "fish" in{end}the sea', "iron, wet"]
    assert not questions.unknown


def test_a_beir_folder(make_collection: Make, tmp_path: Path) -> None:
    dataset = Dataset(
        name="own",
        corpus={"0": "whales", "3": "stars", "elsewhere": "x"},
        queries={"q1": "whales sing", "q2": "nothing"},
        qrels={"q1": {"0": 2, "3": 0}, "q2": {"elsewhere": 1}},
    )
    save(dataset, tmp_path / "own", "test")
    collection = make_collection(TEXTS)
    questions = from_beir(tmp_path / "own", collection)
    first = collection.find("/0.txt")
    assert first is not None
    assert questions.queries == {"q1": "whales sing"}
    assert questions.answers == {"q1": {first.id}}
    assert questions.unknown == ("elsewhere",)


def test_bm25_is_measured_as_by_hand(make_collection: Make) -> None:
    searcher = Searcher(make_collection(TEXTS))
    questions = from_csv("query,path\nwhales,3.txt\niron,1.txt\nqqqq,2.txt\n", searcher.collection)
    told: list[tuple[int, int]] = []
    [bm25, mean] = measure(searcher, questions, ["bm25", "mean"], lambda *done: told.append(done))
    # "whales" finds 0.txt before 3.txt; "iron" its own document; "qqqq" nothing.
    assert bm25.averages["ndcg@10"] == pytest.approx((1 / math.log2(3) + 1 + 0) / 3)
    assert bm25.averages["mrr@10"] == pytest.approx((1 / 2 + 1 + 0) / 3)
    assert bm25.averages["recall@10"] == pytest.approx(2 / 3)
    low, high = bm25.intervals["ndcg@10"]
    assert 0 <= low < bm25.averages["ndcg@10"] < high <= 1
    everything = {"mean": pytest.approx(bm25.averages["ndcg@10"]), "ci95": list(bm25.intervals["ndcg@10"])}
    assert bm25.by_length == {"512": {**everything, "queries": 3}}
    assert told == [(1, 2), (2, 2)]
    assert list(bm25.row())[:4] == ["pooling", "ndcg@10", "ndcg@10 low", "ndcg@10 high"]
    assert mean.averages["recall@100"] == 1  # every document is among the first hundred


def test_a_pooling_is_measured_by_its_vectors(make_collection: Make) -> None:
    searcher = Searcher(make_collection(TEXTS, ("mean", "cls")))
    questions = from_csv("query,path\nwhales,3.txt\n", searcher.collection)
    measured = {each.name: each.averages["mrr@10"] for each in measure(searcher, questions, ["mean", "cls"])}
    for name, value in measured.items():
        ranked = [hit.path for hit in searcher.search("whales", 4, "dense", name, evidence=False).hits]
        assert value == pytest.approx(1 / (ranked.index("/3.txt") + 1))


def test_near_copies_are_one_document(make_collection: Make) -> None:
    whales, iron = "whales whales whales sing", "iron rusts"
    texts = [whales, whales, "whales whales sleep at night", "whales and salt and bread and stars", iron, iron]
    searcher = Searcher(make_collection(texts))
    found = searcher.search("whales", 9, "bm25").hits
    assert [[each.path, *(copy.path for copy in each.folded)] for each in found] == [
        ["/0.txt", "/1.txt"], ["/2.txt"], ["/3.txt"],
    ]  # fmt: skip
    questions = from_csv(
        "query,path\nwhales,1.txt\nwhales ,2.txt\nwhale,3.txt\nrust,5.txt\nrust,4.txt\n", searcher.collection
    )
    [bm25, mean] = measure(searcher, questions, ["bm25", "mean"])
    # "whales" asks for the copy of the first and for the second: ranks 1 and 2. "whale" asks for the third of four
    # documents of which two are one. "rust" asks for two copies of one document, which is first.
    assert bm25.averages["ndcg@10"] == pytest.approx((1 + 1 / math.log2(4) + 1) / 3)
    assert bm25.averages["mrr@10"] == pytest.approx((1 + 1 / 3 + 1) / 3)
    assert bm25.averages["recall@10"] == bm25.averages["recall@100"] == mean.averages["recall@100"] == 1
