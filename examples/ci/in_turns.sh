#!/usr/bin/env bash
# Measures two servers in turns, so that what drifts on the machine or the network hits both alike, and judges the
# second by the first.
set -euo pipefail

if [ $# -lt 4 ]; then
  cat >&2 << 'USAGE'
usage: in_turns.sh TURNS THRESHOLDS OLD NEW OPTION…

  TURNS       how often each is measured; `python -m reports calibrate` says how many it takes
  THRESHOLDS  a file with bounds to the baseline, e.g. examples/ci/regression.toml
  OLD, NEW    the options that name each server, e.g. '--onnx-http-url old-host:8010'
  OPTION…     of locust, for both, e.g. -f locustfiles/step7.py --cells 'onnx-http/b1/*'

Run it where .venv is. The exit code is that of `python -m reports gate`.
USAGE
  exit 2
fi
turns=$1 thresholds=$2
read -ra old <<< "$3"
read -ra new <<< "$4"
shift 4
place="results/turns-$(date -u +%Y%m%dT%H%M%SZ)"

measure() { # SIDE OPTION…
  local side=$1 code=0
  shift
  .venv/bin/locust --headless --repeats 1 --results-dir "$place/$side" "$@" > "$place/$side.log" 2>&1 || code=$?
  if [ "$code" = 2 ]; then
    cat "$place/$side.log" >&2
    exit 2
  fi
}

mkdir -p "$place"
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
exec .venv/bin/python -m reports gate "$place"/new/*/ --baseline "$place"/old/*/ --thresholds "$thresholds" --out "$place"
