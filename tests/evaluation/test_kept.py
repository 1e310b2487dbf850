from pathlib import Path

from lmk_rag.evaluation.kept import kept_rows


def test_rows_come_back_and_a_line_that_was_cut_is_taken_off(tmp_path: Path) -> None:
    file = tmp_path / "rows.jsonl"
    assert kept_rows(file) == {}
    file.write_text('{"query": "a", "ms": 1}\n{"query": "b", "ms": 2}\n{"query": "c", "m')
    assert kept_rows(file) == {"a": {"query": "a", "ms": 1}, "b": {"query": "b", "ms": 2}}
    assert file.read_text() == '{"query": "a", "ms": 1}\n{"query": "b", "ms": 2}\n'
