"""The whole path on the real base model: a sentence planted in long real texts is found, with its passage."""

import pydoc
from importlib import import_module
from pathlib import Path

import pytest

from ingest.pipeline import Options, ingest
from lmk_rag.search import Searcher

MODULES = ("argparse", "datetime", "decimal", "email.message", "logging", "tarfile", "threading", "unittest.mock")
PLANTED = (
    ("The lighthouse keeper of Norderney feeds seven grey cats at dawn.", "who feeds cats at the lighthouse"),
    ("Saffron threads must be dried within a day of the harvest.", "how soon is saffron dried after picking"),
    ("The treaty of 1742 gave the eastern vineyards to the monastery.", "which treaty handed over the vineyards"),
    ("Basalt columns cool from the outside and crack into hexagons.", "why do basalt columns have six sides"),
    ("Her violin was repaired with glue made from sturgeon bladders.", "what glue was used to mend the violin"),
    ("Penguins recognise their partner by the rhythm of its call.", "how do penguins find their mate"),
    ("The glacier retreated nine metres during the summer of 1998.", "how far did the glacier shrink in 1998"),
    ("A baker's oven of clay keeps its heat for eleven hours.", "how long does a clay oven stay hot"),
)


@pytest.fixture(scope="module")
def searcher(tmp_path_factory: pytest.TempPathFactory) -> Searcher:
    folder = tmp_path_factory.mktemp("planted")
    for module, (sentence, _) in zip(MODULES, PLANTED, strict=True):
        text = pydoc.plain(pydoc.render_doc(import_module(module)))[:20_000]
        place = text.index("\n", len(text) * 2 // 3) + 1
        (folder / f"{module}.txt").write_text(f"{text[:place]}\n{sentence}\n\n{text[place:]}", encoding="utf-8")
    report = ingest([folder], folder / "collection", Options(poolings=("mean",)))
    assert (report.indexed, report.failed) == (8, [])
    return Searcher.open(folder / "collection")


@pytest.mark.parametrize("number", range(8))
def test_a_planted_sentence_comes_first_with_the_passage_that_holds_it(searcher: Searcher, number: int) -> None:
    sentence, question = PLANTED[number]
    best = searcher.search(question, mode="hybrid").hits[0]
    assert Path(best.path).stem == MODULES[number]
    assert sentence in best.passages[0].text
    page = searcher.collection.page_texts(best.id)[best.passages[0].page - 1]
    assert page[best.passages[0].start : best.passages[0].end] == best.passages[0].text
