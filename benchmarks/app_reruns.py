"""Time a rerun of each page of the app on a collection, without a new query: median and worst of ten.

The worst is also told in processor time, which a machine that does something else besides does not lengthen.

    python benchmarks/app_reruns.py COLLECTION [--query "a question"]

A page is run once, which loads models and fills the caches, and then ten times as a click runs it again. What is timed
is the page's script, in Streamlit's own test harness: neither the browser nor the network is in it.
"""

import argparse
import os
import statistics
import time
from pathlib import Path

from streamlit.testing.v1 import AppTest

ROOT = Path(__file__).resolve().parents[1]
RERUNS = 10
SECONDS = 600


def pages(query: str, document: int) -> dict[str, tuple[str, dict[str, str]]]:
    """Give the pages to be timed by what they show: the script, and the address that opens it."""
    opened = {"doc": str(document), "page": "1"}
    return {
        "search": ("search", {"q": query}),
        "search, a document open": ("search", {"q": query, **opened}),
        "ask": ("ask", {"question": query}),
        "ask, a document open": ("ask", {"question": query, **opened}),
        "compare": ("compare", {"q": query, "bm25": "true"}),
        "library, documents": ("library", {}),
        "library, collection": ("library", {"tab": "Collection"}),
        "library, map": ("library", {"tab": "Map"}),
        "settings": ("settings", {}),
    }


def rerun_times(script: str, address: dict[str, str]) -> tuple[list[float], list[float]]:
    """Open a page and run it again; return the seconds of each further run, by the clock and of the processor.

    Raises:
        RuntimeError: the page shows an error.
    """
    app = AppTest.from_file(str(ROOT / "ui" / "app.py"), default_timeout=SECONDS)
    if script != "search":
        app.switch_page(f"pages/{script}.py")
    for name, value in address.items():
        app.query_params[name] = value
    app.run()
    clock, processor = [], []
    for _ in range(RERUNS):
        began, spent = time.perf_counter(), time.process_time()
        app.run()
        clock.append(time.perf_counter() - began)
        processor.append(time.process_time() - spent)
    if app.exception or app.error:
        raise RuntimeError(f"{script}: {[each.value for each in (*app.exception, *app.error, *app.text)]}")
    return clock, processor


def main() -> None:
    """Print a line a page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("collection", type=Path)
    parser.add_argument("--query", default="how are lost packets detected")
    arguments = parser.parse_args()
    os.environ["LMK_RAG_COLLECTION"] = str(arguments.collection.absolute())

    from indexes.collection import Collection

    with Collection.open(arguments.collection) as collection:
        count = collection.count()
        document = max(collection.documents(), key=lambda each: each.characters).id
    print(f"{count:,} documents; milliseconds of a rerun: median and worst of {RERUNS}, worst of the processor")
    for name, (script, address) in pages(arguments.query, document).items():
        clock, processor = rerun_times(script, address)
        told = (statistics.median(clock), max(clock), max(processor))
        print(f"{name:26}" + "".join(f"{1000 * each:7.0f}" for each in told), flush=True)


if __name__ == "__main__":
    main()
