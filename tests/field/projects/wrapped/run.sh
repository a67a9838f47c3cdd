#!/usr/bin/env bash
# What the cluster's users call: SEED LR
set -euo pipefail
cd "$(dirname "$0")"
export OMP_NUM_THREADS=1
python src/fit.py "$1" "$2" | tee "train-$1.log"
