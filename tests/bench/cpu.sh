#!/usr/bin/env bash
# The host's speed: ours against the limit of the machine and against PyTorch, in turns, so that
# both meet the same machine. Wants nothing else running; prints what tests/bench/cpu.md keeps.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
millrace=${MILLRACE:-$root/build/release/bin/millrace}
rounds=${ROUNDS:-3}
usage="tests/bench/cpu.sh PYTHON [adamw|step]     a Python that has torch; ROUNDS=3 and MILLRACE=program may be given"
[ $# -ge 1 ] && [ $# -le 2 ] || { echo "$usage" && exit 2; }
python=$1
what=${2:-adamw step}
peers=$root/tests/bench/peers

# median FIGURE...
median() { printf '%s\n' "$@" | sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# figure JSON ROW KEY: of the row whose name begins so
figure() { sed -n "s/.*\"name\":\"$2.*/&/p" <<<"$1" | sed "s/.*\"$3\":\([^,}]*\).*/\1/"; }
torch_step() { "$python" "$peers/torch_step.py" --threads "$1" --mode "$2" --steps 4 | sed 's/.* \([0-9.]*\) GFLOP.*/\1/'; }
torch_adamw() { "$python" "$peers/torch_adamw.py" --threads "$1" | sed 's/.* \([0-9]*\) Mparameters.*/\1/'; }

grep -m1 "model name" /proc/cpuinfo
"$python" -c 'import torch; print("torch", torch.__version__)'
echo "load before: $(cut -d' ' -f1 /proc/loadavg)"
bench_adamw() {
    local threads json a b r
    echo
    echo "| AdamW, 8 Mi parameters | ours, GB/s | of the limit | ours, Mparameters/s | PyTorch fused | ours / PyTorch |"
    echo "|---|---|---|---|---|---|"
    for threads in 1 2; do
        a=() b=() r=()
        for _ in $(seq "$rounds"); do
            json=$("$millrace" bench adamw --threads "$threads" --json)
            a+=("$(figure "$json" adamw ours)") r+=("$(figure "$json" adamw ratio)")
            b+=("$(torch_adamw "$threads")")
        done
        awk -v t="$threads" -v a="$(median "${a[@]}")" -v r="$(median "${r[@]}")" -v b="$(median "${b[@]}")" 'BEGIN {
            p = a * 1000 / 26; printf "| threads: %d | %.1f | %.0f %% | %.0f | %.0f | %.2f |\n", t, a, 100 * r, p, b, p / b }'
    done
}

bench_step() {
    local threads mode json
    declare -A ours limit theirs
    echo
    echo "| step, 50M parameters, 2 x 512 tokens | ours, GFLOP/s | of the limit | PyTorch | ours / PyTorch |"
    echo "|---|---|---|---|---|"
    for threads in 1 2; do
        ours=() limit=() theirs=()
        for _ in $(seq "$rounds"); do
            json=$("$millrace" bench step --threads "$threads" --json)
            for mode in fp32 bf16; do
                ours[$mode]+=" $(figure "$json" "step 50M parameters, 1024 tokens, $mode" ours)"
                limit[$mode]+=" $(figure "$json" "step 50M parameters, 1024 tokens, $mode" ratio)"
                theirs[$mode]+=" $(torch_step "$threads" "$mode")"
            done
        done
        for mode in fp32 bf16; do
            # shellcheck disable=SC2086 # lists of figures
            awk -v t="$threads" -v m="$mode" -v a="$(median ${ours[$mode]})" \
                -v r="$(median ${limit[$mode]})" -v b="$(median ${theirs[$mode]})" 'BEGIN {
                printf "| %s, threads: %d | %.1f | %.0f %% | %.1f | %.2f |\n", m, t, a, 100 * r, b, a / b }'
        done
    done
}

for part in $what; do
    "bench_$part"
done
echo "load after: $(cut -d' ' -f1 /proc/loadavg)"
