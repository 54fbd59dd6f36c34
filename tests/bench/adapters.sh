#!/usr/bin/env bash
# The speed of training an adapter on the CPU: ours against peft, in turns, so that both meet the same
# machine. Prints milliseconds a step, medians of the rounds and their range, and the ratios of the
# rounds; tests/bench/adapters.md keeps them. On a busy machine CLOCK=processor THREADS=1 counts the
# processor time of a step: for ours that of a run less that of a shorter one.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
millrace=${MILLRACE:-$root/build/release/bin/millrace}
rounds=${ROUNDS:-5}
steps=${STEPS:-4}
threads=${THREADS:-2}
clock=${CLOCK:-wall}
usage="tests/bench/adapters.sh PYTHON MODEL TEXT     a Python that has peft, a folder of peers/peft_step.py --make
and a text; ROUNDS=5, STEPS=4, THREADS=2, CLOCK=wall,
MODES=\"fp32 bf16 half\" and MILLRACE=program may be given"
[ $# -eq 3 ] || { echo "$usage" && exit 2; }
python=$1 model=$2 text=$3
folder=$(mktemp -d "${WORK:-${TMPDIR:-/tmp}}/millrace-adapters.XXXXXX")
trap 'rm -rf "$folder"' EXIT

# spread FIGURE...: median, least and most
spread() { printf '%s\n' "$@" | sort -g | awk -v f="$format" '{ v[NR] = $1 } END {
    printf f " (" f " to " f ")", v[int((NR + 1) / 2)], v[1], v[NR] }'; }

# train PRECISION STEPS
train() {
    rm -rf "$folder/run"
    "$millrace" train --model "$model" --data "$text" --hold-out 0 --method lora --rank 16 --lr 1e-4 \
        --seq-len 512 --micro-batch 4 --accumulate 1 --steps "$2" --precision "$1" --recompute none \
        --policy resident --device cpu --threads "$threads" --out "$folder/run" --db "$folder/h.db" --json
}

# seconds PRECISION STEPS: processor time of a run
seconds() {
    local TIMEFORMAT="%U %S"
    { time train "$@" >"$folder/log" 2>&1; } 2>&1 | awk '{ print $1 + $2 }'
}

ours_wall() {
    train "$1" $((steps + 2)) | sed -n 's/.*"event":"step".*"wall_ms":\([0-9.]*\).*/\1/p' |
        tail -n +3 | sort -g | sed -n "$((steps / 2 + 1))p"
}

ours_processor() {
    awk -v a="$(seconds "$1" 1)" -v b="$(seconds "$1" $((steps + 1)))" -v n="$steps" \
        'BEGIN { printf "%.1f", 1000 * (b - a) / n }'
}

theirs() {
    OMP_NUM_THREADS=$threads "$python" "$root/tests/bench/peers/peft_step.py" --model "$model" \
        --mode "$1" --threads "$threads" --steps "$steps" --clock "$clock" 2>/dev/null
}

grep -m1 "model name" /proc/cpuinfo
echo "load before: $(cut -d' ' -f1 /proc/loadavg)"
echo "| ms a step | Millrace | peft | peft / Millrace |"
echo "|---|---|---|---|"
for mode in ${MODES:-fp32 bf16 half}; do
    a=() b=() r=()
    for _ in $(seq "$rounds"); do
        a+=("$("ours_$clock" "${mode/half/bf16}")")
        b+=("$(theirs "$mode")")
        r+=("$(awk -v a="${a[-1]}" -v b="${b[-1]}" 'BEGIN { print b / a }')")
        echo "$mode: ${a[-1]} ${b[-1]}" >&2
    done
    format=%.0f
    line="| $mode | $(spread "${a[@]}") | $(spread "${b[@]}") |"
    format=%.2f
    echo "$line $(spread "${r[@]}") |"
done
echo "load after: $(cut -d' ' -f1 /proc/loadavg)"
