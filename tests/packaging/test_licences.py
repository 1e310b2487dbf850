"""No dependency of lmk-rag, direct or not, is under the GPL or the AGPL."""

import re
from importlib import metadata

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

EXTRAS = ("cpu", "llm", "serve", "mcp", "train", "eval")
"""What users install. `gpu` holds another build of the same FAISS; `test` and `dev` are not for users."""

# "GPL" alone, with a version or spelt out, but neither LGPL ("Lesser", "Library") nor a longer word.
STRONG_COPYLEFT = re.compile(r"(?<![A-Za-z])A?GPL|(?:GNU )?(?:Affero )?General Public License", re.IGNORECASE)
WEAK_COPYLEFT = re.compile(
    r"(?:GNU )?(?:Lesser|Library)(?: or Lesser)? General Public License[^;,]*|LGPL[\w.+ -]*", re.IGNORECASE
)
EXCEPTION = re.compile(r"GPL[\w.-]*\s+WITH\s+(GCC-exception|.*linking)[\w.-]*", re.IGNORECASE)


def installed_closure(root: str, extras: tuple[str, ...]) -> dict[str, metadata.Distribution]:
    """Every installed distribution that `root` with those extras requires here, by its normalised name."""
    found: dict[str, metadata.Distribution] = {}
    seen: set[tuple[str, str]] = set()
    queue = [(root, extra) for extra in ("", *extras)]
    while queue:
        name, extra = queue.pop()
        if (canonicalize_name(name), extra) in seen:
            continue
        seen.add((canonicalize_name(name), extra))
        distribution = metadata.distribution(name)
        found[canonicalize_name(name)] = distribution
        for line in distribution.requires or []:
            requirement = Requirement(line)
            if requirement.marker is None or requirement.marker.evaluate({"extra": extra}):
                queue += [(requirement.name, inner) for inner in ("", *requirement.extras)]
    return found


def licence_texts(distribution: metadata.Distribution) -> list[str]:
    """What a distribution says of its own licence: the expression, the short field and the classifiers."""
    fields = distribution.metadata
    classifiers = [text for text in fields.get_all("Classifier") or [] if text.startswith("License ::")]
    # The old free field sometimes holds a whole licence text; its first line names it.
    free = [text.strip().splitlines()[0] for text in fields.get_all("License") or [] if text.strip()]
    return (fields.get_all("License-Expression") or []) + free + classifiers


def is_strong_copyleft(text: str) -> bool:
    """Whether the GPL or AGPL binds: named, and not offered beside another licence to choose from."""
    alternatives = re.split(r"\s+OR\s+", text, flags=re.IGNORECASE)
    return all(STRONG_COPYLEFT.search(WEAK_COPYLEFT.sub("", EXCEPTION.sub("", part))) for part in alternatives)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("GPL-3.0-or-later", True),
        ("GPLv2+", True),
        ("AGPL-3.0", True),
        ("License :: OSI Approved :: GNU Affero General Public License v3", True),
        ("License :: OSI Approved :: GNU General Public License v2 or later (GPLv2+)", True),
        ("MIT AND GPL-2.0-only", True),
        ("LGPL-3.0-or-later", False),
        ("License :: OSI Approved :: GNU Lesser General Public License v3 (LGPLv3)", False),
        ("GPL-2.0-only OR MPL-1.1", False),
        ("GPL-3.0-or-later WITH GCC-exception-3.1", False),
        ("Apache-2.0", False),
        ("MPL-2.0", False),
    ],
)
def test_the_rule_itself(text: str, expected: bool) -> None:
    assert is_strong_copyleft(text) is expected


def test_no_dependency_is_gpl() -> None:
    closure = installed_closure("lmk-rag", EXTRAS)
    assert {"torch", "pypdf", "streamlit", "faiss-cpu"} <= set(closure)  # the walk does reach things
    licences = {name: licence_texts(distribution) for name, distribution in closure.items()}
    offenders = {name: texts for name, texts in licences.items() if any(map(is_strong_copyleft, texts))}
    assert not offenders


def test_every_dependency_names_a_licence() -> None:
    closure = installed_closure("lmk-rag", EXTRAS)
    silent = [
        name
        for name, distribution in closure.items()
        if not licence_texts(distribution) and not distribution.metadata.get_all("License-File")
    ]
    assert not silent
