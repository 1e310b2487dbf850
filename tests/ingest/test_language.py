import pytest

from ingest.language import UNKNOWN, Language, detect

ENGLISH = (
    "All human beings are born free and equal in dignity and rights. They are endowed with reason and conscience "
    "and should act towards one another in a spirit of brotherhood. Everyone is entitled to all the rights set forth. "
)
GERMAN = (
    "Alle Menschen sind frei und gleich an Würde und Rechten geboren. Sie sind mit Vernunft und Gewissen begabt und "
    "sollen einander im Geist der Brüderlichkeit begegnen. Jeder hat Anspruch auf die verkündeten Rechte. "
)
CODE = """
for i in range(10): x[i] = f(i) + g[i]; return {'a': 1, 'b': 2}
#define MAX(a,b) ((a)>(b)?(a):(b))
if (x > 0) { y += 0x1f; } else { y -= 1; }
"""


@pytest.mark.parametrize(("text", "code"), [(ENGLISH, "en"), (GERMAN, "de")])
def test_prose(text: str, code: str) -> None:
    assert detect([text]) == Language(code, confident=True)
    assert detect(["", text * 20, text * 20]) == Language(code, confident=True)


def test_scripts_without_spaces() -> None:
    assert (
        detect(["人人生而自由,在尊严和权利上一律平等。他们赋有理性和良心,并应以兄弟关系的精神相对待。" * 3]).code
        == "zh"
    )


def test_the_language_of_most_of_the_text_counts() -> None:
    assert detect([ENGLISH, GERMAN * 30]) == Language("de", confident=True)
    assert detect([GERMAN, ENGLISH * 30]) == Language("en", confident=True)


def test_two_languages_leave_a_doubt() -> None:
    assert not detect([GERMAN * 20, ENGLISH * 20]).confident


@pytest.mark.parametrize("pages", [[], [""], ["Hallo Welt"], [CODE * 30], ["0 1 2 3 " * 500]])
def test_short_texts_and_code_are_unknown(pages: list[str]) -> None:
    assert detect(pages) == UNKNOWN


def test_code_between_prose_does_not_matter() -> None:
    assert detect([(ENGLISH + CODE) * 10]) == Language("en", confident=True)
