"""Texts that look like special tokens, are not English, or are hardly text at all."""

from pathlib import Path

import numpy as np
import pytest

from tests.encoding.conftest import Load, Pooled
from tests.encoding.folders import own
from tests.encoding.reference import Reference

ODD = {
    "special tokens": "[CLS] the [SEP] marks [PAD] and [MASK] in a [UNK] text [SEP][SEP] " * 9 + "[SEP]",
    "emoji": "a family \N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL} went out \N{GRINNING FACE} " * 12,
    "combining accents": "cafe\u0301 nai\u0308ve a\u030a\u0327 re\u0301sume\u0301 " * 15,
    "CJK": "北京 is the capital 東京都は日本の首都 한국어 문장 " * 6,
    "lone surrogates": "before \ud800 between \udfff\ud83d after " * 12,
    "NUL": "one\x00two \x00 three \x00\x00 four\x07 " * 12,
    "very long words": "x" * 5000 + " then " + "ab" * 400,
    "only spaces": " \n\t\u00a0\u3000 " * 200,
    "right to left": "שלום עולם مرحبا بالعالم \u202eabc\u202c " * 8,
    "nothing": "",
}


@pytest.mark.parametrize("kind", ODD)
@pytest.mark.parametrize("pooling", ["lmk", "mean"])
def test_odd_texts_equal_the_definition(
    base_encoder: Pooled, base_reference: Reference, kind: str, pooling: str
) -> None:
    text = ODD[kind]
    found = base_encoder(pooling, 16).encode_documents([text])[0]
    # A lone surrogate has no UTF-8 form: it is read as the replacement character, one code point for one.
    readable = "".join("\N{REPLACEMENT CHARACTER}" if "\ud800" <= c <= "\udfff" else c for c in text)
    expected = base_reference.expect(readable, pooling, granularity=16, window=512)
    np.testing.assert_allclose(found.vector, expected.vector, atol=1e-5)
    np.testing.assert_allclose(found.evidence, np.array(expected.evidence).reshape(-1, 384), atol=1e-5)
    assert [tuple(span) for span in found.spans.tolist()] == expected.spans
    assert found.tokens == expected.tokens
    assert ((found.spans >= 0) & (found.spans <= len(text))).all()
    assert (found.spans[1:, 0] >= found.spans[:-1, 0]).all()
    assert (found.spans[:, 0] <= found.spans[:, 1]).all()


def test_spaces_alone_are_an_empty_text(base_encoder: Pooled) -> None:
    empty, spaces = base_encoder("lmk").encode_documents(["", ODD["only spaces"]])
    np.testing.assert_allclose(spaces.vector, empty.vector, atol=1e-6)
    assert spaces.tokens == 0
    assert spaces.spans.tolist() == empty.spans.tolist() == [[0, 0]]


@pytest.mark.parametrize("granularity", [1, 2, 5])
def test_a_written_separator_is_content(tiny_bert: Path, load: Load, tmp_path: Path, granularity: int) -> None:
    encoder = load(own(tiny_bert, tmp_path / "own", "lmk", granularity=granularity, window=128))
    text = "a[SEP]b [SEP] c[CLS] [PAD]d[SEP]"
    # The tiny tokenizer reads each written name as one token, beside the letters a, b, c and d.
    pieces = ["a", "[SEP]", "b", "[SEP]", "c", "[CLS]", "[PAD]", "d", "[SEP]"]
    found = encoder.encode_documents([text])[0]
    assert found.tokens == len(pieces)
    wanted = ["".join(pieces[start : start + granularity]) for start in range(0, len(pieces), granularity)]
    assert [text[start:end].replace(" ", "") for start, end in found.spans] == wanted
    assert len(found.evidence) == len(wanted)


def test_spans_count_code_points_of_the_original_string(base_encoder: Pooled) -> None:
    text = (
        "\N{MAN}\u200d\N{WOMAN}\u200d\N{GIRL} river 北京 stone\x00 house cafe\u0301 \ud800 green [SEP] water "
        "\N{GRINNING FACE} light \udc00\ud83d night"
    )
    spans = base_encoder("lmk", 1).encode_documents([text])[0].spans
    read = [text[start:end] for start, end in spans]
    plain = ["river", "北", "stone", "house", "green", "[SEP]", "water", "light", "night"]
    assert [piece for piece in read if piece in plain] == plain
    assert "cafe" in read or "cafe\u0301" in read


def test_a_slice_of_an_accented_text_is_whole(base_encoder: Pooled) -> None:
    text = "river stone\u0301 house gre\u0301en water light " * 3
    spans = base_encoder("lmk", 6).encode_documents([text.strip()])[0].spans
    assert len(spans) >= 3
    joined = "".join(text[start:end] for start, end in spans)
    for letters in ("river", "house", "water", "light"):
        assert joined.count(letters) == 3


def test_odd_texts_together_are_as_each_alone(base_encoder: Pooled) -> None:
    encoder = base_encoder("lmk")
    together = encoder.encode_documents(list(ODD.values()))
    for text, found in zip(ODD.values(), together, strict=True):
        alone = encoder.encode_documents([text])[0]
        np.testing.assert_allclose(found.vector, alone.vector, atol=1e-5)
        assert found.spans.tolist() == alone.spans.tolist()
