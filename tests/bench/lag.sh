#!/usr/bin/env bash
# What lag costs: held-out loss after equal tokens, of the exact policy and of those that lag, three
# seeds of each, on several tasks. A policy passes a task if its mean lies within the exact policy's
# seeds, or below.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
millrace=${MILLRACE:-$root/build/release/bin/millrace}
shared=${MILLRACE_SHARED:-$root/../shared}
steps=${STEPS:-240}
threads=${THREADS:-2}
precision=${PRECISION:-bf16}
models=$shared/data/models
data=$shared/data/datasets
usage="tests/bench/lag.sh      prints a table; STEPS=240, THREADS=2, PRECISION=fp8, POLICY=zero-offload and
MILLRACE=program may be given"
[ $# -eq 0 ] || { echo "$usage" && exit 2; }
policies=("zero-offload" "zenflow" "zenflow --policy-option interval=2"
    "zenflow --policy-option host-clock=updates" "zero-offload-dpu")
[ -z "${POLICY:-}" ] || policies=("$POLICY") # one, with its options
folder=$(mktemp -d "${TMPDIR:-/tmp}/millrace-lag.XXXXXX")
trap 'rm -rf "$folder"' EXIT
export XDG_DATA_HOME=$folder

# loss SEED POLICY... : the last held-out loss
loss() {
    local seed=$1
    shift
    rm -rf "$folder/run"
    "$millrace" train "${task[@]}" --seed "$seed" --steps "$steps" --eval-every "$steps" \
        --precision "$precision" --device cpu --threads "$threads" --policy "$@" --out "$folder/run" --db "$folder/h.db" --json |
        sed -n 's/.*"event":"eval".*"loss":\([0-9.]*\).*/\1/p' | tail -n 1
}

# row NAME: a line for every policy
row() {
    local policy seeds
    for policy in "${policies[@]}"; do
        seeds=()
        for seed in 1 2 3; do
            # shellcheck disable=SC2086 # a policy and its options
            seeds+=("$(loss "$seed" $policy)")
        done
        awk -v task="$1" -v policy="${policy/--policy-option /}" -v a="${seeds[0]}" \
            -v b="${seeds[1]}" -v c="${seeds[2]}" 'BEGIN {
            printf "| %s | %s | %.4f | %.4f | %.4f | %.4f |\n", task, policy, a, b, c, (a+b+c)/3}'
    done
}

echo "| task | policy | seed 1 | seed 2 | seed 3 | mean |"
echo "|---|---|---|---|---|---|"
story=(--model "$models/stories260K" --seq-len 128 --micro-batch 8 --accumulate 1)
for rate in 1e-4 5e-4; do
    task=("${story[@]}" --data "$data/tinyshakespeare.txt" --lr $rate)
    row "stories260K on tinyshakespeare, lr $rate"
done
sample=$root/resources/sample
task=(--model "$sample/model" --data "$sample/train.jsonl" --eval-data "$sample/eval.jsonl"
    --accumulate 8 --lr 5e-4)
row "sample on its questions, lr 5e-4"
task=(--from-scratch "$models/stories260K/config.json"
    --tokenizer "$models/stories260K/tokenizer.model" --data "$data/tinyshakespeare.txt"
    --seq-len 128 --micro-batch 8 --accumulate 1 --lr 3e-3)
row "from scratch on tinyshakespeare, lr 3e-3"
