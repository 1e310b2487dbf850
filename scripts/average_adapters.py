"""Put two adapters of one base into one, a weighted mean of what each adds to the base's weights.

    python scripts/average_adapters.py FIRST SECOND --share 0.6 --out FOLDER

FIRST and SECOND are adapter folders of a training run (``after-distillation``, ``adapter``); ``base`` stands for the
base itself, which adds nothing. SECOND counts ``--share``, FIRST the rest. The sum of two adapters is exactly an
adapter whose rank is the sum of theirs.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

_WEIGHTS = "adapter_model.safetensors"
_SETTINGS = "adapter_config.json"


def scaled(folder: Path, share: float) -> tuple[dict[str, Tensor], int]:
    """What an adapter adds, times ``share``, as factors whose quotient of alpha by rank is 1; and its rank."""
    settings = json.loads((folder / _SETTINGS).read_text(encoding="utf-8"))
    factor = share * settings["lora_alpha"] / settings["r"]
    weights = {name: weight.float() for name, weight in load_file(folder / _WEIGHTS).items()}
    return {name: weight * factor if "lora_B" in name else weight for name, weight in weights.items()}, settings["r"]


def average(first: Path | None, second: Path, share: float) -> tuple[dict[str, Tensor], int]:
    """The factors of (1 - share) of ``first`` and ``share`` of ``second``, and their rank; ``None`` is the base."""
    weights, rank = scaled(second, share)
    if first is None:
        return weights, rank
    others, more = scaled(first, 1 - share)
    # B1 A1 + B2 A2 = [B1 B2] [A1; A2]
    joined = {
        name: torch.cat([others[name], weight], dim=1 if "lora_B" in name else 0) for name, weight in weights.items()
    }
    return joined, rank + more


def main() -> None:
    """Read the arguments, write the folder."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("first", help="an adapter folder, or base")
    parser.add_argument("second", type=Path)
    parser.add_argument("--share", type=float, required=True, help="of the second, 0 to 1")
    parser.add_argument("--out", type=Path, required=True)
    options = parser.parse_args()
    if not 0 <= options.share <= 1:
        parser.error(f"--share is between 0 and 1, not {options.share}")
    first = None if options.first == "base" else Path(options.first)
    weights, rank = average(first, options.second, options.share)
    options.out.mkdir(parents=True, exist_ok=True)
    shutil.copy(options.second / "lmk_rag.json", options.out)
    settings = json.loads((options.second / _SETTINGS).read_text(encoding="utf-8")) | {"r": rank, "lora_alpha": rank}
    (options.out / _SETTINGS).write_text(json.dumps(settings, indent=2) + "\n", encoding="utf-8")
    halved = {name: weight.half().contiguous() for name, weight in weights.items()}
    save_file(halved, options.out / _WEIGHTS, metadata={"format": "pt"})


if __name__ == "__main__":
    main()
