#!/usr/bin/env bash
# Checks and measures the CUDA device within nine minutes, on a machine that has a GPU driver and
# nothing else of ours: it needs no network, no compiler and no Python. PyTorch and the tools of the
# CUDA toolkit are used where they are found. gpu_pack.sh makes a folder that holds all it needs.
#
#     tests/bench/gpu.sh [RESULTS]
#
# RESULTS   one compressed file with the output of every command, rewritten every 15 seconds.
#           Default: $OUT/results.tar.gz, without OUT results.tar.gz in the current folder.
#
# MILLRACE=PROGRAM                 default: build/portable/bin/millrace of this tree
# MILLRACE_GPU_SECONDS=540         time for everything; with less, every limit shrinks alike
# MILLRACE_GPU_HOST_MEMORY=100GiB  host budget of the 7B zero-offload run
# MILLRACE_GPU_PARTS='bits steps'  these parts in this order; default: all but suspects, tiles and soak
# PYTHON=PROGRAM                   a Python with PyTorch; default: the first that is found
#
# Prints a summary of at most 60 lines first and last. Each command gets one verdict: ok, failed RC,
# hung after N s, killed by signal N, or skipped with the reason.
# Exit code: 0 if all that ran passed, 1 otherwise, 2 bad usage.

set -u
SECONDS=0
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
root=$(cd "$here/../.." && pwd)
millrace=${MILLRACE:-$root/build/portable/bin/millrace}
total=${MILLRACE_GPU_SECONDS:-540}
parts=${MILLRACE_GPU_PARTS:-ops fresh selftest bits losses bench steps kernels offload light pc peers driver sanitizer profiler}
results=${1:-${OUT:-$PWD}/results.tar.gz}
ulimit -c 0 # a core of a process with 90 GB would fill the disk

usage() { sed -n '2,/^$/s/^# \{0,1\}//p' "${BASH_SOURCE[0]}" >&2 && exit 2; }
[[ $# -le 1 && $results != -* && $total =~ ^[1-9][0-9]*$ ]] || usage
[ -x "$millrace" ] || { echo "$millrace is not there: build the preset portable, or set MILLRACE" >&2 && exit 2; }
millrace=$(cd "$(dirname "$millrace")" && pwd)/$(basename "$millrace")
mkdir -p "$(dirname "$results")" 2>/dev/null

# shellcheck source=tests/bench/gpu_run.sh
. "$here/gpu_run.sh"
# shellcheck source=tests/bench/gpu_summary.sh
. "$here/gpu_summary.sh"
# shellcheck source=tests/bench/gpu_figures.sh
. "$here/gpu_figures.sh"
# shellcheck source=tests/bench/gpu_compare.sh
. "$here/gpu_compare.sh"
# shellcheck source=tests/bench/gpu_machine.sh
. "$here/gpu_machine.sh"
# shellcheck source=tests/bench/gpu_parts.sh
. "$here/gpu_parts.sh"

for part in $parts; do
    declare -F "part_$part" >/dev/null || { echo "there is no part $part" >&2 && exit 2; }
done

# make_work: sets `work`, a folder where outputs are collected, on a disk that has room.
make_work() {
    local place
    for place in "${TMPDIR:-/tmp}" /dev/shm "$PWD"; do
        work=$(mktemp -d "$place/millrace-gpu.XXXXXX" 2>/dev/null) || continue
        if head -c 1048576 /dev/zero 2>/dev/null >"$work/room"; then
            rm "$work/room"
            mkdir "$work/runs" && return 0
        fi
        rm -rf "$work"
    done
    echo "no room for 1 MiB in ${TMPDIR:-/tmp}, /dev/shm or $PWD" >&2
    exit 2
}

# finish: the last summary, however the script ends.
finish() {
    local code=$?
    trap - EXIT
    trap '' HUP INT PIPE TERM
    exec >&"$stdout" # a signal may come while a function writes to a file
    exec 2>&"$stderr"
    [ "$ended" = yes ] || state="stopped early (exit code $code)"
    end_command
    rm -rf "$work/runs"
    pack
    printf '\n'
    summary
    [ -n "$unwritten" ] || rm -rf "$work"
    exit "$code"
}

make_work
exec {stdout}>&1 {stderr}>&2
export XDG_DATA_HOME=$work/runs TMPDIR=$work/runs # its own history, rates and scratch files
ended=no
trap finish EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 141' PIPE
trap 'exit 143' TERM

describe_machine
pack
summary
printf '\n'
for part in $parts; do
    state="running $part"
    "part_$part"
done
state=complete
ended=yes
[ "$(count_failures)" -eq 0 ]
