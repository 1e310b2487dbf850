"""Makes `.venv` with everything that lmk-rag and its tests need, at the versions of constraints.txt.

A stamp in `.venv` holds what was installed, so a second call returns at once until pyproject.toml,
constraints.txt or an option changes. Run by the system's Python, so it imports only the standard library.
"""

import argparse
import hashlib
import json
import os
import subprocess
import sys
import venv
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
VENV = ROOT / ".venv"
STAMP = VENV / "lmk-rag-setup.json"
FAISS_PACKAGES = {"cpu": "faiss-cpu", "gpu": "faiss-gpu"}
EXTRAS = "llm,serve,mcp,train,eval,dev"


def wanted(faiss: str, torch_index: str) -> dict[str, str]:
    """What a finished set-up is made from; two that are equal need no work between them."""
    inputs = b"".join((ROOT / name).read_bytes() for name in ("pyproject.toml", "constraints.txt"))
    return {
        "inputs": hashlib.sha256(inputs).hexdigest(),
        "faiss": faiss,
        "torch_index": torch_index,
        "folder": str(ROOT),  # an editable install and its commands hold absolute paths
    }


def installed() -> dict[str, str]:
    """What the last finished set-up was made from; empty where there was none."""
    try:
        stamp: dict[str, str] = json.loads(STAMP.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}
    return stamp


def venv_python() -> Path:
    """The environment's interpreter."""
    return VENV / ("Scripts/python.exe" if os.name == "nt" else "bin/python")


def works(python: Path) -> bool:
    """Whether that interpreter starts and has pip, which it has not after an interrupted set-up or a removed Python."""
    try:
        return subprocess.run([python, "-m", "pip", "--version"], capture_output=True, check=False).returncode == 0
    except OSError:
        return False


def pip(*arguments: str) -> None:
    """Runs the environment's pip.

    Raises:
        SystemExit: with pip's exit status when it fails; pip has then said why.
    """
    # A person sees pip's own progress, a log only what goes wrong.
    manner = [] if sys.stdout.isatty() else ["--quiet"]
    command = [str(venv_python()), "-m", "pip", "--disable-pip-version-check", *manner, *arguments]
    status = subprocess.run(command, cwd=ROOT, check=False).returncode
    if status:
        print(f"set-up stopped: `{' '.join(command[1:])}` failed; its message is above.", file=sys.stderr)
        raise SystemExit(status)


def torch_pin() -> str:
    """The line of constraints.txt that pins torch, such as `torch==2.13.0`."""
    lines = (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()
    return next(line for line in lines if line.startswith("torch=="))


def set_up(faiss: str, torch_index: str) -> None:
    """Installs torch, then lmk-rag (editable) with its extras, into a new or an existing `.venv`."""
    before, after = installed(), wanted(faiss, torch_index or installed().get("torch_index", ""))
    if before == after:
        return
    if before.get("folder") != after["folder"] or not works(venv_python()):
        print(f"set-up: making {VENV.name}", flush=True)
        venv.create(VENV, with_pip=True, clear=True, symlinks=os.name != "nt")
        before = {}
    STAMP.unlink(missing_ok=True)

    print(f"set-up: installing {torch_pin()}", flush=True)
    if before and before["torch_index"] != after["torch_index"]:
        pip("uninstall", "--yes", "torch")
    # An index of torch alone has its own versions of what torch needs; the second step pins those again.
    source = ["--index-url", after["torch_index"]] if after["torch_index"] else ["--constraint", "constraints.txt"]
    pip("install", *source, torch_pin())

    print("set-up: installing lmk-rag and what it needs (some minutes the first time)", flush=True)
    if before and before["faiss"] != faiss:  # both wheels hold the module faiss
        pip("uninstall", "--yes", FAISS_PACKAGES[before["faiss"]])
    pip("install", "--constraint", "constraints.txt", "--editable", f".[{faiss},{EXTRAS}]")
    STAMP.write_text(json.dumps(after, indent=1), encoding="utf-8")
    print("set-up: done", flush=True)


def main() -> None:
    """Reads the options and sets up."""
    parser = argparse.ArgumentParser(description="Makes .venv with lmk-rag and what it needs.")
    parser.add_argument("--faiss", choices=sorted(FAISS_PACKAGES), default="cpu", help="which FAISS wheel")
    parser.add_argument("--torch-index", default="", metavar="URL", help="package index to take torch from")
    options = parser.parse_args()
    set_up(options.faiss, options.torch_index)


if __name__ == "__main__":
    main()
