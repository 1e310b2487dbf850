"""The generated tasks: one document holds the answer, the others do not."""

from __future__ import annotations

import pytest

from lmk_rag.evaluation import longembed


@pytest.mark.parametrize("task", ["passkey", "needle"])
@pytest.mark.parametrize("length", [256, 4096])
def test_sizes(task: str, length: int) -> None:
    dataset = longembed.generate(task, length)

    assert len(dataset.corpus) == 100
    assert len(dataset.queries) == len(set(dataset.queries.values())) == 50
    words = [len(text.split()) for text in dataset.corpus.values()]
    assert max(words) <= length * 0.75 + 1
    assert min(words) >= length * 0.75 - 25
    assert dataset == longembed.generate(task, length)


def test_only_the_judged_document_names_who_is_asked_for() -> None:
    dataset = longembed.generate("passkey", 512)

    for query, text in dataset.queries.items():
        person = text.removeprefix("What is the pass key of ").removesuffix("?")
        holders = {key for key, document in dataset.corpus.items() if f"pass key of {person} is" in document}
        assert holders == set(dataset.qrels[query])


def test_only_the_judged_document_holds_the_needle() -> None:
    dataset = longembed.generate("needle", 512)

    for query, text in dataset.queries.items():
        (answer,) = dataset.qrels[query]
        (place,) = [name for name in longembed._PLACES if name in text]
        (fact,) = [fact for fact, question in longembed._NEEDLES if question.format(a=place) == text]
        start = fact.split("{b}")[0].format(a=place)
        assert {key for key, document in dataset.corpus.items() if start in document} == {answer}


def test_the_fact_stands_at_different_depths() -> None:
    dataset = longembed.generate("passkey", 4096)
    depths = sorted(text.index("The pass key of") / len(text) for text in dataset.corpus.values())

    assert depths[10] < 0.25
    assert depths[-10] > 0.75


def test_lengths_have_names() -> None:
    assert longembed.names()[0] == "passkey-256"
    assert "needle-32768" in longembed.names()
    assert len(longembed.names()) == 16
