"""Without a language model: which sentences are quoted, where they stand, and when there is no answer."""

from collections.abc import Callable

import pytest

from indexes.filters import Filter
from lmk_rag.answer import NOT_FOUND, answer, stream
from lmk_rag.answering.definitions import Definition
from lmk_rag.answering.extractive import look
from lmk_rag.answering.sentences import sentences_of
from lmk_rag.answering.terms import QuestionTerms
from lmk_rag.answering.threshold import features
from lmk_rag.search import Searcher

Make = Callable[..., Searcher]
TEXTS = [
    "The sea is deep and blue. Whales sing in the sea at night. Nobody knows why they sing.",
    "Rust eats iron. It needs water and air. Paint keeps water away from iron.",
    "Stars shine at night.",
]
pytestmark = pytest.mark.filterwarnings("ignore:default was trained for mean pooling")


@pytest.mark.parametrize(
    ("question", "quoted"),
    [
        ("When do whales sing?", "Whales sing in the sea at night."),
        ("What keeps water away from iron?", "Paint keeps water away from iron."),
        ("How deep is the sea?", "The sea is deep and blue."),
        ("Does rust eat IRON?", "Rust eats iron."),
    ],
)
def test_the_sentence_that_answers_is_quoted_first_or_alone(make_searcher: Make, question: str, quoted: str) -> None:
    found = answer(make_searcher(TEXTS), question)
    assert found.found
    assert quoted in [each.quote for each in found.citations]
    assert len(found.citations) <= 3
    assert found.model is None


def test_quotes_stand_exactly_where_they_say(make_searcher: Make) -> None:
    searcher = make_searcher([["Page one is short.", "\n\n  Whales\n   sing at night,  e.g. in\n  winter. \n\nEnd."]])
    (citation,) = answer(searcher, "When do whales sing?").citations
    page = searcher.collection.page_texts(citation.id)[citation.page - 1]
    assert citation.page == 2
    assert page[citation.start : citation.end] == citation.quote == "Whales\n   sing at night,  e.g. in\n  winter."


def test_the_text_names_its_citations_in_order(make_searcher: Make) -> None:
    found = answer(make_searcher(TEXTS), "sea at night")
    assert [each.n for each in found.citations] == list(range(1, len(found.citations) + 1))
    assert found.text == " ".join(f"{each.quote} [{each.n}]" for each in found.citations)


def test_a_sentence_that_stands_in_two_files_is_quoted_once(make_searcher: Make) -> None:
    texts = [
        "The :mod:`heapq` module provides functions for heaps. Snow falls.",
        "The heapq module provides functions for heaps! Rain falls.",
    ]
    (citation,) = answer(make_searcher(texts), "What functions does the heapq module provide?").citations
    assert "provides functions for heaps" in citation.quote


@pytest.mark.parametrize("question", ["Who won the football cup?", "What is zirconium?", "", "  ", "??", "\x00"])
def test_what_the_documents_lack_is_not_found(make_searcher: Make, question: str) -> None:
    found = answer(make_searcher(TEXTS), question)
    assert (found.text, found.found, found.citations) == (NOT_FOUND, False, ())


def test_where_nothing_answers_the_closest_places_are_told_beside_the_answer(make_searcher: Make) -> None:
    searcher = make_searcher(TEXTS * 2)
    found = answer(searcher, "Does zirconium shine at night in the sea?")
    assert (found.text, found.found, found.citations) == (NOT_FOUND, False, ())
    assert [each.n for each in found.nearest] == [1, 2]
    for each, hit in zip(found.nearest, searcher.search("Does zirconium shine at night in the sea?").hits, strict=True):
        page = searcher.collection.page_texts(each.id)[each.page - 1]
        assert page[each.start : each.end] == each.quote == hit.passages[0].text
    assert found.to_json() == {"answer": NOT_FOUND, "found": False, "citations": [], "model": None}
    assert answer(searcher, "When do whales sing?").nearest == ()
    assert (
        len(answer(make_searcher([f"A cup of {name}." for name in ["tea", "milk", "rum", "ale"]]), "gold cup").nearest)
        == 3
    )


def test_nothing_is_found_in_an_empty_collection(make_searcher: Make) -> None:
    assert not answer(make_searcher([]), "anything").found


def test_json_has_the_contract_s_keys(make_searcher: Make) -> None:
    found = answer(make_searcher(TEXTS), "What eats iron?").to_json()
    assert list(found) == ["answer", "found", "citations", "model"]
    assert list(found["citations"][0]) == ["n", "id", "path", "page", "start", "end", "quote"]


def test_a_stream_without_a_model_is_the_answer_alone(make_searcher: Make) -> None:
    searcher = make_searcher(TEXTS)
    assert list(stream(searcher, "What eats iron?")) == [answer(searcher, "What eats iron?")]


def test_quotes_come_in_reading_order_whichever_is_best(make_searcher: Make) -> None:
    words = "alpha bravo charlie delta echo foxtrot golf hotel india juliet"
    nine, ten = f"Some {words.removesuffix(' juliet')}.", f"All {words}."
    found = answer(make_searcher([f"{nine} {ten}"]), words)
    assert [each.quote for each in found.citations] == [nine, ten]


def test_a_filter_keeps_documents_out(make_searcher: Make) -> None:
    searcher = make_searcher(TEXTS)
    assert answer(searcher, "When do whales sing?", filter=Filter.parse("path=/0.txt")).found
    assert not answer(searcher, "When do whales sing?", filter=Filter.parse("path=/1.txt")).found


def test_k_below_one_is_refused(make_searcher: Make) -> None:
    with pytest.raises(ValueError, match="k must be at least 1, not 0"):
        answer(make_searcher(TEXTS), "x", k=0)


def test_sentences_have_the_encoder_s_own_cosines(make_searcher: Make) -> None:
    from lmk_rag.encoding.encoder import Encoder

    searcher = make_searcher(TEXTS, poolings=("mean",))
    found = look(searcher, "When do whales sing?", k=3)
    encoder = Encoder.load(pooling="mean")
    asked = encoder.encode_queries(["When do whales sing?"])[0].vector
    assert {each.text for each in found.sentences} == {
        sentence.strip() for text in TEXTS for sentence in text.replace(". ", ".\n").splitlines()
    }
    for each in found.sentences:
        expected = float(encoder.encode_documents([each.text])[0].vector @ asked)
        assert each.cosine == pytest.approx(expected, abs=1e-4)
    assert [each.score for each in found.sentences] == sorted((each.score for each in found.sentences), reverse=True)


def test_a_repeated_sentence_is_quoted_once(make_searcher: Make) -> None:
    found = answer(make_searcher(["Whales sing at night.", "Whales  sing at night. Other things too."]), "whales sing")
    assert [" ".join(each.quote.split()) for each in found.citations].count("Whales sing at night.") == 1


def test_terms_weigh_by_their_rarity_whatever_the_ending(make_searcher: Make) -> None:
    searcher = make_searcher(["common rare"] + ["common"] * 98 + ["other"])
    terms = QuestionTerms(searcher.collection, "common rare")
    # The definition, by hand: log(1 + documents / (1 + how many hold the term)).
    from math import log1p

    common, rare = log1p(100 / 100), log1p(100 / 2)
    assert terms.share("rare") == pytest.approx(rare / (common + rare))
    assert terms.share("Commonly seen") == pytest.approx(common / (common + rare))
    assert terms.share("rare, common") == 1
    assert terms.share("uncommon") == 0
    assert QuestionTerms(searcher.collection, "addresses used").share("One ADDRESS.") == 1


def test_words_that_ask_do_not_count_unless_alone(make_searcher: Make) -> None:
    collection = make_searcher(TEXTS).collection
    assert QuestionTerms(collection, "What does rust mean?").terms == ["rust"]
    assert QuestionTerms(collection, "What is the meaning?").terms == ["meaning"]


def test_headings_and_long_tables_are_no_sentences() -> None:
    page = "2.3 Protocol\n\n   TFTP uses port 69, see [9].  It is old.\n\n" + "cell " * 300
    found = [page[start:end] for start, end in sentences_of(page, 0, len(page))]
    assert found[:2] == ["TFTP uses port 69, see [9].", "It is old."]
    assert all(len(each) <= 500 and each == each.strip() for each in found)
    assert "".join(found[2:]).replace(" ", "") == "cell" * 300
    assert [page[a:b] for a, b in sentences_of("2.3 Protocol", 0, 12)] == ["2.3 Protocol"]


def test_a_sentence_that_a_passage_cuts_is_whole() -> None:
    page = "One is here now. Two is a longer one and it goes on. Three ends it all."
    start = page.index("longer")
    long = "x " * 200 + "the passage " + "y " * 200
    at = long.index("the")
    assert sentences_of(long, at, at + 11) == [(at, at + 11)]  # no border is near
    assert [page[a:b] for a, b in sentences_of(page, start, start + 3)] == ["Two is a longer one and it goes on."]


def test_a_table_of_contents_is_not_quoted() -> None:
    page = "1. Whales sing . . . . . . 12 2. Iron rusts . . . . . . 14\n\nWhales sing in the sea at night."
    assert [page[start:end] for start, end in sentences_of(page, 0, len(page))] == ["Whales sing in the sea at night."]


def quoted(page: str) -> list[str]:
    return [page[start:end] for start, end in sentences_of(page, 0, len(page))]


def test_a_list_of_names_is_not_quoted() -> None:
    names = "DATA\n    __all__ = ['dump', 'dumps', 'load', 'loads', 'JSONDecoder', 'JSONEncoder', 'detect_encoding']"
    assert sentences_of(names, 0, len(names)) == []
    page = f"Serialize an object to a stream.\n\n{names}"
    assert [page[a:b] for a, b in sentences_of(page, 0, len(page))] == ["Serialize an object to a stream."]


def test_a_signature_is_quoted_with_the_description_below_it() -> None:
    split = "class knife.Cutter(text, *, at=' ', most=(1, 2))\n\nCut the text into pieces."
    page = f"knife.blunt()\n\n{split} It takes a while.\n\nknife.sharp(x) -> bool\n\n" + "Far away " * 80
    assert quoted(page)[:2] == [split, "It takes a while."]
    assert not any("blunt" in each or "sharp" in each for each in quoted(page))


def test_bars_and_rules_frame_a_text() -> None:
    rule = " |  ------------------"
    page = f" |  cut(self)\n |      Cut it in two.\n |  \n{rule}\n |  Others:\n |  \n |  It is blunt."
    assert quoted(page) == ["cut(self)\n |      Cut it in two.", "It is blunt."]
    assert quoted("a | b is an or of bits.") == ["a | b is an or of bits."]


def test_an_answer_is_one_line_without_bars(make_searcher: Make) -> None:
    found = answer(make_searcher([" |  Whales\n |    sing at night."]), "When do whales sing?")
    assert found.text == "Whales sing at night. [1]"
    assert found.citations[0].quote == "Whales\n |    sing at night."


@pytest.mark.parametrize(
    ("question", "terms"),
    [
        ("What does shutil.copy2 do?", ["shutil", "copy2"]),
        ("How does sched_setaffinity work?", ["sched", "setaffinity"]),
        ("RFC2119 and 2119", ["rfc2119", "2119"]),
        ('A "blue whale" on IPv6', ["blue whale", "ipv6"]),
    ],
)
def test_an_identifier_counts_once(make_searcher: Make, question: str, terms: list[str]) -> None:
    assert QuestionTerms(make_searcher(TEXTS).collection, question).terms == terms


def test_a_title_counts_for_its_sentences(make_searcher: Make) -> None:
    found = look(make_searcher(TEXTS), "Text 1: rust eats")
    assert found.sentences[0].text == "Rust eats iron."
    assert found.sentences[0].share == pytest.approx(1)
    assert features(found)["around"] == pytest.approx(1)


def test_a_number_is_preferred_where_one_is_asked_for(make_searcher: Make) -> None:
    texts = ["Whales choose the port by night. The port of whales is 69. Whales keep the port [7]."]
    assert look(make_searcher(texts), "Which port do whales use?").sentences[0].text == "The port of whales is 69."
    assert look(make_searcher(texts), "Why do whales use a port?").sentences[0].bonus == 0


def test_a_row_of_a_table_is_no_statement(make_searcher: Make) -> None:
    found = look(make_searcher(["Whales sing at night |2.2 |x| and whales sing by day.\n\nThe whales sing."]), "whales")
    assert {each.text: each.bonus for each in found.sentences} == {
        "Whales sing at night |2.2 |x| and whales sing by day.": -0.1,
        "The whales sing.": 0.0,
    }


def test_what_says_something_is_preferred_to_code_and_headings(make_searcher: Make) -> None:
    texts = [
        "Whales sing and whales sing at night\n\n>>> whales sing and whales sing at night.\n\nThe whales sing at night."
    ]
    assert look(make_searcher(texts), "whales sing at night").sentences[0].text == "The whales sing at night."


def test_passages_by_words_are_looked_at_beside_those_of_the_search(make_searcher: Make) -> None:
    filler = "Stars shine on and on over the hills. " * 60
    text = filler.join(f"Zirconium of kind {number} is a metal. " for number in range(8))
    found = look(make_searcher([text], poolings=("mean",)), "zirconium metal")
    [hit] = found.results.hits
    assert found.passages[hit.id][: len(hit.passages)] == list(hit.passages)
    by_words = found.passages[hit.id][len(hit.passages) :]
    assert len(by_words) == 2
    assert all("Zirconium" in each.text and "metal" in each.text for each in by_words)


def test_a_name_of_a_program_is_found_as_it_is_written(make_searcher: Make) -> None:
    collection = make_searcher(["json dump", "json dumps", "sched_setaffinity"]).collection
    named = QuestionTerms(collection, "What does json.dump do?")
    assert named.share("dump(obj, fp) serializes to JSON") == pytest.approx(1)
    assert named.share("json.dumps(obj) gives a str") < 1
    assert QuestionTerms(collection, "What does dump() do?").share("dumps") == 0
    assert QuestionTerms(collection, "How are dumps made?").share("a dump") > 0
    assert QuestionTerms(collection, "What is sched_setaffinity?").share("sched_setaffinity_np sets it") == 1


@pytest.mark.parametrize(
    ("question", "defines", "says"),
    [
        ("What is a deque?", True, "Deques are a generalization of stacks and queues."),
        ("What is TFTP?", True, "The Trivial File Transfer Protocol (TFTP) is simple."),
        ("What's TFTP?", True, "TFTP (RFC 1350) stands for Trivial File Transfer Protocol."),
        ("What are certificates?", False, "A certificate binds a name, and is signed. A certificate chain is a list."),
        ("What is a deque?", False, "To the left of a deque, append."),
        ("What is a whale song?", True, "Whale song is loud."),
        ("What does json.dump do?", True, "json.dump(obj, fp, *, indent=None) Serialize obj to fp."),
        ("How does dump() work?", True, "class json.dump(obj, fp) Serialize obj to fp."),
        ("What does json.dump do?", False, "json.dumps(obj) Serialize obj to a str."),
        ("What does NAT stand for?", True, "Network Address Translation (NAT) is a method."),
    ],
)
def test_what_a_thing_is_is_told_by_the_sentence_that_says_so(question: str, defines: bool, says: str) -> None:
    definition = Definition.asked(question)
    assert definition is not None
    assert definition.begins(says) is defines


@pytest.mark.parametrize(
    "question", ["How deep is the sea?", "What is ?", "What does rust eat?", "When do whales work?"]
)
def test_not_every_question_asks_what_a_thing_is(question: str) -> None:
    assert Definition.asked(question) is None


def test_a_sentence_that_defines_comes_before_one_that_mentions(make_searcher: Make) -> None:
    searcher = make_searcher(["Whale song whale song goes on. Nobody hears it. Whale song is a way of whales to talk."])
    scores = {each.text: each.bonus for each in look(searcher, "What is a whale song?").sentences}
    assert scores["Whale song is a way of whales to talk."] > scores["Whale song whale song goes on."] == 0


def test_a_mere_reference_comes_after_a_sentence_that_says_something(make_searcher: Make) -> None:
    searcher = make_searcher(["Please see the page about copying a file. Copying a file takes the function copyfile."])
    best, other = look(searcher, "copying a file").sentences
    assert best.text.startswith("Copying")
    assert other.bonus < 0 == best.bonus


def test_a_definition_far_from_what_matches_is_quoted(make_searcher: Make) -> None:
    before, after = "Whale song, whale song at night! " * 60, "Whale song again. " * 60
    found = answer(
        make_searcher([f"{before}\n\nA whale\nsong is how whales talk.\n\n{after}"]), "What is a whale song?"
    )
    assert "A whale\nsong is how whales talk." in [each.quote for each in found.citations]


def test_a_long_signature_is_quoted_with_what_the_function_does(make_searcher: Make) -> None:
    signature = f"json.dump(obj, {', '.join(f'option_{n}=None' for n in range(15))})"
    page = ">>> json.dump(1, file)\n" * 40 + f"\n\n{signature}\n\nSerialize obj to a file. Slowly."
    (first, *_) = answer(make_searcher([page]), "What does json.dump do?").citations
    assert first.quote == f"{signature}\n\nSerialize obj to a file."
