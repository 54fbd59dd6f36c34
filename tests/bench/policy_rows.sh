# shellcheck shell=bash disable=SC2034,SC2154
# What stalls.sh and forecasts.sh share: one policy's plan and run. Sourced, not run. The caller sets `steps`, `skip`
# (warm-up and the first window of what works in windows) and `threads`.
millrace=${MILLRACE:-$root/build/release/bin/millrace}
shared=${MILLRACE_SHARED:-$root/../shared}
link=${LINK:-2GB/s}
config=$root/tests/bench/configs/30m.json
data=$shared/data/datasets/tinyshakespeare.txt
tokenizer=$shared/data/models/stories260K/tokenizer.model
folder=$(mktemp -d "${TMPDIR:-/tmp}/millrace-policies.XXXXXX")
trap 'rm -rf "$folder"' EXIT
export XDG_DATA_HOME=$folder # rates are measured afresh

# field NAME: its numbers, a line each, from JSON lines on stdin.
field() { sed -n "s/.*\"$1\":\(-\{0,1\}[0-9.e+-]*\).*/\1/p"; }
mean() { awk '{s += $1} END {print NR ? s / NR : 0}'; }

# run_row SEQ ACCUMULATE POLICY [OPTION...]: sets plan, wall, compute (ms), in, out (bytes a step) and hash. Means:
# steps of a window differ.
run_row() {
    local seq=$1 accumulate=$2 policy=$3 options=() run=$folder/run log=$folder/log option
    shift 3
    for option in "$@"; do options+=(--policy-option "$option"); done
    local arguments=(--data "$data" --seq-len "$seq" --accumulate "$accumulate" --policy "$policy"
        ${options[@]+"${options[@]}"} --link "$link" --precision bf16 --recompute none
        --device cpu --threads "$threads" --device-memory 2GiB --json)
    "$millrace" plan --model "$config" "${arguments[@]}" >"$folder/plan"
    plan=$(field predicted_step_ms <"$folder/plan")
    rm -rf "$run"
    "$millrace" train --from-scratch "$config" --tokenizer "$tokenizer" "${arguments[@]}" \
        --steps "$steps" --eval-every 0 --hold-out 0 --out "$run" --db "$folder/h.db" >"$log"
    grep '"event":"step"' "$log" | tail -n +"$((skip + 1))" >"$folder/steps"
    wall=$(field wall_ms <"$folder/steps" | mean)
    compute=$(field compute_ms <"$folder/steps" | mean)
    in=$(field h2d_bytes <"$folder/steps" | mean)
    out=$(field d2h_bytes <"$folder/steps" | mean)
    hash=$(sed -n 's/.*"weights_hash":"\([0-9a-f]\{8\}\).*/\1/p' "$log" | tail -n 1)
}
