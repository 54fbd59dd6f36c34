#!/usr/bin/env bash
# The long run of the PTX machine: what takes too long for the gate, with a time and a verdict for each part.
set -uo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)

usage() {
    cat <<'TEXT'
tests/bench/soak.sh --ptx [--seeds N] [--jobs N] [--log FOLDER] [PART...]

PART          conformance  the table on every architecture in all rounds of freedom, with N seeds
              sizes        attention, norms, gates and losses at the sizes of models
              mutations    every mutant of every kernel
              training     every family under every exact policy
              Default: all.
--seeds N     seeds of inputs and orders (default 5)
--jobs N      runs side by side (default 1)
--log FOLDER  keeps what the tests print (default: a temporary folder, kept if a part fails)

Ends with 1 if a part fails or is not built. PTX_TESTS=FOLDER has the test programs (default:
build/release/tests).
TEXT
}

seeds=5
jobs=1
log=
parts=()
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) usage && exit 0 ;;
    conformance | sizes | mutations | training) parts+=("$1") ;;
    --seeds | --jobs | --log)
        [ $# -ge 2 ] || { usage >&2 && exit 2; }
        declare "${1#--}=$2"
        shift
        ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift
done
[ ${#parts[@]} -gt 0 ] || parts=(conformance sizes mutations training)
[[ $seeds =~ ^[1-9][0-9]*$ && $jobs =~ ^[1-9][0-9]*$ ]] || { usage >&2 && exit 2; }
tests=${PTX_TESTS:-$root/build/release/tests}
[ -x "$tests/tst_ptx_kernels" ] || { echo "$tests/tst_ptx_kernels is not there: it needs nvcc" >&2 && exit 2; }
given=$log
log=${log:-$(mktemp -d "${TMPDIR:-/tmp}/millrace-ptx.XXXXXX")}
mkdir -p "$log" || exit 2
# Qt Test would end a function after five minutes: 10 days.
export QT_QPA_PLATFORM=offscreen LC_ALL=C.UTF-8 MILLRACE_SOURCE=$root QTEST_FUNCTION_TIMEOUT=864000000

# program_of CLASS: the test program that has it. Without arguments such a program lists its classes.
program_of() {
    local program
    for program in "$tests"/tst_ptx*; do
        [[ $("$program" 2>&1)$'\n' == *$'\n'"  $1"$'\n'* ]] && echo "$program" && return 0
    done
    return 1
}

# run NAME CLASS VARIABLE=VALUE [FUNCTION]: a row of the table.
run() {
    local name=$1 class=$2 variable=$3 begin=$SECONDS program file verdict=passed
    shift 3
    file=$log/${name//[^A-Za-z0-9_]/-}.txt
    if ! program=$(program_of "$class"); then
        verdict="FAILED: no test program has $class"
    elif ! env "$variable" "$program" "$class" "$@" >"$file" 2>&1; then
        verdict="FAILED: $(grep -m 1 '^FAIL\|^QFATAL' "$file" | cut -c 1-100)"
    fi
    echo "| $name | $((SECONDS - begin)) s | $verdict |" | tee -a "$log/table.txt"
}

# start ARGUMENTS: of run, beside other runs.
start() {
    [ "$(jobs -rp | wc -l)" -lt "$jobs" ] || wait -n
    run "$@" &
}

conformance() {
    local target seed
    for target in $("$tests/tst_ptx_kernels" kernels -datatags | sed -n 's/^[^ ]* everyCase //p'); do
        for ((seed = 0; seed < seeds; seed++)); do
            start "conformance $target, seed $seed" kernels "MR_PTX_SEED=$seed" "everyCase:$target"
        done
    done
}

sizes() { start "sizes of models" kernels MR_PTX_SEED=0 everyModelSize; }
mutations() { start mutations mutations MR_PTX_MUTATIONS=all; }
training() { start training training MR_PTX_TRAINING=all; }

printf '| run | time | verdict |\n|---|---|---|\n'
: >"$log/table.txt"
for part in "${parts[@]}"; do
    "$part"
done
wait
if grep FAILED "$log/table.txt" >/dev/null; then
    echo "what the tests printed: $log"
    exit 1
fi
[ -n "$given" ] || rm -rf "$log"
