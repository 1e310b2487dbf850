"""Training text on disk: tokens of a document are those of its whole text, headings stand where they are said to."""

from __future__ import annotations

from pathlib import Path

from transformers import AutoTokenizer

from lmk_rag.training.corpus import Corpus, write
from tests.training.conftest import manual


def test_tokens_are_those_of_the_whole_text(tiny_bert: Path, text_folder: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_bert)
    corpus = Corpus(text_folder)

    assert [entry.id for entry in corpus.entries] == [f"m{number}" for number in range(12)]
    for number, entry in enumerate(corpus.entries):
        text = " ".join(f"{part.heading} {part.text}" for part in manual(number).sections)
        assert corpus.ids(entry).tolist() == tokenizer(text, add_special_tokens=False)["input_ids"]
        assert len(entry) == len(corpus.ids(entry))
        assert entry.title == f"Manual {number}"
        for heading, at, size in entry.headings:
            expected = tokenizer(heading, add_special_tokens=False)["input_ids"]
            assert corpus.ids(entry)[at : at + size].tolist() == expected


def test_short_documents_are_left_out(tiny_bert: Path, tmp_path: Path) -> None:
    texts = [manual(number) for number in range(3)]
    assert write(tmp_path, texts, tiny_bert / "tokenizer.json", least=1_000_000) == 0
    assert Corpus(tmp_path).entries == []


def test_the_array_holds_all_documents_one_after_the_other(text_folder: Path) -> None:
    corpus = Corpus(text_folder)
    assert corpus.entries[0].start == 0
    for one, two in zip(corpus.entries, corpus.entries[1:], strict=False):
        assert one.stop == two.start
    assert corpus.entries[-1].stop == len(corpus.tokens)
