#!/usr/bin/env bash
# Checks and measures the CUDA device on a machine that has a GPU driver and nothing else of ours:
# no network, no compiler, no Python are needed. PyTorch and the CUDA toolkit are used where they
# are found.
#
#     tests/bench/gpu.sh [FOLDER] [--only PART,PART] [--data DIR] [--out DIR] [--minutes N]
#
# FOLDER   a relocatable build (preset portable): bin/millrace and lib/. Default: build/portable.
# --only   of selftest, bench, step, finetune, sanitizer, peers. Default: all, in this order.
# --data   folder with models/stories260K and datasets/ for the fine-tune. Default: ../shared/data
#          beside the checkout; where it is not, that part says so and is skipped.
# --out    everything that was printed, a file per program run, and table.md. Default: gpu-results.
# --minutes  time for all parts together, 10 by default. A part that would run longer is ended; what
#          did not begin in time is listed as such.
#
# Prints a table in markdown last. Exit code: 0 if all that ran passed, 1 otherwise, 2 bad usage.

set -u
here=$(cd "$(dirname "$0")" && pwd)
root=$(cd "$here/../.." && pwd)
folder=
only=selftest,bench,step,finetune,sanitizer,peers
data=
out=$PWD/gpu-results
minutes=10

usage() { sed -n '2,/^$/s/^# \{0,1\}//p' "$0" >&2; exit 2; }
while [ $# -gt 0 ]; do
    case $1 in
        --only | --data | --out | --minutes)
            [ $# -ge 2 ] || usage
            declare "${1#--}=$2"; shift 2 ;;
        -*) usage ;;
        *) [ -z "$folder" ] || usage; folder=$1; shift ;;
    esac
done
folder=$(cd "${folder:-$root/build/portable}" 2>/dev/null && pwd) || { echo "no such folder: ${folder:-build/portable}" >&2; exit 2; }
millrace=$folder/bin/millrace
[ -x "$millrace" ] || { echo "$millrace is not there: build it with the preset portable" >&2; exit 2; }
mkdir -p "$out" && out=$(cd "$out" && pwd) || exit 2
rm -f "$out"/*.txt "$out"/*.json "$out"/table.md
data=${data:-$root/../shared/data}
deadline=$(($(date +%s) + minutes * 60))
failures=0

say() { printf '%s\n' "$*" | tee -a "$out/log.txt"; }
row() { printf '| %s | %s | %s |\n' "$1" "$2" "$3" >> "$out/rows.txt"; }
asked() { case ",$only," in *",$1,"*) return 0 ;; *) return 1 ;; esac }
left() { echo $((deadline - $(date +%s))); }

# field NAME: the values of a key in lines of JSON.
field() { sed -n 's/.*"'"$1"'":\("[^"]*"\|[-+0-9.eE]*\|true\|false\|null\).*/\1/p' | tr -d '"'; }

# timed SECONDS FILE COMMAND...: output in FILE.txt, errors in FILE.err.txt. Sets `outcome`.
timed() {
    local limit=$1 file=$out/$2; shift 2
    [ "$(left)" -lt "$limit" ] && limit=$(left)
    if [ "$limit" -lt 5 ]; then outcome="not begun: out of time"; return 1; fi
    say "$(date +%T)  $*"
    timeout -k 5 "$limit" "$@" > "$file.txt" 2> "$file.err.txt"
    local code=$?
    case $code in
        0) outcome=ok ;;
        124 | 137) outcome="ended after $limit s" ;;
        *) outcome="failed ($code): $(tail -n 1 "$file.err.txt" | cut -c 1-160)" ;;
    esac
    say "          $outcome"
    return $code
}

# --- where the libraries are -------------------------------------------------------------------

# A folder that holds $1: known to the system's loader, of a toolkit, of a Python wheel.
find_library() {
    local name=$1 place
    place=$(ldconfig -p 2>/dev/null | sed -n "s|.*$name .*=> \(.*\)/[^/]*|\1|p" | head -n 1)
    [ -n "$place" ] && { echo "$place"; return; }
    for place in "$folder/lib" /usr/local/cuda*/lib64 /usr/local/cuda*/targets/x86_64-linux/lib \
        /usr/local/cuda*/lib /usr/local/cuda*/extras/CUPTI/lib64; do
        [ -e "$place/$name" ] && { echo "$place"; return; }
    done
    for place in /usr/lib/python3* /usr/local/lib/python3* /opt "$HOME/.local/lib" "$HOME" ${VIRTUAL_ENV:-}; do
        place=$(timeout 15 find "$place" \( -path "*/nvidia/*/lib/$name" -o -path "*/torch/lib/$name" \) \
            2>/dev/null | head -n 1)
        [ -n "$place" ] && { dirname "$place"; return; }
    done
}

prepare() {
    local major=13 name lib
    for name in "libcublasLt.so.$major" "libcupti.so.$major"; do
        lib=$(find_library "$name")
        say "$name: ${lib:-not found}"
        [ -n "$lib" ] && LD_LIBRARY_PATH=$lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
    done
    export LD_LIBRARY_PATH
    command -v nvidia-smi > /dev/null &&
        nvidia-smi --query-gpu=name,driver_version,memory.total,clocks.max.sm,power.limit \
            --format=csv,noheader 2>/dev/null | tee "$out/gpu.txt"
    "$millrace" --version | tee -a "$out/log.txt"
}

# --- parts -------------------------------------------------------------------------------------

part_selftest() {
    timed 150 selftest "$millrace" selftest --device cuda --json || failures=$((failures + 1))
    local cases passed
    cases=$(tail -n 1 "$out/selftest.txt" 2>/dev/null | field cases)
    passed=$(tail -n 1 "$out/selftest.txt" 2>/dev/null | field passed)
    row "selftest" "${passed:-?} of ${cases:-?} cases" "$outcome"
    grep '"pass":false' "$out/selftest.txt" 2>/dev/null | head -n 20 | while read -r line; do
        row "- $(printf '%s\n' "$line" | field case)" "$(printf '%s\n' "$line" | field detail | cut -c 1-120)" "FAILED"
    done
}

part_bench() {
    local name
    for name in copy matmul adamw attention elements; do
        timed 60 "bench-$name" "$millrace" bench "$name" --device cuda --json || failures=$((failures + 1))
        [ "$outcome" = ok ] || row "bench $name" "" "$outcome"
        while read -r line; do
            row "$(printf '%s\n' "$line" | field name)" \
                "$(printf '%s\n' "$line" | awk -v o="$(printf '%s\n' "$line" | field ours)" \
                    -v l="$(printf '%s\n' "$line" | field limit)" -v u="$(printf '%s\n' "$line" | field unit)" \
                    'BEGIN { printf "%.1f of %.1f %s", o, l, u }' < /dev/null)" \
                "$(printf '%s\n' "$line" | field ratio | awk '{ printf "%.1f %%", 100 * $1 }')"
        done < "$out/bench-$name.txt"
    done
}

# one_step NAME LIMIT ARGUMENTS...
one_step() {
    local name=$1 limit=$2; shift 2
    timed "$limit" "step-$name" "$millrace" bench step --device cuda --json "$@"
    local code=$? line
    line=$(grep '"event":"summary"' "$out/step-$name.txt" 2>/dev/null)
    if [ $code -ne 0 ]; then
        # A plan that is larger than the card or the host is an answer, not a failure.
        if [ $code -eq 3 ]; then outcome="does not fit"; else failures=$((failures + 1)); fi
        row "step $name" "$(tail -n 1 "$out/step-$name.err.txt" 2>/dev/null | sed 's/^millrace: //')" "$outcome"
        return
    fi
    get() { printf '%s\n' "$line" | field "$1"; }
    row "step $name" "$(awk -v t="$(get tokens_per_second)" -v w="$(get wall_ms)" -v c="$(get compute_ms)" \
        -v o="$(get other)" -v p="$(get planned_device_bytes)" -v m="$(get peak_device_bytes)" \
        -v up="$(get h2d_bytes)" -v down="$(get d2h_bytes)" -v r="$(get recompute)" \
        'BEGIN { printf "%.0f tokens/s, %.1f ms (compute %.1f, idle %.1f), recompute %s, link %.2f + %.2f GB, device %.2f GiB planned, %.2f held",
            t, w, c, o, r, up / 1e9, down / 1e9, p / 2^30, m / 2^30 }' < /dev/null)" \
        "$(get share_of_peak | awk '{ printf "%.1f %% of the peak", 100 * $1 }')"
    line=$(grep '"event":"trace"' "$out/step-$name.txt" 2>/dev/null)
    [ -z "$line" ] || row "- beside CUPTI" "busy $(get compute_off_percent) %, to the device $(get h2d_off_percent) %, to the host $(get d2h_off_percent) %" "$(get dropped) records lost"
}

part_step() {
    local model
    local -A cupti=([0.5b-resident]=--cupti [1.5b-zero-offload]=--cupti)
    for model in 0.5b 1.5b 3b 7b; do
        one_step "$model-resident" 60 --model "$here/configs/$model.json" --seq-len 2048 --policy resident \
            --steps 5 ${cupti[$model-resident]:-}
    done
    # Locking the pages of 90 GB of host memory takes a while.
    for model in 1.5b 7b; do
        one_step "$model-zero-offload" 150 --model "$here/configs/$model.json" --seq-len 2048 \
            --policy zero-offload --accumulate 4 --steps 4 ${cupti[$model-zero-offload]:-}
    done
}

# train DEVICE: 300 steps in fp32 of a tiny model.
train() {
    rm -rf "$out/run-$1"
    timed 90 "finetune-$1" "$millrace" train --device "$1" --json --model "$data/models/stories260K" \
        --data "$data/datasets/tinyshakespeare.txt" --steps 300 --seq-len 256 --micro-batch 4 \
        --accumulate 1 --lr 5e-4 --warmup 20 --seed 3 --precision fp32 --policy resident \
        --hold-out 0.05 --eval-every 300 --out "$out/run-$1" --db "$out/run-$1.db"
}

part_finetune() {
    if [ ! -f "$data/models/stories260K/config.json" ]; then
        row "fine-tune" "" "skipped: no models/stories260K in $data (--data)"
        return
    fi
    train cpu && train cuda || { failures=$((failures + 1)); row "fine-tune" "" "$outcome"; return; }
    local device
    for device in cpu cuda; do
        grep '"event":"step"' "$out/finetune-$device.txt" | field loss > "$out/losses-$device.txt"
        grep '"event":"eval"' "$out/finetune-$device.txt" | tail -n 1 | field loss > "$out/eval-$device.txt"
    done
    local worst verdict
    worst=$(paste "$out/losses-cpu.txt" "$out/losses-cuda.txt" | head -n 20 |
        awk '{ d = $1 - $2; if (d < 0) d = -d; if (d > worst) worst = d } END { if (NR == 20) printf "%.2e", worst; else print "nan" }')
    verdict=$(awk -v w="$worst" 'BEGIN { print (w != "nan" && w + 0 <= 1e-4) ? "ok" : "FAILED" }' < /dev/null)
    [ "$verdict" = ok ] || failures=$((failures + 1))
    row "fine-tune, first 20 fp32 losses, CUDA against CPU" "largest difference $worst (limit 1e-4)" "$verdict"
    worst=$(paste "$out/eval-cpu.txt" "$out/eval-cuda.txt" |
        awk 'NF == 2 { d = ($2 - $1) / $1; if (d < 0) d = -d; printf "%.4f", 100 * d }')
    verdict=$(awk -v w="${worst:-nan}" 'BEGIN { print (w != "nan" && w + 0 <= 0.5) ? "ok" : "FAILED" }' < /dev/null)
    [ "$verdict" = ok ] || failures=$((failures + 1))
    row "fine-tune, evaluated loss after 300 steps" "CPU $(cat "$out/eval-cpu.txt"), CUDA $(cat "$out/eval-cuda.txt"), ${worst:-?} % apart (limit 0.5 %)" "$verdict"
}

part_sanitizer() {
    local tool op check
    tool=$(command -v compute-sanitizer || ls /usr/local/cuda*/bin/compute-sanitizer 2>/dev/null | head -n 1)
    if [ -z "$tool" ]; then
        row "compute-sanitizer" "" "skipped: not on this machine"
        return
    fi
    local until=$(($(date +%s) + 100))
    for op in attention attentionBackward rmsNorm rmsNormBackward crossEntropy columnEnergy normJoin; do
        for check in memcheck racecheck; do
            [ "$(date +%s)" -lt $until ] || { row "$check, selftest --op $op" "" "not begun: the part's 100 s are over"; continue; }
            timed 30 "$check-$op" "$tool" --tool $check --error-exitcode 9 "$millrace" selftest --device cuda --op $op
            # Being slow under the tool is no failure; finding something is.
            case $outcome in failed*) failures=$((failures + 1)) ;; esac
            row "$check, selftest --op $op" "$(grep -h 'ERROR SUMMARY\|RACECHECK SUMMARY' "$out/$check-$op.txt" "$out/$check-$op.err.txt" 2>/dev/null | tail -n 1 | sed 's/=*//')" "$outcome"
        done
    done
}

part_peers() {
    local python=
    for candidate in "${PYTHON:-}" python3 python; do
        [ -n "$candidate" ] && "$candidate" -c 'import torch, sys; sys.exit(not torch.cuda.is_available())' 2> /dev/null &&
            { python=$candidate; break; }
    done
    if [ -z "$python" ]; then
        row "PyTorch and DeepSpeed" "" "skipped: no Python with a PyTorch that sees the GPU (PYTHON names one)"
        return
    fi
    timed 240 peers "$python" "$here/peers/side_by_side.py" --millrace "$millrace" --out "$out/peers" --seconds 230
    row "peers" "see below" "$outcome"
}

# --- all ---------------------------------------------------------------------------------------

prepare
for part in selftest bench step finetune sanitizer peers; do
    asked $part && part_$part
done
{
    echo "| what | result | of the limit, or verdict |"
    echo "|---|---|---|"
    cat "$out/rows.txt" 2>/dev/null
    [ -s "$out/peers/table.md" ] && { echo; cat "$out/peers/table.md"; }
} > "$out/table.md"
echo
cat "$out/table.md"
[ $failures -eq 0 ]
