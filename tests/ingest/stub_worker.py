"""A parser process whose PDF engines do what the file tells them: for what no real file does on every platform.

The file is JSON: for each engine a list of pages, each a text or one of the orders below; instead of a list, an
order that is carried out when the file is opened.
"""

import json
import os
import threading
from pathlib import Path
from typing import Any

from ingest import worker
from ingest.readers import ReadError, pdf


def obey(order: str, path: Path) -> str:
    if order == "FREEZE":
        pipe = path.with_suffix(".pipe")
        if pipe.exists():  # tells a test that it is frozen now
            pipe.write_text(str(os.getpid()))
        threading.Event().wait()
    if order == "LOOP":
        while True:
            pass
    if order == "CRASH":
        os._exit(1)
    if order == "DAMAGED":
        raise ReadError("damaged: as ordered")
    if order == "BUG":
        raise KeyError("a bug")
    if order == "MEMORY":
        return str(len(bytearray(8 << 30)))
    if order == "NOISE":
        print("noise on standard output")
        os.write(1, b"noise on the pipe\n")
        os.write(2, b"noise on standard error\n")
    return order


class Stub:
    def __init__(self, path: Path, engine: str) -> None:
        self._path = path
        self._pages: Any = json.loads(path.read_text())[engine]
        if isinstance(self._pages, str):
            obey(self._pages, path)
        self.page_count = len(self._pages)
        self.info: dict[str, str] = {}

    def page(self, index: int) -> str:
        return obey(self._pages[index], self._path)

    def close(self) -> None:
        pass


if __name__ == "__main__":
    pdf.ENGINES = {"first": lambda path: Stub(path, "first"), "second": lambda path: Stub(path, "second")}
    worker.main()
