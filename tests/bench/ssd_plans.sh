#!/usr/bin/env bash
# Plans of 7B, 13B and 70B models for hosts of 32, 64 and 128 GB and a 24 GB device: what fits, what is on disk, and
# what a step moves. Nothing is trained. FOLDER is any folder; 2 TB of disk are assumed in it.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
usage="tests/bench/ssd_plans.sh FOLDER    prints a table; SEQ=4096, MICROS=8 and MILLRACE=program may be given"
[ $# -eq 1 ] && [ -d "$1" ] || { echo "$usage" && exit 2; }
millrace=${MILLRACE:-$root/build/release/bin/millrace}
[ -x "$millrace" ] || { echo "$millrace is missing: app/run builds it. $usage" && exit 2; }
scratch=$1
seq=${SEQ:-4096}
micros=${MICROS:-8}
XDG_DATA_HOME=$(mktemp -d "${TMPDIR:-/tmp}/millrace-plans.XXXXXX")
trap 'rm -rf "$XDG_DATA_HOME"' EXIT
export XDG_DATA_HOME # no rates of this machine

field() { sed -n "s/.*\"$1\":\(-\{0,1\}[0-9.e+-]*\).*/\1/p" <<<"$plan"; }
tier() { sed -n "s/.*{\"budget_bytes\":[0-9]*,\"kinds\":[^]]*\],\"tier\":\"$1\",\"total_bytes\":\([0-9]*\)}.*/\1/p" <<<"$plan"; }
# bytes of a kind, wherever it is
kind() { sed -n "s/.*{\"bytes\":\([0-9]*\),\"kind\":\"$1\"}.*/\1/p" <<<"$plan"; }

# row MODEL NAME HOST_BYTES [ARGUMENTS...]
row() {
    local model=$1 name=$2 host=$3
    shift 3
    plan=$("$millrace" plan --model "$root/tests/bench/configs/$model.json" --policy ssd-vertical --device cpu \
        --precision bf16 --seq-len "$seq" --accumulate "$micros" --device-memory 24GB --host-memory "$host" \
        --disk-path "$scratch" --disk-space 2000GB --json "$@" || true)
    awk -v model="$model" -v name="$name" -v fits="$(sed -n 's/.*"fits":\([a-z]*\).*/\1/p' <<<"$plan")" \
        -v weights="$(kind 'weights on disk')" -v gradients="$(kind 'gradients on disk')" -v state="$(kind 'state on disk')" \
        -v boundaries="$(kind 'boundaries on disk')" \
        -v onhost="$(tier host)" -v ondevice="$(tier device)" -v ondisk="$(tier disk)" \
        -v read="$(field disk_read_bytes_per_step)" -v wrote="$(field disk_write_bytes_per_step)" \
        -v p="$(field parameters)" 'BEGIN {
        printf "| %s | %s | %s | %.0f, %.0f, %.0f %% | %.1f | %.1f | %.1f | %.0f | %.0f / %.0f | %.1f / %.1f |\n", model, name,
            fits == "true" ? "yes" : "no", 50 * weights / p, 50 * gradients / p, 10 * state / p, boundaries / 1e9, onhost / 1e9,
            ondevice / 1e9, ondisk / 1e9, read / 1e9, wrote / 1e9, read / p, wrote / p }'
}

echo "| model | host GB | fits | of weights, gradients, state on disk | activations on disk GB | host GB planned | device GB | disk GB | read / written GB a step | bytes a parameter |"
echo "|---|---|---|---|---|---|---|---|---|---|"
for model in 7b 13b 70b; do
    row "$model" "all on disk" 120GB --policy-option weights-on-disk=1 --policy-option gradients-on-disk=1 \
        --policy-option boundaries-on-disk=1
    for host in 32 64 128; do
        row "$model" "$host" "$((host - 4))GB" # a PC keeps 4 GB for itself
    done
done
