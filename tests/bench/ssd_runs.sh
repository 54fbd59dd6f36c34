#!/usr/bin/env bash
# Real runs whose optimizer state is on disk: bytes against the formula, memory against the plan, step times against
# the same run in memory and against their forecast, the same weights at the end. A forecast is made of rates that are
# measured first: the disk's while it reads and writes at once, the layers' of two of them. FOLDER is where the state goes; the host is given as little
# memory as the plan needs, so that the state is at least 2.5 times as large.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
usage="tests/bench/ssd_runs.sh FOLDER    prints a table; STEPS=6, THREADS=1, MICROS=4, SEQ=64, ROWS=regex, CONFIG=model, DISK_SECONDS=10 and MILLRACE=program may be given"
[ $# -eq 1 ] && [ -d "$1" ] || { echo "$usage" && exit 2; }
scratch=$1
millrace=${MILLRACE:-$root/build/release/bin/millrace}
shared=${MILLRACE_SHARED:-$root/../shared}
config=${CONFIG:-$root/tests/bench/configs/280m.json}
steps=${STEPS:-6}
threads=${THREADS:-1}
micros=${MICROS:-4}
seq=${SEQ:-64}
rows=${ROWS:-.} # of the names
disk_seconds=${DISK_SECONDS:-10}
folder=$(mktemp -d "${TMPDIR:-/tmp}/millrace-ssd.XXXXXX")
trap 'rm -rf "$folder"' EXIT
export XDG_DATA_HOME=$folder # rates are measured afresh

field() { sed -n "s/.*\"$1\":\(-\{0,1\}[0-9.e+-]*\).*/\1/p"; }
# of a tier in a plan's JSON
tier() { sed -n "s/.*{\"budget_bytes\":[0-9]*,\"kinds\":[^]]*\],\"tier\":\"$1\",\"total_bytes\":\([0-9]*\)}.*/\1/p"; }
median() { sort -g | awk '{v[NR] = $1} END {print NR % 2 ? v[(NR + 1) / 2] : (v[NR / 2] + v[NR / 2 + 1]) / 2}'; }
# of the last N
mean() { tail -n "$1" | awk '{sum += $1} END {print sum / NR}'; }

arguments() {
    echo --data "$shared/data/datasets/tinyshakespeare.txt" --seq-len "$seq" --accumulate "$micros" --precision bf16 \
        --recompute block --device cpu --threads "$threads" --device-memory 8GiB --json --policy "$@"
}

# row NAME POLICY [ARGUMENTS...]: from the second step on, when late parts are there.
row() {
    local name=$1 host
    shift
    [[ $name =~ $rows ]] || return 0
    rm -rf "$folder/millrace" # what the machine does varies within minutes
    "$millrace" bench disk --disk-path "$scratch" --bytes 1GiB --seconds "$disk_seconds" --json >>"$folder/disk"
    # shellcheck disable=SC2046 # words
    "$millrace" plan --model "$config" $(arguments "$@") >"$folder/plan"
    host=$(tier host <"$folder/plan")
    rm -rf "$folder/run"
    # shellcheck disable=SC2046
    /usr/bin/time -f '%M' -o "$folder/rss" "$millrace" train --from-scratch "$config" \
        --tokenizer "$shared/data/models/stories260K/tokenizer.model" $(arguments "$@") \
        --host-memory "$host" --threaded-device --steps "$steps" --eval-every 0 --hold-out 0 \
        --out "$folder/run" --db "$folder/h.db" >"$folder/log"
    grep '"event":"step"' "$folder/log" | tail -n +2 >"$folder/steps"
    local device held read wrote parameters
    device=$(tier device <"$folder/plan")
    parameters=$(field parameters <"$folder/plan")
    read=$(field disk_read_bytes <"$folder/steps" | median)
    wrote=$(field disk_write_bytes <"$folder/steps" | median)
    if [ -n "${window:-}" ]; then # what a step moves depends on its place in it: the mean of the last
        read=$(field disk_read_bytes <"$folder/steps" | mean "$window")
        wrote=$(field disk_write_bytes <"$folder/steps" | mean "$window")
    fi
    held=$(($(cat "$folder/rss") * 1024))
    awk -v name="$name" -v wall="$(field wall_ms <"$folder/steps" | median)" \
        -v forecast="$(planned predicted_step_ms)" -v planned="$(planned predicted_compute_ms)" \
        -v waits="$(planned disk)" \
        -v compute="$(field compute_ms <"$folder/steps" | median)" -v disk="$(field disk <"$folder/steps" | median)" \
        -v host="$host" -v device="$device" -v held="$held" -v foreseen="$(planned process_bytes)" -v read="$read" -v wrote="$wrote" -v p="$parameters" \
        -v hash="$(sed -n 's/.*"weights_hash":"\([0-9a-f]\{8\}\).*/\1/p' "$folder/log" | tail -n 1)" 'BEGIN {
        printf "| %s | %.0f (%.0f, %+.0f %%) | %.0f (%.0f) | %.0f (%.0f) | %.2f / %.2f | %.2f | %.1f | %.0f + %.0f | %.0f (%.0f, %+.1f %%) | %s |\n", name,
            wall, forecast, 100 * (forecast / wall - 1), compute, planned, disk, waits, read / p, wrote / p, host / p,
            12 * p / host, host / 1e6, device / 1e6, held / 1e6, foreseen / 1e6,
            100 * (foreseen / held - 1), hash }'
}

# Of the last plan.
planned() { field "$1" <"$folder/plan" | tail -n 1; }

echo "| policy | step ms (forecast, off by) | compute ms (forecast) | stalled by disk ms (forecast) | bytes read / written, per parameter | host bytes per parameter | state / host memory | planned: host + device MB | largest process MB (planned, off by) | weights |"
echo "|---|---|---|---|---|---|---|---|---|---|"
row "resident" resident
row "streamed, a quarter late" streamed --policy-option late=0.25
for late in 0 0.25 1; do
    row "ssd-vertical, $late late" ssd-vertical --policy-option "late=$late" --policy-option tile=16MiB --disk-path "$scratch"
done
row "ssd-vertical, half on disk" ssd-vertical --policy-option late=0.25 --policy-option disk-share=0.5 --policy-option tile=16MiB --disk-path "$scratch"
row "ssd-vertical, weights too" ssd-vertical --policy-option late=0.25 --policy-option weights-on-disk=1 --policy-option tile=16MiB --disk-path "$scratch"
row "ssd-vertical, all on disk" ssd-vertical --policy-option late=0.25 --policy-option weights-on-disk=1 --policy-option gradients-on-disk=1 --policy-option tile=16MiB --disk-path "$scratch"
row "ssd-vertical, activations too" ssd-vertical --policy-option late=0.25 --policy-option weights-on-disk=1 --policy-option gradients-on-disk=1 --policy-option boundaries-on-disk=1 --policy-option tile=16MiB --disk-path "$scratch"
row "ssd-vertical, no clipping" ssd-vertical --clip 0 --policy-option late=0.25 --policy-option tile=16MiB --disk-path "$scratch"
row "ssd-vertical, all on disk, no clipping" ssd-vertical --clip 0 --policy-option late=0.25 --policy-option weights-on-disk=1 --policy-option gradients-on-disk=1 --policy-option tile=16MiB --disk-path "$scratch"
for late in 0 0.5; do
    row "ssd-vertical, all on disk, no clipping, $late late" ssd-vertical --clip 0 --policy-option "late=$late" --policy-option weights-on-disk=1 --policy-option gradients-on-disk=1 --policy-option tile=16MiB --disk-path "$scratch"
done
row "ssd-vertical, activations too, no clipping" ssd-vertical --clip 0 --policy-option late=0.25 --policy-option weights-on-disk=1 --policy-option gradients-on-disk=1 --policy-option boundaries-on-disk=1 --policy-option tile=16MiB --disk-path "$scratch"
all_on_disk=(ssd-vertical --clip 0 --disk-path "$scratch")
for option in late=0.25 weights-on-disk=1 gradients-on-disk=1 tile=16MiB; do
    all_on_disk+=(--policy-option "$option")
done
for order in by-layer-flip by-microbatch; do
    row "ssd-vertical, all on disk, no clipping, $order" "${all_on_disk[@]}" --policy-option "order=$order"
done
for order in by-layer by-layer-flip by-microbatch; do
    row "compact state, all on disk, no clipping, $order" "${all_on_disk[@]}" --policy-option state=compact --policy-option "order=$order"
done
row "resident, no clipping" resident --clip 0
row "ssd-vertical, compact state" ssd-vertical --policy-option late=0.25 --policy-option state=compact --policy-option tile=16MiB --disk-path "$scratch"
for interval in 4 16; do # a warm-up step, and three windows: what the last moves is what every later one does
    for site in host device; do
        steps=$((1 + 3 * interval)) window=$interval row "zenflow, windows of $interval, sums on the $site" zenflow --policy-option disk-share=1 --policy-option "interval=$interval" --policy-option "accumulate-on=$site" --policy-option warmup=1 --policy-option tile=16MiB --disk-path "$scratch"
    done
done
