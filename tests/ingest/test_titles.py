import pytest

from ingest.readers.titles import sensible, title_line


@pytest.mark.parametrize(
    "title",
    [
        "",
        None,
        "untitled",
        "Untitled Document",
        "Microsoft Word - report.doc",
        "thesis.dvi",
        "main.tex",
        "C:\\docs\\a",
        "/home/x/paper",
        "Document1",
        "---",
        "12.3",
        "slide 1",
        "PowerPoint Presentation",
    ],
)
def test_placeholders_are_no_titles(title: str | None) -> None:
    assert sensible(title) == ""


@pytest.mark.parametrize("title", ["The siunitx package", "Untidy Rooms", "R2-D2 at work", "C/C++ in .NET"])
def test_titles(title: str) -> None:
    assert sensible(f"  {title}\n") == title


def test_centred_lines_are_one_title() -> None:
    page = (
        "Network Working Group                                         S. Bradner\n"
        "Request for Comments: 2119                            Harvard University\n"
        "Category: Best Current Practice                               March 1997\n\n\n"
        "          Key words for use in RFCs to Indicate Requirement\n"
        "                               Levels\n\n"
        "Status of this Memo\n"
    )
    assert title_line([page]) == "Key words for use in RFCs to Indicate Requirement Levels"


def test_a_date_at_the_right_is_no_title() -> None:
    assert title_line([" " * 62 + "June 2010\n\nAn Introduction\n"]) == "An Introduction"


def test_an_underlined_line_comes_first() -> None:
    assert title_line(["some words\n\nThe Title\n=========\n\ntext"]) == "The Title"


def test_first_line_that_could_be_a_title() -> None:
    assert title_line(["", "\n1\n\nA sentence that ends.\nThe Title\nmore"]) == "The Title"
    assert title_line(["Only a sentence."]) == ""
    assert title_line([]) == ""
