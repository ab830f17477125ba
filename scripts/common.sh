# Sourced by the scripts beside it: where things are, and how they speak.
# shellcheck shell=bash
set -euo pipefail

KBENCH_ROOT=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
# What the scripts keep between calls: an Engine of their own (images and containers), stamps, logs.
KBENCH_STATE=${KBENCH_STATE:-$HOME/.local/state/kbench}

if [[ -t 1 ]]; then kbench_bold=$'\e[1m' kbench_plain=$'\e[0m'; else kbench_bold='' kbench_plain=''; fi
say() { printf '%s==>%s %s\n' "$kbench_bold" "$kbench_plain" "$*"; }
die() { printf "error: %s\n" "$*" >&2; exit 1; }

# Runs a command with its output in a log; shows the output only when it fails.
quietly() {
  local log=$1; shift
  mkdir -p "$(dirname "$log")"
  if ! "$@" >"$log" 2>&1; then
    tail -n 60 "$log" >&2
    die "$1 failed; all it said is in $log"
  fi
}

# The compiler cache sees the same files in every checkout, whatever the path.
export CCACHE_BASEDIR=$KBENCH_ROOT CCACHE_NOHASHDIR=1

# build PRESET [TARGET…]. No CUDA: what these scripts run needs no GPU, and nvcc's part would take minutes.
build() {
  local preset=$1 log=$KBENCH_STATE/log
  shift
  say "building ($preset)"
  (cd "$KBENCH_ROOT" && quietly "$log/configure-$preset.log" cmake --preset "$preset" -DKBENCH_CUDA=OFF)
  quietly "$log/build-$preset.log" ninja -C "$KBENCH_ROOT/build/$preset" "$@"
}
