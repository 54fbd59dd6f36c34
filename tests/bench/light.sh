#!/usr/bin/env bash
# Light optimizers beside AdamW: held-out loss, time under a slow link, bytes of plans. The figures are light.md.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
usage="tests/bench/light.sh quality|speed|plans
quality   trains the sample (three seeds, five rates a method; METHODS='blocks 1e-3' one of them) and, with STORIES=model and SHAKESPEARE=text,
          a second model; JOBS=2 runs side by side, RATES=\"1 3.2\" factors instead of five, LONGER=20 times the steps
speed     step times under a simulated link (LINKS=\"2 12\" GB/s) at 1, 4 and 16 micro-batches, in TURNS=3
plans     host and device memory for PCs of four sizes, by method
MILLRACE=program may be given"
[ $# -eq 1 ] || { echo "$usage" && exit 2; }
millrace=${MILLRACE:-$root/build/release/bin/millrace}
[ -x "$millrace" ] || { echo "$millrace is missing: app/run builds it" && exit 2; }
folder=$(mktemp -d "${TMPDIR:-/tmp}/millrace-light.XXXXXX")
trap 'rm -rf "$folder"' EXIT
export XDG_DATA_HOME=$folder # its own history, and no rates of this machine

# one NAME RATE SEED ARGUMENTS...: prints "NAME RATE SEED LOSS".
one() {
    local name=$1 rate=$2 seed=$3
    shift 3
    local out=$folder/$name-$rate-$seed
    "$millrace" train "$@" --lr "$rate" --seed "$seed" --threads 1 --device cpu --eval-every 0 --checkpoint-minutes 0 \
        --out "$out" --db "$out.db" >"$out.log" 2>&1 || { echo "$name $rate $seed failed" && return; }
    echo "$name $rate $seed $("$millrace" eval --model "$out/model" "${evaluated[@]}" --threads 1 2>&1 |
        sed -n 's/^loss \([0-9.]*\) .*/\1/p')"
    rm -rf "$out" "$out".*
}

# task TITLE STEPS SCALE ARGUMENTS...: a row a method with the loss at its best rate, by seed; SCALE is that of rates.
task() {
    local title=$1 scale=$2
    shift 2
    local rows=("adamw 5.6e-4" "factored 1e-3" "adalomo 1e-2" "sgd-normalised 3.2e-4" "factored/24bit 1e-3"
        "factored/bf16-random 1e-3" "blocks 1e-3" "apollo-mini 1.8e-3" "grass 1.8e-3" "mezo 1e-5")
    [ -z "${METHODS:-}" ] || rows=("$METHODS")
    local row method middle factor seed rate
    for row in "${rows[@]}"; do
        read -r method middle <<<"$row"
        for factor in ${RATES:-.1 .32 1 3.2 10}; do
            rate=$(awk -v m="$middle" -v f="$factor" -v s="$scale" 'BEGIN { printf "%.2e", m * f * s }')
            for seed in 1 2 3; do
                local how=(--optimizer "${method%%/*}" --weights fp32 --precision fp32)
                [ "$method" = "${method%%/*}" ] ||
                    how=(--optimizer "${method%%/*}" --weights "${method#*/}" --precision bf16)
                [ "$method" != blocks ] || how=(--train blocks --block-steps 10 --precision fp32)
                one "${method/\//-}" "$rate" "$seed" "$@" "${how[@]}" &
                while [ "$(jobs -rp | wc -l)" -ge "${JOBS:-2}" ]; do wait -n; done
            done
        done
    done | cat >"$folder/$title.losses"
    wait
    echo "| $title: method | best rate | loss by seed | mean | mean at the rates below and above |"
    echo "|---|---|---|---|---|"
    sort -k3,3n "$folder/$title.losses" | awk '$4 != "failed" { sum[$1 " " $2] += $4; all[$1 " " $2] = all[$1 " " $2] " " $4; n[$1 " " $2]++ }
        END { for (k in sum) print k, sum[k] / n[k], all[k] }' | sort -k1,1 -k2,2g |
        awk '{ if ($1 != name) { row(); name = $1; n = 0 }
               rate[n] = $2; mean[n] = $3; losses[n] = $4 " " $5 " " $6; n++ }
             function beside(i) { return i >= 0 && i < n ? sprintf("%.3f", mean[i]) : "-" }
             function row(   i, best) {
                 if (name == "") return
                 best = 0
                 for (i = 1; i < n; i++) if (mean[i] < mean[best]) best = i
                 printf("| %s | %s | %s | %.3f | %s, %s |\n", name, rate[best], losses[best], mean[best],
                     beside(best - 1), beside(best + 1)) }
             END { row() }'
}

quality() {
    evaluated=(--data "$root/resources/sample/eval.jsonl")
    task sample 1 --model "$root/resources/sample/model" --data "$root/resources/sample/train.jsonl" --hold-out 0 \
        --steps $((160 * ${LONGER:-1})) --micro-batch 8 --accumulate 1 --warmup $((8 * ${LONGER:-1}))
    [ -n "${STORIES:-}" ] || return 0
    local bytes
    bytes=$(stat -c %s "$SHAKESPEARE")
    head -c $((bytes * 9 / 10)) "$SHAKESPEARE" >"$folder/train.txt"
    head -c $((bytes * 9 / 10 + 12000)) "$SHAKESPEARE" | tail -c 12000 >"$folder/held.txt"
    evaluated=(--data "$folder/held.txt" --seq-len 128)
    task stories260K 3.2 --model "$STORIES" --data "$folder/train.txt" --hold-out 0 --seq-len 128 --steps $((100 * ${LONGER:-1})) \
        --micro-batch 4 --accumulate 1 --warmup $((5 * ${LONGER:-1}))
}

# step LINK MICROS ARGUMENTS...: median milliseconds of a step.
step() {
    local link=$1 micros=$2
    shift 2
    "$millrace" bench step --device cpu --model "$root/tests/bench/configs/30m.json" --precision bf16 --recompute block \
        --seq-len 32 --micro-batch 1 --accumulate "$micros" --steps 3 --link "${link}GB/s" --threads 1 --json "$@" |
        sed -n 's/.*"event":"step".*"wall_ms":\([0-9.]*\).*/\1/p' | sort -g | sed -n 2p
}

speed() {
    echo "| link GB/s | micro-batches | zero-offload fp32 | zero-offload compact | streamed AdamW | light, 24 bit | fastest of the others by light |"
    echo "|---|---|---|---|---|---|---|"
    local link micros turn column
    for link in ${LINKS:-2 12}; do
        for micros in 1 4 16; do
            rm -f "$folder"/column.*
            for ((turn = 0; turn < ${TURNS:-3}; turn++)); do
                step "$link" "$micros" --policy zero-offload >>"$folder/column.1"
                step "$link" "$micros" --policy zero-offload --policy-option state=compact >>"$folder/column.2"
                step "$link" "$micros" --policy streamed >>"$folder/column.3"
                step "$link" "$micros" --policy streamed --optimizer factored >>"$folder/column.4"
            done
            for column in 1 2 3 4; do sort -g "$folder/column.$column" | sed -n "$(((${TURNS:-3} + 1) / 2))p"; done | tr '\n' ' ' |
                awk -v link="$link" -v micros="$micros" '{ least = $1 < $2 ? $1 : $2; least = least < $3 ? least : $3
                    printf "| %s | %s | %.0f ms | %.0f ms | %.0f ms | %.0f ms | %.2f |\n", link, micros, $1, $2, $3, $4, least / $4 }'
        done
    done
}

# plan MODEL DEVICE_GB HOST_GB ARGUMENTS...: "yes (device / host GB)" or "no".
plan() {
    local model=$1 device=$2 host=$3
    shift 3
    "$millrace" plan --model "$root/tests/bench/configs/$model.json" --device cpu --precision bf16 --seq-len 1024 \
        --accumulate 8 --steps 1000 --device-memory "${device}GB" --host-memory "${host}GB" --json "$@" 2>/dev/null |
        awk '{ fits = /"fits":true/
               match($0, /"tier":"device","total_bytes":[0-9]*/); d = substr($0, RSTART, RLENGTH); sub(/.*:/, "", d)
               match($0, /"tier":"host","total_bytes":[0-9]*/); h = substr($0, RSTART, RLENGTH); sub(/.*:/, "", h)
               printf fits ? "%.1f / %.1f" : "-", d / 1e9, h / 1e9 }'
}

plans() {
    echo "Device / host GB of the plan that fits, of 1,024 tokens a sequence and 8 a step; -: none does. Of the host's"
    echo "memory 12.5 of 16, 27.5 of 32 and 58 of 64 GB are given."
    echo
    echo "| model | PC: device, host GB | AdamW | AdamW, compact | light, 24 bit | light, 16 bit | blocks in turn | LoRA, rank 16 | QLoRA, rank 16 |"
    echo "|---|---|---|---|---|---|---|---|---|"
    local model pc
    for model in ${MODELS:-qwen2.5-1.5b qwen3-4b qwen3-8b qwen3-14b}; do
        for pc in ${MACHINES:-8,12.5,16 8,27.5,32 12,27.5,32 16,27.5,32 24,58,64}; do
            IFS=, read -r device host whole <<<"$pc"
            echo "| $model | $device, $whole | $(plan "$model" "$device" "$host") | $(plan "$model" "$device" "$host" \
                --policy-option state=compact) | $(plan "$model" "$device" "$host" --optimizer factored) | $(plan \
                "$model" "$device" "$host" --optimizer factored --weights bf16-random) | $(plan "$model" "$device" \
                "$host" --train blocks --block-steps 7) | $(plan "$model" "$device" "$host" --method lora) | $(plan "$model" "$device" "$host" --method qlora) |"
        done
    done
}

case $1 in
quality | speed | plans) "$1" ;;
*) echo "$usage" && exit 2 ;;
esac
