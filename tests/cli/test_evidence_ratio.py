"""How much evidence is kept: the user's choice, and the collection keeps to it."""

from pathlib import Path
from typing import Any

from indexes.collection import Collection


def test_the_evidence_ratio_is_kept_by_the_collection(run_json: Any, tmp_path: Path) -> None:
    folder = tmp_path / "texts"
    folder.mkdir()
    for name, text in (("a.txt", "the sea is deep and wide " * 200), ("b.txt", "stars shine above the hill " * 200)):
        (folder / name).write_text(text, encoding="utf-8")
        run_json("ingest", folder, "--pooling", "lmk", *(["--evidence-ratio", 0.5] if name == "a.txt" else []))
    with Collection.open(tmp_path / "collection") as collection:
        record = collection.encoder("lmk")
        assert record is not None
        for document in collection.documents():
            stored = collection.embedding(record.id, document.id)
            assert stored is not None
            size = stored.vector.nbytes + stored.evidence.nbytes + stored.scales.nbytes + stored.spans.nbytes
            assert 0.3 < size / document.text_bytes <= 0.5


def test_another_ratio_than_that_of_the_documents_is_refused(run: Any, run_json: Any, tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("the sea is deep and wide " * 200, encoding="utf-8")
    run_json("ingest", tmp_path / "a.txt", "--pooling", "lmk")
    assert run_json("info")["evidence_ratio"] == 1.6
    assert run_json("ingest", tmp_path / "a.txt", "--evidence-ratio", 1.6)["unchanged"] == 1
    refused = run("ingest", tmp_path / "a.txt", "--evidence-ratio", 0.5)
    assert refused.exit_code == 2
    assert "keeps 1.6 bytes of evidence a byte of text" in refused.stderr
    assert "make a new collection for 0.5" in refused.stderr
    assert run_json("info")["evidence_ratio"] == 1.6
