#!/usr/bin/env bash
# Forecast against run, five rounds in turns: each round measures the machine afresh, plans every configuration and
# runs it. A forecast holds if its median is within 10 % of the runs' median, or between their fastest and slowest
# (core/decisions.md 25). Then the same of `auto`: the run it chose against the fastest exact one of each round.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
rounds=${ROUNDS:-5}
steps=${STEPS:-32}
skip=16
threads=${THREADS:-1}
usage="tests/bench/forecasts.sh      prints a table; ROUNDS=5, STEPS=32, THREADS=1, LINK=2GB/s and MILLRACE=program may be given"
[ $# -eq 0 ] || { echo "$usage" && exit 2; }
. "$root/tests/bench/policy_rows.sh"

# None of them is what rates are measured with (two blocks, half of the update on each side).
policies=("resident" "zero-offload" "zero-offload tile=4MiB" "zero-offload tile=4MiB late=1"
    "zero-offload state=compact" "zero-offload-dpu tile=4MiB warmup=8" "zenflow tile=4MiB"
    "zenflow tile=4MiB interval=2" "streamed tile=4MiB" "streamed tile=4MiB weights-on-device=0.5 boundary=device"
    "deep-optimizer-states tile=4MiB" "auto")
shapes=("256 1" "128 2")

for ((round = 0; round < rounds; ++round)); do
    rm -rf "${folder:?}"/millrace "$folder"/h.db*
    for shape in "${shapes[@]}"; do
        for policy in "${policies[@]}"; do
            # shellcheck disable=SC2086 # a shape and a policy with its options
            run_row $shape $policy
            echo "$shape|$policy|$plan|$wall" >>"$folder/rows"
            echo "round $round: $shape $policy: forecast $plan, ran $wall" >&2
        done
    done
done

echo "| policy | micro-batches x tokens | ran, ms: median (fastest to slowest) | forecast ms | off by | holds |"
echo "|---|---|---|---|---|---|"
awk -F'|' '
function median(list, n,   i, j, t) {
    for (i = 2; i <= n; ++i)
        for (j = i; j > 1 && list[j - 1] > list[j]; --j) { t = list[j]; list[j] = list[j - 1]; list[j - 1] = t }
    return n % 2 ? list[(n + 1) / 2] : (list[n / 2] + list[n / 2 + 1]) / 2
}
{
    key = $1 "|" $2
    if (!(key in count)) order[++keys] = key
    n = ++count[key]
    planned[key, n] = $3
    ran[key, n] = $4
    exact = $2 !~ /auto|zenflow|dpu|compact/
    if (exact && (!((n, $1) in best) || $4 < best[n, $1])) best[n, $1] = $4
}
END {
    for (k = 1; k <= keys; ++k) {
        key = order[k]; n = count[key]; split(key, part, "|"); split(part[1], shape, " ")
        for (i = 1; i <= n; ++i) { p[i] = planned[key, i]; r[i] = ran[key, i]; a[i] = ran[key, i] / best[i, part[1]] }
        forecast = median(p, n); wall = median(r, n)
        off = forecast / wall - 1
        near = off <= 0.1 && off >= -0.1
        spread = forecast >= r[1] && forecast <= r[n]
        holds += near || spread; within += near; sum += off < 0 ? -off : off
        printf "| %s | %s x %s | %.0f (%.0f to %.0f) | %.0f | %+.0f %% | %s |\n", part[2], shape[2], shape[1], wall,
            r[1], r[n], forecast, 100 * off, near ? "yes" : spread ? "within the spread" : "no"
        if (part[2] == "auto") autos = autos sprintf(", %.2f (%s x %s)", median(a, n), shape[2], shape[1])
    }
    printf "\n%d of %d hold, %d within 10 %%; off by %.0f %% on average. auto against the fastest exact one of its round: %s times.\n",
        holds, keys, within, 100 * sum / keys, substr(autos, 3)
}' "$folder/rows"
