#!/usr/bin/env bash
# Runs the fuzz targets, each for some minutes from its committed corpus, and prints what they found.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)

usage() {
    cat <<'TEXT'
tests/bench/fuzz.sh [--minutes N | --seconds N] [--targets T[,T...]] [--jobs N] [--keep F]

Runs each target N minutes (default 20), as many side by side as there are processors or --jobs says,
with limits on an input: 10 seconds and 2 GiB. Prints a row a target and ends with 1 if any found
something; the inputs are then in F (default: build/fuzz/found). Inputs that reached new code are kept
in build/fuzz/corpus and the next call goes on from there.
The programs are those of build/fuzz: cmake --preset fuzz && cmake --build --preset fuzz -t fuzz_targets
MILLRACE_FUZZ=folder names another build folder.
TEXT
}

seconds=1200
jobs=$(nproc)
build=${MILLRACE_FUZZ:-$root/build/fuzz}
keep=
targets=
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) usage && exit 0 ;;
    esac
    [ $# -ge 2 ] || { usage >&2 && exit 2; }
    case $1 in
    --minutes) seconds=$(($2 * 60)) ;;
    --seconds) seconds=$2 ;;
    --targets) targets=$2 ;;
    --jobs) jobs=$2 ;;
    --keep) keep=$2 ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift 2
done
[[ $seconds =~ ^[1-9][0-9]*$ && $jobs =~ ^[1-9][0-9]*$ ]] || { usage >&2 && exit 2; }
[ -n "$keep" ] || keep=$build/found
if [ -z "$targets" ]; then
    targets=$(cd "$root/tests/fuzz/corpus" && for t in *; do
        [ "$t" = checkpoint_folder ] || printf '%s,' "$t" # a program of its own
    done)
fi
IFS=, read -ra list <<<"${targets%,}"
mkdir -p "$keep" "$build/logs"

# run TARGET SECONDS LOG: one stretch of fuzzing; the exit code of libFuzzer.
run() {
    mkdir -p "$build/corpus/$1"
    UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=allocator_may_return_null=1 \
        nice "$build/fuzz/fuzz_$1" -max_total_time="$2" -timeout=10 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix="$keep/$1-" \
        "$build/corpus/$1" "$root/tests/fuzz/corpus/$1" >"$3" 2>&1
}

# repeats TARGET INPUT: does it take long again? The clock also runs while others have the processor.
repeats() {
    ! "$build/fuzz/fuzz_$1" -timeout=60 -rss_limit_mb=2048 "$2" >/dev/null 2>&1 ||
        ! (ulimit -t 10 && "$build/fuzz/fuzz_$1" -rss_limit_mb=2048 "$2") >/dev/null 2>&1
}

# One target, in the background. Its row is all it prints; its own words go to a log.
fuzz() {
    local target=$1 log=$build/logs/$1.log code covered=0 inputs=0 found=none input begin=$SECONDS more
    if [ ! -x "$build/fuzz/fuzz_$target" ]; then
        echo "| $target | 0 | 0 | 0 | FOUND: no program $build/fuzz/fuzz_$target |"
        return 1
    fi
    while [ "$found" = none ] && [ $((SECONDS - begin)) -lt "$seconds" ]; do
        code=0
        run "$target" $((seconds - SECONDS + begin)) "$log" || code=$?
        more=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        inputs=$((inputs + ${more:-0}))
        covered=$(sed -n 's/^#[0-9].* cov: \([0-9]*\) .*/\1/p' "$log" | tail -n 1)
        [ "$code" -ne 0 ] || break
        input=$(sed -n 's/^.*Test unit written to //p' "$log" | tail -n 1)
        if [[ $input != *-timeout-* ]] || repeats "$target" "$input"; then
            found="FOUND: ${input:-no input} ($log)"
        else
            rm -f "$input"
        fi
    done
    echo "| $target | $((SECONDS - begin)) | $inputs | ${covered:-0} | $found |"
    [ "$found" = none ]
}

echo "| target | seconds | inputs | edges | findings |"
echo "|---|---|---|---|---|"
failed=0
running=0
for target in "${list[@]}"; do
    if [ "$running" -ge "$jobs" ]; then
        wait -n || failed=1
        running=$((running - 1))
    fi
    fuzz "$target" &
    running=$((running + 1))
done
while [ "$running" -gt 0 ]; do
    wait -n || failed=1
    running=$((running - 1))
done
exit $failed
