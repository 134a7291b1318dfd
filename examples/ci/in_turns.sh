#!/usr/bin/env bash
# Measures two servers in turns, so that what drifts on the machine or the network hits both alike, and judges the
# second by the first.
set -euo pipefail

usage() {
  cat >&2 << 'USAGE'
usage: in_turns.sh TURNS THRESHOLDS OLD NEW OPTION…

  TURNS       how often each is measured, 3 at least; `inferswarm calibrate` says how many it takes
  THRESHOLDS  a file with bounds to the baseline, e.g. examples/ci/regression.toml
  OLD, NEW    the options that name each server, e.g. '--onnx-http-url old-host:8010'
  OPTION…     of locust, for both, e.g. -f locustfiles/step7.py --cells 'onnx-http/b1/*' --iterations 200

Run it where .venv is. The exit code is that of `inferswarm gate`.
USAGE
  exit 2
}

[ $# -ge 4 ] || usage
turns=$1 thresholds=$2
read -ra old <<< "$3"
read -ra new <<< "$4"
shift 4
[[ $turns =~ ^[1-9][0-9]*$ ]] || usage
((turns >= 3)) || usage
if [ ! -r "$thresholds" ]; then
  echo "in_turns.sh: $thresholds cannot be read: name a file of thresholds." >&2
  exit 2
fi
place="results/turns-$(date -u +%Y%m%dT%H%M%SZ)"
mkdir -p "$place"
# One Ctrl-C ends the study under way in order, and with it all that would follow.
trap 'echo "in_turns.sh: stopped; what was measured is in $place" >&2; exit 3' INT TERM

measure() { # SIDE OPTION…
  local side=$1 code=0
  shift
  .venv/bin/locust --headless --repeats 1 --results-dir "$place/$side" "$@" >> "$place/$side.log" 2>&1 || code=$?
  # 1 and 3 are of a study that has ended: the gate sees what became of it.
  if [ "$code" != 0 ] && [ "$code" != 1 ] && [ "$code" != 3 ]; then
    tail -n 20 "$place/$side.log" >&2
    exit 2
  fi
}

for ((turn = 1; turn <= turns; turn++)); do
  echo "turn $turn of $turns"
  # Neither is always the first of its turn.
  if ((turn % 2)); then
    measure old "${old[@]}" "$@"
    measure new "${new[@]}" "$@"
  else
    measure new "${new[@]}" "$@"
    measure old "${old[@]}" "$@"
  fi
done
.venv/bin/inferswarm gate "$place"/new/*/ --baseline "$place"/old/*/ --thresholds "$thresholds" --out "$place"
