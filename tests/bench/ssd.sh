#!/usr/bin/env bash
# Ours against fio: the same folder, file size, block and requests in flight, read, write and half of
# each, in rounds that take turns; medians. Run it when nothing else uses the disk.
set -euo pipefail
root=$(cd "$(dirname "$(readlink -f "${BASH_SOURCE[0]}")")/../.." && pwd)
millrace=${MILLRACE:-$root/build/release/bin/millrace}
folder=${1:-${TMPDIR:-/tmp}}
size=${SIZE:-2GiB}
rounds=${ROUNDS:-5}
seconds=${SECONDS_EACH:-3}
depth=${DEPTH:-16}
usage="tests/bench/ssd.sh [FOLDER]     prints a table; SIZE, ROUNDS, SECONDS_EACH, DEPTH and MILLRACE
may be given; needs fio and jq"
{ [ $# -le 1 ] && [ -d "$folder" ]; } || { echo "$usage" && exit 2; }
for program in fio jq "$millrace"; do
    command -v "$program" >/dev/null || { echo "$program is missing. $usage" && exit 2; }
done
work=$(mktemp -d "$folder/millrace-ssd.XXXXXX")
trap 'rm -rf "$work"' EXIT

# fio_rate RW DEPTH: MB/s and cores. The file is written whole first, as ours is.
fio_rate() {
    fio --name=ssd --filename="$work/fio" --size="${size%iB}" --bs=1M --iodepth="$2" --direct=1 \
        --ioengine=io_uring --rw="$1" --time_based --runtime="$seconds" --output-format=json |
        jq -r '.jobs[0] | "\((.read.bw_bytes + .write.bw_bytes) / 1e6) \((.usr_cpu + .sys_cpu) / 100)"'
}

median() { sort -g | awk '{ v[NR] = $1 } END { print v[int((NR + 1) / 2)] }'; }

# column FILE N: the median of its Nth column
column() { awk -v n="$2" '{ print $n }' "$1" | median; }

fio --name=fill --filename="$work/fio" --size="${size%iB}" --bs=1M --iodepth=16 --direct=1 \
    --ioengine=io_uring --rw=write --output-format=json >/dev/null
for ((round = 1; round <= rounds; round++)); do
    "$millrace" bench disk --json --disk-path "$work" --bytes "$size" --depth "$depth" \
        --seconds "$((6 * seconds))" 2>"$work/about" |
        jq -r '"\(.name | sub("disk "; "")) \(.ours) \(.cores) \(.limit)"' |
        while read -r name ours cores limit; do echo "$ours $cores $limit" >>"$work/$name.ours"; done
    fio_rate read "$depth" >>"$work/read.fio"
    fio_rate write "$depth" >>"$work/write.fio"
    fio_rate rw "$((2 * depth))" >>"$work/mixed.fio" # ours has that many each way
done

cat "$work/about"
echo "| $size, $rounds rounds | ours MB/s | bare loop | fio | ours / fio | our cores | fio's cores |"
echo "|---|---|---|---|---|---|---|"
for name in read write mixed; do
    awk -v name="$name" -v ours="$(column "$work/$name.ours" 1)" \
        -v bare="$(column "$work/$name.ours" 3)" -v fio="$(column "$work/$name.fio" 1)" \
        -v cores="$(column "$work/$name.ours" 2)" -v theirs="$(column "$work/$name.fio" 2)" 'BEGIN {
        printf "| %s | %.0f | %.0f | %.0f | %.0f %% | %.2f | %.2f |\n", name, ours, bare, fio,
            100 * ours / fio, cores, theirs }'
done
