"""Which RFCs are for training, development and test: decided by number, kept apart by relation."""

from __future__ import annotations

import random
from collections.abc import Sequence
from typing import Literal

from lmk_rag.evaluation.sources.rfc import Rfc

Split = Literal["train", "dev", "test"]
FIXED_TEST = 500
"""Documents of the test split that are used unless all are asked for."""


def split_of_number(number: int) -> Split:
    """The split an RFC's number puts it in: blocks of fifty, every seventh block test, every seventh development."""
    block = number // 50 % 7
    return "test" if block == 3 else "dev" if block == 5 else "train"


def select(rfcs: Sequence[Rfc], split: Split, *, full: bool = False) -> list[Rfc]:
    """The RFCs of a split, by ascending number.

    A training or development RFC that obsoletes or updates a test RFC, or is obsoleted or updated by one, is
    dropped. The test split is a fixed draw of 500 of those with an abstract unless ``full``.
    """
    chosen = [rfc for rfc in rfcs if split_of_number(rfc.number) == split]
    if split == "test":
        with_abstract = [rfc for rfc in chosen if rfc.abstract]
        if full or len(with_abstract) <= FIXED_TEST:
            return chosen
        drawn = random.Random(FIXED_TEST).sample(with_abstract, FIXED_TEST)
        return sorted(drawn, key=lambda rfc: rfc.number)
    touched = {number for rfc in rfcs if split_of_number(rfc.number) == "test" for number in rfc.related}
    return [
        rfc
        for rfc in chosen
        if rfc.number not in touched and not any(split_of_number(other) == "test" for other in rfc.related)
    ]
