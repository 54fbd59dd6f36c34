#!/usr/bin/env bash
# Runs the fuzz targets, each for some minutes from its committed corpus, and prints what they found.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)

usage() {
    cat <<'TEXT'
tests/bench/fuzz.sh [--minutes N | --seconds N | --runs N] [--targets T[,T...]] [--jobs N] [--keep F]

Runs each target N minutes (default 20), as many side by side as there are processors or --jobs says,
with limits on an input: 10 seconds and 2 GiB. Prints a row a target and ends with 1 if any found
something; the inputs are then in F (default: build/asan/found). Inputs that reached new code are kept
in build/asan/corpus and the next call goes on from there.
With --runs each target takes the committed corpus and then N inputs, the same ones in every call.
The program is build/asan/bin/fuzz: cmake --preset asan && cmake --build --preset asan -t fuzz
MILLRACE_FUZZ=folder names another build folder.
TEXT
}

seconds=1200
runs=
jobs=$(nproc)
build=${MILLRACE_FUZZ:-$root/build/asan}
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
    --runs) runs=$2 ;;
    --targets) targets=$2 ;;
    --jobs) jobs=$2 ;;
    --keep) keep=$2 ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift 2
done
[[ $seconds =~ ^[1-9][0-9]*$ && ${runs:-1} =~ ^[1-9][0-9]*$ && $jobs =~ ^[1-9][0-9]*$ ]] || { usage >&2 && exit 2; }
[ -n "$keep" ] || keep=$build/found
if [ -z "$targets" ]; then
    targets=records,$(cd "$root/tests/fuzz/corpus" && for t in *; do # the slowest first
        # checkpoint_folder is a program of its own
        [ "$t" = checkpoint_folder ] || [ "$t" = records ] || printf '%s,' "$t"
    done)
fi
IFS=, read -ra list <<<"${targets%,}"
mkdir -p "$keep" "$build/logs"

# run TARGET SECONDS LOG: one stretch of fuzzing; the exit code of libFuzzer.
run() {
    local length=(-max_total_time="$2") inputs=("$build/corpus/$1" "$root/tests/fuzz/corpus/$1")
    if [ -n "$runs" ]; then
        length=(-seed=1 -runs=$((runs + $(find "$root/tests/fuzz/corpus/$1" -type f | wc -l))))
        inputs=("$build/fixed/$1" "$root/tests/fuzz/corpus/$1")
        rm -rf "$build/fixed/$1" # what is found does not depend on what ran before
    fi
    mkdir -p "${inputs[0]}"
    UBSAN_OPTIONS=print_stacktrace=1 ASAN_OPTIONS=allocator_may_return_null=1 \
        nice "$build/bin/fuzz" --target="$1" "${length[@]}" -timeout=10 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix="$keep/$1-" "${inputs[@]}" >"$3" 2>&1
}

# repeats TARGET INPUT: does it take long again? The clock also runs while others have the processor.
repeats() {
    ! "$build/bin/fuzz" --target="$1" -timeout=60 -rss_limit_mb=2048 "$2" >/dev/null 2>&1 ||
        ! (ulimit -t 10 && "$build/bin/fuzz" --target="$1" -rss_limit_mb=2048 "$2") >/dev/null 2>&1
}

# One target, in the background. Its row is all it prints; its own words go to a log.
fuzz() {
    local target=$1 log=$build/logs/$1.log code covered=0 inputs=0 found=none input begin=$SECONDS more
    if [ ! -x "$build/bin/fuzz" ]; then
        echo "| $target | 0 | 0 | 0 | FOUND: no program $build/bin/fuzz |"
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
