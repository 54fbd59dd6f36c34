#!/usr/bin/env bash
# Runs that are killed (SIGKILL) at random instants and resumed must end with the bits of one that was left alone:
# every checkpoint's hash and the last one's, a history without a step twice, and nothing left lying about.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)

usage() {
    cat <<'TEXT'
tests/bench/soak.sh [--kills N] [--policy P[,P...]] [--folder F] [--steps N] [--every N] [--seed N]
              [--precision P] [--device D] [--threads N] [--model M --data T] [--with OPTIONS]
tests/bench/soak.sh --fuzz [options of fuzz.sh]    the fuzz targets instead, 20 minutes each
tests/bench/soak.sh --ptx [--help]                 the PTX machine instead: all that the gate leaves out

Trains the bundled sample, or the model of folder M on T, under each policy, kills it N times
(default 100), and prints a table.
P is a policy and its options, as ssd-vertical:late=0.5:tile=64KiB; the default is all policies.
lora/P trains an adapter under it, qlora/P one beside a model in 4 bits, layers/P some layers,
modules/P an adapter and the embedding, tokens/P an adapter and rows of the embedding,
light/P all weights by a light optimizer at 24 bits, random/P at 16 bits, adalomo/P, apollo/P, grass/P and mezo/P by others,
blocks/P one block after the other.
F is a folder on the disk to be tested (default: the temporary folder); state on disk goes there.
A run has --steps (default 60), a checkpoint every --every of them (default 2) and an evaluation
every fourth, and keeps two checkpoints and the best; where it ends before the last kill, another
begins. OPTIONS are more of train, as "--pack --clip 0". Ends with 1 if anything differs.
MILLRACE=program may be given.
TEXT
}

kills=100
steps=60
every=2
precision=bf16
threads=1
device=cpu
model=$root/resources/sample/model
data=$root/resources/sample/train.jsonl
more=
seed=$((RANDOM * 32768 + RANDOM))
place=${TMPDIR:-/tmp}
policies=resident,resident:state=compact,zero-offload,zero-offload:late=0.5,zero-offload-dpu,deep-optimizer-states,zenflow:interval=2
policies+=,zenflow:interval=3:state=compact,zenflow:interval=3:disk-share=0.5:tile=64KiB,streamed:late=0.25
policies+=,streamed:device-share=0.5:state=compact
policies+=,ssd-vertical:late=0.25:tile=256KiB,ssd-vertical:disk-share=0.5:state=compact:tile=64KiB
policies+=,ssd-vertical:weights-on-disk=1:gradients-on-disk=1:tile=64KiB
policies+=,lora/resident,lora/streamed:buffers=1,lora/ssd-vertical:weights-on-disk=1:buffers=1
policies+=,qlora/resident,qlora/streamed:buffers=1,qlora/ssd-vertical:weights-on-disk=0.5
policies+=,modules/streamed,modules/ssd-vertical:disk-share=0.5:tile=64KiB,tokens/streamed
policies+=,light/resident,light/streamed:tile=64KiB,light/ssd-vertical:weights-on-disk=1:tile=64KiB,random/streamed
policies+=,blocks/resident,blocks/streamed:buffers=1,blocks/ssd-vertical:weights-on-disk=0.5:tile=64KiB
policies+=,apollo/streamed:tile=64KiB,grass/streamed:tile=64KiB,mezo/streamed:tile=64KiB,adalomo/zero-offload,layers/streamed,layers/ssd-vertical:late=0.25:tile=64KiB
if [ "${1:-}" = --fuzz ]; then
    shift
    exec "$root/tests/bench/fuzz.sh" "$@"
fi
if [ "${1:-}" = --ptx ]; then
    shift
    exec "$root/tests/bench/soak_ptx.sh" "$@"
fi
while [ $# -gt 0 ]; do
    case $1 in
    -h | --help) usage && exit 0 ;;
    esac
    [ $# -ge 2 ] || { usage >&2 && exit 2; }
    case $1 in
    --kills) kills=$2 ;;
    --policy) policies=$2 ;;
    --folder) place=$2 ;;
    --steps) steps=$2 ;;
    --every) every=$2 ;;
    --seed) seed=$2 ;;
    --precision) precision=$2 ;;
    --threads) threads=$2 ;;
    --device) device=$2 ;;
    --model) model=$2 ;;
    --data) data=$2 ;;
    --with) more=$2 ;;
    *) usage >&2 && exit 2 ;;
    esac
    shift 2
done
[[ $kills =~ ^[1-9][0-9]*$ && $steps =~ ^[1-9][0-9]*$ && $every =~ ^[1-9][0-9]*$ && $seed =~ ^[0-9]+$ && -d $place ]] ||
    { usage >&2 && exit 2; }

millrace=${MILLRACE:-$root/build/release/bin/millrace}
folder=$(mktemp -d "$place/millrace-soak.XXXXXX")
disk=$folder/disk
mkdir "$disk"
export XDG_DATA_HOME=$folder # its own history and rates
# shellcheck source=tests/bench/soak_life.sh
. "$root/tests/bench/soak_life.sh"
trap 'end_life; rm -rf "$folder"' EXIT
RANDOM=$((seed % 32768))

# command POLICY[:KEY=VALUE...]: sets `arguments`, all but where the run goes.
command_of() {
    local parts trained=() rate=1e-3
    case $1 in
    lora/* | qlora/*) trained=(--method "${1%%/*}" --rank 4) ;;
    layers/*) trained=(--train-layers 1-2) ;;
    modules/*) trained=(--method lora --rank 4 --modules-to-save embed_tokens,lm_head) ;;
    blocks/*) trained=(--train blocks --block-steps 3) ;;
    light/*) trained=(--optimizer factored) ;;
    random/*) trained=(--optimizer factored --weights bf16-random) ;;
    adalomo/*) trained=(--optimizer adalomo) ;;
    apollo/*) trained=(--optimizer apollo-mini) ;;
    grass/*) trained=(--optimizer grass) ;;
    mezo/*) trained=(--optimizer mezo) rate=1e-5 ;;
    tokens/*) trained=(--method lora --rank 4 --trainable-tokens 20-40,300) ;;
    esac
    IFS=: read -ra parts <<<"${1#*/}"
    arguments=(--model "$model" --data "$data"
        --seq-len 48 --micro-batch 2 --accumulate 2 --lr "$rate" --precision "$precision" --device "$device"
        --threads "$threads" --steps "$steps" --eval-every 4 --hold-out 0.01 --checkpoint-every "$every"
        --policy "${parts[0]}" ${trained[@]+"${trained[@]}"})
    local option options
    read -ra options <<<"$more"
    arguments+=(${options[@]+"${options[@]}"})
    for option in "${parts[@]:1}"; do
        arguments+=(--policy-option "$option")
    done
    if [[ ${parts[0]} == ssd-* || $1 == *disk-share=* ]]; then
        arguments+=(--disk-path "$disk")
    fi
}

# The run that is left alone. Sets `span`: a life lasts up to a third of it.
whole_run() {
    local begin=${EPOCHREALTIME/./}
    rm -rf "$folder/whole"
    "$millrace" train "${arguments[@]}" --out "$folder/whole" --db "$folder/h.db" --json \
        >"$folder/whole.log" 2>"$folder/errors" || { problem "the run that is left alone" && return 1; }
    span=$(((${EPOCHREALTIME/./} - begin) / 3000)) # ms
    [ "$span" -gt 0 ] || span=1
}

# Compares a run that ended with the one that was left alone.
check_run() {
    # Every line of the killed one's must be in the other's; the last is the end's.
    hashes "$folder/run.log" >"$folder/run.hashes"
    hashes "$folder/whole.log" >"$folder/whole.hashes"
    if grep -vxF -f "$folder/whole.hashes" "$folder/run.hashes" >"$folder/errors" ||
        [ "$(tail -n 1 "$folder/run.hashes")" != "$(tail -n 1 "$folder/whole.hashes")" ]; then
        problem "other weights than those of the run that was left alone"
    fi
    curve "$(run_id "$folder/run.log")" >"$folder/run.curve"
    curve "$(run_id "$folder/whole.log")" >"$folder/whole.curve"
    [ "$(wc -l <"$folder/whole.curve")" -eq "$steps" ] || problem "a history without all steps"
    diff "$folder/whole.curve" "$folder/run.curve" >"$folder/errors" || problem "another history"
    local trained=model/model.safetensors
    [ ! -d "$folder/whole/adapter" ] || trained=adapter/adapter_model.safetensors
    cmp -s "$folder/whole/$trained" "$run/$trained" || problem "another model"
    # A prepared model is kept for the runs to come, whole.
    local left
    left=$(find "$disk" -mindepth 1 ! -path "$disk/millrace-base-*" -o -name "*.part")
    [ -z "$left" ] || problem "left in the scratch folder: $left"
    ! compgen -G "$run/checkpoints/.step-*" >/dev/null || problem "half a checkpoint was left"
    diff <(ls "$folder/whole/checkpoints") <(ls "$run/checkpoints") >"$folder/errors" ||
        problem "other checkpoints were kept"
    ! grep -q checkpoint_broken "$folder/run.log" || problem "a kill broke a checkpoint"
    runs=$((runs + 1))
}

# One policy: a row of the table.
soak() {
    killed=0 inside=0 opening=0 resumed=0 anew=0 runs=0 problems=0
    command_of "$1"
    whole_run || return 0
    while [ "$problems" -eq 0 ]; do
        fresh_run
        until live; do
            [ "$problems" -eq 0 ] || break 2
        done
        check_run
        [ "$killed" -lt "$kills" ] || break
    done
}

failed=0
echo "seed $seed"
echo "| policy | kills | inside a checkpoint | while opening | resumes | begun again | runs | weights | equal |"
echo "|---|---|---|---|---|---|---|---|---|"
IFS=, read -ra list <<<"$policies"
for policy in "${list[@]}"; do
    soak "$policy"
    equal=yes
    if [ "$problems" -gt 0 ]; then
        equal=NO
        failed=1
    fi
    weights=$(hashes "$folder/whole.log" | tail -n 1)
    weights=${weights#* }
    echo "| $policy | $killed | $inside | $opening | $resumed | $anew | $runs | ${weights:0:8} | $equal |"
done
exit $failed
