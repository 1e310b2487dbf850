import html as html_module
from pathlib import Path

import pytest

from ingest.parsing import parse_file
from ingest.readers import OpenFile
from ingest.readers.html import read_html


def text(source: str) -> str:
    return read_html(source).page(0)


PAGE = """<!DOCTYPE html>
<html lang="en"><head><title>json &mdash; JSON encoder</title><meta name="author" content="Ann Author">
<meta name="description" content="How to."><style>p { color: red }</style><script>var hidden = "x < y";</script></head>
<body><header>Site name</header><nav><ul><li>Home</li></ul></nav>
<div class="related" role="navigation">previous | next</div>
<div class="body" role="main">
<h1>json<a class="headerlink" href="#x">¶</a></h1>
<p>The <b>bo</b>ld   word,
and <code>json.dumps</code>(<em>obj</em>) &amp; more&nbsp;text.</p>
<pre>def f(x):
    return  x  # two  spaces
</pre>
<ul><li>one</li><li>two<ul><li>nested</li></ul></li></ul>
<table><tr><th>Key</th><th>Value</th></tr><tr><td>a</td><td>1<br>2</td></tr></table>
<p hidden>unseen</p><p style="display: none">unseen</p>
</div><footer>Copyright</footer></body></html>"""


def test_main_text_without_navigation_scripts_and_styles() -> None:
    assert text(PAGE) == (
        "json\n\n"
        "The bold word, and json.dumps(obj) & more\u00a0text.\n\n"
        "def f(x):\n    return  x  # two  spaces\n\n"
        "one\ntwo\n\nnested\n\n"
        "Key\tValue\na\t1\n2"
    )


def test_title_and_metadata() -> None:
    opened = read_html(PAGE)
    assert opened.title == "json — JSON encoder"
    assert opened.metadata == {"language": "en", "author": "Ann Author", "subject": "How to."}


def test_without_a_title_the_first_heading_is_it() -> None:
    assert read_html("<title>Untitled</title><h1>The <i>Head</i>ing</h1><p>x").title == "The Heading"


def test_without_a_marked_main_part_the_frame_of_the_page_goes() -> None:
    source = (
        "<header>Site</header><p>One.</p><article><header>By Ann</header>Two.</article><article>3</article><footer>C"
    )
    assert text(source) == "One.\n\nBy Ann\nTwo.\n3"


def test_a_main_part_without_text_is_not_it() -> None:
    assert text("<p>All of it.</p><main><script>load()</script></main>") == "All of it."


def test_a_main_part_inside_another_counts_as_one() -> None:
    assert text("<p>Site</p><main><h1>Head</h1><div role=main>Text</div></main>") == "Head\n\nText"


def test_inline_elements_do_not_part_words() -> None:
    assert text("<p><b>W</b>ord<i>s</i> <span>and</span><wbr>more</p>") == "Words andmore"


def test_sentences_of_neighbouring_blocks_do_not_run_together() -> None:
    assert text("<div>One</div><div>Two</div>") == "One\nTwo"
    assert text("<p>One<p>Two") == "One\n\nTwo"
    assert text("<dl><dt>term<dd>meaning</dl>after") == "term\nmeaning\n\nafter"


def test_entities_are_decoded() -> None:
    assert text("<p>&lt;b&gt; &#8212; &#x41; &eacute; &amp;amp;</p>") == "<b> — A é &amp;"


def test_comments_and_instructions_are_unseen_and_the_text_after_them_stays() -> None:
    assert text("<p>a<!-- no -->b<?php no ?>c</p>") == "abc"


def test_the_text_after_an_unseen_element_stays() -> None:
    assert text("<p>before <script>no()</script>after</p>") == "before after"


def test_xhtml_with_an_empty_title_and_named_entities() -> None:
    source = (
        '<?xml version="1.0" encoding="utf-8"?><!DOCTYPE html PUBLIC "-//W3C//DTD XHTML 1.0 Strict//EN" "x.dtd">'
        '<html xmlns="http://www.w3.org/1999/xhtml"><head><title/></head><body><a id="x"/><p>Caf&eacute;&nbsp;b</p>'
        "</body></html>"
    )
    assert text(source) == "Café\u00a0b"


def test_xml_entities_are_not_expanded() -> None:
    levels = "".join(f'<!ENTITY a{n} "{f"&a{n - 1};" * 10}">' for n in range(1, 12))
    source = (
        f'<?xml version="1.0"?><!DOCTYPE html [<!ENTITY a0 "bomb">{levels}<!ENTITY f SYSTEM "file:///etc/hostname">]>'
        '<html xmlns="http://www.w3.org/1999/xhtml"><body><p>before &a11; &f; after</p></body></html>'
    )
    found = text(source)
    assert "bomb" not in found
    assert len(found) < 100
    assert found.endswith("before &a11; &f; after")


def test_external_entities_are_not_read(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("the secret")
    address = (tmp_path / "secret").as_uri()
    source = (
        f'<?xml version="1.0"?><!DOCTYPE html [<!ENTITY f SYSTEM "{address}"><!ENTITY i "inner">]>'
        '<html xmlns="http://www.w3.org/1999/xhtml"><body><p>before &f; &i; after</p></body></html>'
    )
    assert text(source) == "before after"


def test_nesting_may_be_deep() -> None:
    assert text("<div>" * 5000 + "deep" + "</div>" * 5000) in {"deep", ""}
    assert text("<b>" * 200 + "deep") == "deep"


@pytest.mark.parametrize(
    "data",
    [
        '<meta charset="iso-8859-1"><p>Größe “quoted”'.encode("cp1252"),
        '<meta http-equiv="Content-Type" content="text/html; charset=windows-1252"><p>Größe “quoted”'.encode("cp1252"),
        '<meta charset="utf-8"><p>Größe “quoted”'.encode(),
        "<p>Größe “quoted”".encode(),
        "\ufeff<meta charset='koi8-r'><p>Größe “quoted”".encode(),
        '<meta charset="nonsense"><p>Größe “quoted”'.encode(),
        '<meta charset="ascii"><p>Größe “quoted”'.encode("utf-16"),
    ],
)
def test_charset(tmp_path: Path, data: bytes) -> None:
    (tmp_path / "a.html").write_bytes(data)
    file = parse_file(tmp_path / "a.html").file
    assert file is not None
    assert file.pages == ("Größe “quoted”",)


def test_nuls_do_not_end_the_page() -> None:
    opened: OpenFile = read_html("<p>one\0 two</p><p>three</p>")
    assert opened.page(0) == "one two\n\nthree"
    assert opened.warnings == ("1 NUL character was left out",)


@pytest.mark.parametrize("source", ["", "   ", "<html><body></body></html>", "<script>x()</script>", "<!-- only -->"])
def test_no_text(tmp_path: Path, source: str) -> None:
    (tmp_path / "a.htm").write_text(source)
    assert parse_file(tmp_path / "a.htm").reason == "no text"


def test_a_real_page(tmp_path: Path) -> None:
    """What the standard library's own documentation server shows of a module is found again, line for line."""
    import pydoc
    import textwrap

    body = pydoc.html.document(textwrap)
    (tmp_path / "textwrap.html").write_text(pydoc.html.page("textwrap", body))
    file = parse_file(tmp_path / "textwrap.html").file
    assert file is not None
    assert file.title == "Python: textwrap"
    found = html_module.unescape(file.pages[0]).replace("\u00a0", " ")
    doc = textwrap.wrap.__doc__
    assert doc is not None
    for line in filter(None, map(str.strip, doc.splitlines())):
        assert line in found
    assert "<" not in found.replace("<class", "").replace("<lambda", "")
