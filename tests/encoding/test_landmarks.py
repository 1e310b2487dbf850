"""Windows laid out by hand, and what holds for every layout."""

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from lmk_rag.encoding.landmarks import Tokens, Window, landmark_windows, plain_windows, slices_per_window

CLS, SEP = 101, 102


def tokens(count: int, first: int = 1) -> Tokens:
    """Ids 1, 2, 3, ...; token n stands for the code points [10 n, 10 n + 7)."""
    starts = 10 * np.arange(count, dtype=np.int32)
    ids = np.arange(first, first + count, dtype=np.int32)
    return Tokens(ids, np.stack([starts, starts + 7], axis=1).astype(np.int32))


def lmk(count: int, granularity: int, window: int, *, closing: bool = False, first: int = 1) -> list[Window]:
    return landmark_windows(
        tokens(count, first), cls=CLS, landmark=SEP, granularity=granularity, window=window, closing=closing
    )


def plain(count: int, pooling: str, granularity: int = 2, window: int = 6) -> list[Window]:
    return plain_windows(
        tokens(count), pooling=pooling, prefix=[CLS], suffix=[SEP], granularity=granularity, window=window
    )


def rows(windows: list[Window], name: str) -> list[Any]:
    return [getattr(window, name).tolist() for window in windows]


def test_one_window_with_a_short_last_slice() -> None:
    (window,) = lmk(5, 2, 100)
    assert window.ids.tolist() == [CLS, 1, 2, SEP, 3, 4, SEP, 5, SEP]
    assert window.pooled.tolist() == [3, 6, 8]
    assert window.evidence.tolist() == [[3, 4], [6, 7], [8, 9]]
    assert window.spans.tolist() == [[0, 17], [20, 37], [40, 47]]
    assert (window.tokens, len(window)) == (5, 9)
    assert {each.dtype for each in (window.ids, window.pooled, window.evidence, window.spans)} == {np.dtype("int32")}


def test_exactly_one_slice() -> None:
    assert rows(lmk(3, 3, 100), "ids") == [[CLS, 1, 2, 3, SEP]]


def test_an_empty_text_is_cls_and_landmark() -> None:
    (window,) = lmk(0, 4, 100)
    assert (window.ids.tolist(), window.pooled.tolist(), window.tokens) == ([CLS, SEP], [1], 0)
    assert (window.evidence.tolist(), window.spans.tolist()) == ([[1, 2]], [[0, 0]])


def test_windows_hold_whole_slices() -> None:
    # 8 positions: CLS and two slices of two with their landmarks make 7; the next slice needs 3 more.
    windows = lmk(9, 2, 8)
    assert rows(windows, "ids") == [
        [CLS, 1, 2, SEP, 3, 4, SEP],
        [CLS, 5, 6, SEP, 7, 8, SEP],
        [CLS, 9, SEP],
    ]
    assert rows(windows, "pooled") == [[3, 6], [3, 6], [2]]
    assert rows(windows, "spans") == [[[0, 17], [20, 37]], [[40, 57], [60, 77]], [[80, 87]]]
    assert [window.tokens for window in windows] == [4, 4, 1]


def test_a_short_last_slice_stays_where_it_fits() -> None:
    # The sequence of the definition fits the window as it is: it must not be read in two.
    assert rows(lmk(5, 2, 9), "ids") == [[CLS, 1, 2, SEP, 3, 4, SEP, 5, SEP]]
    assert rows(lmk(9, 4, 12), "ids") == [[CLS, 1, 2, 3, 4, SEP, 5, 6, 7, 8, SEP], [CLS, 9, SEP]]
    assert rows(lmk(9, 4, 13), "ids") == [[CLS, 1, 2, 3, 4, SEP, 5, 6, 7, 8, SEP, 9, SEP]]


def test_a_user_s_landmark_id_is_content() -> None:
    (window,) = lmk(4, 2, 100, first=SEP - 1)
    assert window.ids.tolist() == [CLS, 101, 102, SEP, 103, 104, SEP]
    assert window.pooled.tolist() == [3, 6]


def test_generation_c_closes_with_one_landmark_more() -> None:
    (window,) = lmk(40, 32, 512, closing=True)
    assert window.ids.tolist() == [CLS, *range(1, 33), SEP, *range(33, 41), SEP, SEP]
    assert window.pooled.tolist() == [33, 42, 43]
    assert window.evidence.tolist() == [[33, 34], [42, 43]]
    assert window.spans.tolist() == [[0, 317], [320, 397]]
    (plain_window,) = lmk(40, 32, 512)
    assert len(plain_window.pooled) == 2


def test_generation_c_keeps_room_for_it() -> None:
    assert rows(lmk(4, 2, 8, closing=True), "ids") == [[CLS, 1, 2, SEP, 3, 4, SEP, SEP]]
    assert rows(lmk(4, 2, 7, closing=True), "ids") == [[CLS, 1, 2, SEP, SEP], [CLS, 3, 4, SEP, SEP]]


def test_a_slice_that_fits_no_window() -> None:
    assert slices_per_window(6, 8) == 1
    assert slices_per_window(5, 8, closing=True) == 1
    with pytest.raises(ValueError, match=r"7 tokens .*window of 8 .*at most 6\."):
        slices_per_window(7, 8)
    with pytest.raises(ValueError, match=r"6 tokens .*window of 8 .*at most 5\."):
        slices_per_window(6, 8, closing=True)
    with pytest.raises(ValueError, match=r"at least 1 token, not 0"):
        slices_per_window(0, 8)


def test_plain_windows_by_hand() -> None:
    windows = plain(9, "mean")
    assert rows(windows, "ids") == [[CLS, 1, 2, 3, 4, SEP], [CLS, 5, 6, 7, 8, SEP], [CLS, 9, SEP]]
    assert rows(windows, "pooled") == [[0, 1, 2, 3, 4, 5], [0, 1, 2, 3, 4, 5], [0, 1, 2]]
    assert rows(windows, "evidence") == [[[1, 3], [3, 5]], [[1, 3], [3, 5]], [[1, 2]]]
    assert rows(windows, "spans") == [[[0, 17], [20, 37]], [[40, 57], [60, 77]], [[80, 87]]]
    assert rows(plain(5, "max"), "pooled") == [[0, 1, 2, 3, 4, 5], [0, 1, 2]]
    assert rows(plain(5, "max"), "evidence") == [[], []]
    mcls = plain(5, "mcls")
    assert (rows(mcls, "pooled"), rows(mcls, "evidence")) == ([[0], [0]], [[[0, 1]], [[0, 1]]])
    assert rows(mcls, "spans") == [[[0, 37]], [[40, 47]]]
    assert rows(plain(9, "cls"), "ids") == [[CLS, 1, 2, 3, 4, SEP]]
    assert rows(plain(9, "cls"), "pooled") == [[0]]
    last = plain(9, "lasttoken")
    assert (rows(last, "ids"), rows(last, "pooled"), rows(last, "evidence")) == ([[CLS, 9, SEP]], [[2]], [[]])


@pytest.mark.parametrize("pooling", ["mean", "max", "cls", "mcls", "lasttoken"])
def test_plain_window_of_an_empty_text(pooling: str) -> None:
    (window,) = plain(0, pooling)
    assert (window.ids.tolist(), window.tokens) == ([CLS, SEP], 0)
    assert window.evidence.shape == window.spans.shape == (0, 2)
    assert window.pooled.tolist() == {"mean": [0, 1], "max": [0, 1], "lasttoken": [1]}.get(pooling, [0])


def test_plain_windows_that_cannot_be() -> None:
    with pytest.raises(ValueError, match=r"window of 2 positions .* 2 special tokens"):
        plain(3, "mean", window=2)
    with pytest.raises(ValueError, match=r"'median' is not known"):
        plain(3, "median")


@given(count=st.integers(0, 200), granularity=st.integers(1, 20), room=st.integers(0, 40), closing=st.booleans())
def test_every_landmark_layout(count: int, granularity: int, room: int, closing: bool) -> None:
    window = granularity + 2 + int(closing) + room
    windows = lmk(count, granularity, window, closing=closing, first=1000)
    content: list[int] = []
    sizes: list[int] = []
    for place, each in enumerate(windows):
        ids = each.ids.tolist()
        assert len(ids) <= window
        assert ids[0] == CLS
        assert [position for position, number in enumerate(ids) if number == SEP] == each.pooled.tolist()
        read = [number for number in ids if number >= 1000]
        assert each.tokens == len(read)
        assert len(ids) == 1 + len(read) + len(each.pooled)
        content += read
        ends = each.pooled.tolist()[: len(each.pooled) - int(closing)]
        assert each.evidence.tolist() == [[end, end + 1] for end in ends]
        here = [end - start - 1 for start, end in zip([0, *ends], ends, strict=False)]
        if place < len(windows) - 1:
            assert set(here) == {granularity}
        sizes += here
    assert content == list(range(1000, 1000 + count))  # none lost, none doubled, in order
    # The overhead is one landmark a slice: as few as the granularity allows.
    assert len(sizes) == max(-(-count // granularity), 1)
    assert sizes[:-1] == [granularity] * (len(sizes) - 1)
    spans = [span for each in windows for span in each.spans.tolist()]
    edges = [(start, min(start + granularity, count)) for start in range(0, count, granularity)]
    assert spans == ([[10 * low, 10 * high - 3] for low, high in edges] or [[0, 0]])
    # Every window but the last is as full as whole slices make it.
    assert all(len(each) + granularity + 1 > window for each in windows[:-1])


@given(
    count=st.integers(0, 200),
    granularity=st.integers(1, 20),
    window=st.integers(3, 60),
    pooling=st.sampled_from(["mean", "mcls", "max"]),
)
def test_every_plain_layout(count: int, granularity: int, window: int, pooling: str) -> None:
    windows = plain(count, pooling, granularity, window)
    assert [number for each in windows for number in each.ids.tolist()[1:-1]] == list(range(1, count + 1))
    assert all(each.ids[0] == CLS and each.ids[-1] == SEP for each in windows)
    assert all(len(each) == window for each in windows[:-1])
    assert len(windows[-1]) <= window
    for each in windows:
        covered = [position for start, stop in each.evidence for position in range(start, stop)]
        if pooling == "mean":
            assert covered == list(range(1, len(each) - 1))
            assert all(stop - start <= granularity for start, stop in each.evidence)
        elif pooling == "mcls" and count:
            assert covered == [0]
        else:
            assert covered == []


def test_the_overhead_is_one_landmark_in_granularity() -> None:
    count = 32 * 1000
    positions = sum(len(window) - 1 for window in lmk(count, 32, 512))
    assert positions / count == pytest.approx(1 + 1 / 32)
