#!/usr/bin/env bash
# Train the three adapters on one GPU in under 12 minutes; the results are a few files of under 16 MiB each.
#
#   training/gpu.sh [FOLDER]        from any folder; FOLDER is relative to the one it is run in
#
# FOLDER (default: $OUT, else training/gpu-results) gets, for each pooling, POOLING/adapter_model.safetensors,
# adapter_config.json, lmk_rag.json and metrics.jsonl. The text has to lie in training/text
# (scripts/build_training_text.py; --share 0.3 makes one of about 45 MB). Each run has a time limit and stops politely
# at it, with the running average so far; the same command goes on from the last checkpoint.
set -euo pipefail
out=$(realpath -m "${1:-${OUT:-$(dirname "$0")/gpu-results}}")
cd "$(dirname "$0")/.."
python=${PYTHON:-python3}
limits=(lmk:260 cls:220 mean:160) # seconds; with 20 of grace each, 700 in all
[ -f training/text/tokens.npy ] || { echo "training/text is empty: run scripts/build_training_text.py first" >&2; exit 2; }
for entry in "${limits[@]}"; do
  pooling=${entry%%:*}
  timeout --signal=TERM --kill-after=20 "${entry##*:}" "$python" - "$pooling" <<'PY' && code=0 || code=$?
import sys
from pathlib import Path

from lmk_rag.training.cli import train_command

print(sys.argv[1], "finished" if train_command(Path("training/gpu.toml"), [sys.argv[1]], quiet=True) else "stopped")
PY
  run=training/runs-gpu/$pooling
  # 124: stopped at its limit, with the average so far
  if [ -d "$run/adapter" ] && { [ "$code" = 0 ] || [ "$code" = 124 ]; }; then
    mkdir -p "$out/$pooling"
    cp "$run"/adapter/* "$run/metrics.jsonl" "$out/$pooling/"
  else
    echo "$pooling: no adapter came of it (exit code $code); the others go on" >&2
    failed=1
  fi
done
[ ! -d "$out" ] || du -h "$out"/*/*
exit "${failed:-0}"
