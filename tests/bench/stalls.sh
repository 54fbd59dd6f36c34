#!/usr/bin/env bash
# Stalls, step times and bytes on the link of every policy on the CPU device under a throttled link (a simulated
# link: what waits for what, not how fast a card is), and each plan's forecast beside its run.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
steps=${STEPS:-40}
skip=16
threads=${THREADS:-2}
parameters=27795968 # of the model
usage="tests/bench/stalls.sh      prints a table; LINK=2GB/s, STEPS=40, THREADS=2 and MILLRACE=program may be given"
[ $# -eq 0 ] || { echo "$usage" && exit 2; }
. "$root/tests/bench/policy_rows.sh"

# row SEQ ACCUMULATE POLICY [OPTION...]
row() {
    run_row "$@"
    local seq=$1 accumulate=$2 policy=$3
    shift 3
    printf '| %s%s | %s x %s | %.0f | %.0f | %.1f %% | %.2f | %.0f | %+.0f %% | %s |\n' "$policy" \
        "${*:+ ($*)}" "$accumulate" "$seq" "$wall" "$compute" \
        "$(awk "BEGIN {print 100 * (1 - $compute / $wall)}")" \
        "$(awk "BEGIN {print ($in + $out) / $parameters}")" "$plan" \
        "$(awk "BEGIN {print 100 * ($plan / $wall - 1)}")" "$hash"
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
