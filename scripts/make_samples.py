"""Sample documents that are on every machine: the reference text of standard library modules, as pydoc renders it.

The same Python gives the same bytes every time, so a second ingest finds everything unchanged.
"""

import importlib
import pydoc
import re
import sys
from pathlib import Path
from types import ModuleType

# Long reference texts on different subjects. Modules whose data holds the machine's own state (os.environ,
# sys.path) are left out.
MODULES = (  # noqa: SIM905 (forty lines as a list)
    "argparse asyncio.events calendar codecs collections concurrent.futures configparser contextlib csv datetime "
    "decimal difflib doctest email.message enum fractions functools hashlib http.client inspect ipaddress itertools "
    "json logging pathlib random shutil smtplib socket sqlite3 statistics subprocess tarfile tempfile textwrap "
    "threading typing unittest.mock urllib.request zipfile"
).split()

_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def reference_text(module: ModuleType) -> str:
    """The module's reference as plain text, without the memory addresses, which change from run to run."""
    text = pydoc.render_doc(module, title="Reference of %s", renderer=pydoc.plaintext)  # type: ignore[attr-defined]
    return _ADDRESS.sub("", text).rstrip() + "\n"


def write_samples(folder: Path) -> list[Path]:
    """Writes one text file a module into `folder` and returns the paths; one that is right already stays untouched."""
    folder.mkdir(parents=True, exist_ok=True)
    written = []
    for name in MODULES:
        try:
            module = importlib.import_module(name)
        except ImportError:  # a Python built without it
            continue
        path, content = folder / f"{name}.txt", reference_text(module).encode()
        if not path.is_file() or path.read_bytes() != content:
            path.write_bytes(content)
        written.append(path)
    return written


if __name__ == "__main__":
    for sample in write_samples(Path(sys.argv[1])):
        print(sample)
