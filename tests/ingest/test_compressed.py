import gzip
import io
import zipfile
from pathlib import Path

import pytest

from ingest.parsing import parse_file
from ingest.readers import ReadError, compressed
from ingest.readers.compressed import open_archive, read_bytes, read_limited


def test_a_stream_of_just_the_limit_is_read() -> None:
    assert read_limited(io.BytesIO(b"x" * 5000), 5000, "a") == b"x" * 5000


def test_a_stream_over_the_limit_is_refused() -> None:
    with pytest.raises(ReadError, match=r"^too large: a holds more than 4.88 KiB$"):
        read_limited(io.BytesIO(b"x" * 5001), 5000, "a")


def test_a_gzip_bomb_is_refused_before_it_is_inflated(tmp_path: Path) -> None:
    path = tmp_path / "bomb.txt.gz"
    path.write_bytes(gzip.compress(b"a" * (64 << 20)))
    with pytest.raises(ReadError, match=r"^too large: bomb.txt.gz holds more than 1 MiB$"):
        read_bytes(path, limit=1 << 20)


@pytest.mark.parametrize("suffix", ["docx", "odt", "epub"])
def test_a_zip_bomb_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, suffix: str) -> None:
    path = tmp_path / f"bomb.{suffix}"
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name in ("content.xml", "word/document.xml"):
            archive.writestr(name, bytes(3 << 20))
    monkeypatch.setattr(compressed.open_archive.__wrapped__, "__defaults__", (5 << 20,))  # type: ignore[attr-defined]
    assert parse_file(path).reason == "too large: its members inflate to more than 5 MiB"


def test_the_limit_is_one_gibibyte() -> None:
    assert compressed.INFLATED_LIMIT == 1 << 30


def test_an_encrypted_member_needs_a_password(tmp_path: Path) -> None:
    path = tmp_path / "a.epub"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("a", "text")
    data = bytearray(path.read_bytes())
    data[6] |= 1  # the flags of the local header and of the directory's entry
    data[data.index(b"PK\x01\x02") + 8] |= 1
    path.write_bytes(data)
    with pytest.raises(ReadError, match=r"^needs a password$"), open_archive(path, "an EPUB"):
        pass
