#!/usr/bin/env bash
# Stalls, step times and bytes on the link of every policy on the CPU device under a throttled link (a simulated
# link: what waits for what, not how fast a card is), and each plan's forecast beside its run.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
millrace=${MILLRACE:-$root/build/release/bin/millrace}
shared=${MILLRACE_SHARED:-$root/../shared}
link=${LINK:-2GB/s}
steps=${STEPS:-40}
skip=16 # of these: warm-up and the first window of what works in windows
threads=${THREADS:-2}
parameters=27795968 # of the model
config=$root/tests/bench/configs/30m.json
data=$shared/data/datasets/tinyshakespeare.txt
tokenizer=$(ls "$shared"/data/models/stories260K/tokenizer.model)

usage="tests/bench/stalls.sh      prints a table; LINK=2GB/s, STEPS=40, THREADS=2 and MILLRACE=program may be given"
[ $# -eq 0 ] || { echo "$usage" && exit 2; }
folder=$(mktemp -d "${TMPDIR:-/tmp}/millrace-stalls.XXXXXX")
trap 'rm -rf "$folder"' EXIT
export XDG_DATA_HOME=$folder # rates are measured afresh

# field NAME: its numbers, a line each, from JSON lines on stdin.
field() { sed -n "s/.*\"$1\":\(-\{0,1\}[0-9.e+-]*\).*/\1/p"; }
mean() { awk '{s += $1} END {print NR ? s / NR : 0}'; }

# row SEQ ACCUMULATE POLICY [OPTION...]
row() {
    local seq=$1 accumulate=$2 policy=$3 options=() run=$folder/run log=$folder/log plan wall compute in out bytes
    shift 3
    for option in "$@"; do options+=(--policy-option "$option"); done
    local arguments=(--data "$data" --seq-len "$seq" --accumulate "$accumulate" --policy "$policy"
        ${options[@]+"${options[@]}"} --link "$link" --precision bf16 --recompute none
        --device cpu --threads "$threads" --device-memory 2GiB --json)
    plan=$("$millrace" plan --model "$config" "${arguments[@]}" | field predicted_step_ms)
    rm -rf "$run"
    "$millrace" train --from-scratch "$config" --tokenizer "$tokenizer" "${arguments[@]}" \
        --steps "$steps" --eval-every 0 --hold-out 0 --out "$run" --db "$folder/h.db" >"$log"
    # The first ones warm up. Means: steps of a window differ.
    grep '"event":"step"' "$log" | tail -n +"$((skip + 1))" >"$folder/steps"
    wall=$(field wall_ms <"$folder/steps" | mean)
    compute=$(field compute_ms <"$folder/steps" | mean)
    in=$(field h2d_bytes <"$folder/steps" | mean)
    out=$(field d2h_bytes <"$folder/steps" | mean)
    bytes=$(awk "BEGIN {print ($in + $out) / $parameters}")
    printf '| %s%s | %s x %s | %.0f | %.0f | %.1f %% | %.2f | %.0f | %+.0f %% | %s |\n' "$policy" \
        "${*:+ ($*)}" "$accumulate" "$seq" "$wall" "$compute" \
        "$(awk "BEGIN {print 100 * (1 - $compute / $wall)}")" "$bytes" "$plan" \
        "$(awk "BEGIN {print 100 * ($plan / $wall - 1)}")" \
        "$(sed -n 's/.*"weights_hash":"\([0-9a-f]\{8\}\).*/\1/p' "$log" | tail -n 1)"
}

echo "| policy | micro-batches x tokens | step ms | compute ms | stalled | link B/param | forecast ms | forecast off by | weights |"
echo "|---|---|---|---|---|---|---|---|---|"
for shape in "256 1" "256 4"; do
    read -r seq accumulate <<<"$shape"
    row "$seq" "$accumulate" resident
    row "$seq" "$accumulate" zero-offload
    row "$seq" "$accumulate" zero-offload tile=4MiB
    row "$seq" "$accumulate" zero-offload tile=4MiB late=1
    row "$seq" "$accumulate" zero-offload-dpu tile=4MiB warmup=8
    row "$seq" "$accumulate" zenflow tile=4MiB
    row "$seq" "$accumulate" zenflow tile=4MiB interval=2
    row "$seq" "$accumulate" zenflow tile=4MiB accumulate-on=device
    row "$seq" "$accumulate" streamed tile=4MiB
    row "$seq" "$accumulate" streamed tile=4MiB weights-on-device=0.5 boundary=device
    row "$seq" "$accumulate" deep-optimizer-states tile=4MiB
    row "$seq" "$accumulate" deep-optimizer-states tile=4MiB device-share=0.5
done
