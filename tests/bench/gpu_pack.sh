#!/usr/bin/env bash
# Makes the folder that goes to a machine with a card and without a network: the portable build,
# tests/bench, and the sample model with its text, laid out as in this tree. gpu.sh runs from there.
#
#     tests/bench/gpu_pack.sh FOLDER [BUILD]     BUILD: default build/portable
#
# Ends with 1 if the folder has more than 60 MiB: build for the card's architecture only.
set -euo pipefail
root=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
usage() { sed -n '2,/^set/{/^set/d;s/^# \{0,1\}//p}' "${BASH_SOURCE[0]}" >&2 && exit 2; }
[[ $# -ge 1 && $# -le 2 && $1 != -* ]] || usage
folder=$1
build=${2:-$root/build/portable}
[ -x "$build/bin/millrace" ] || { echo "$build/bin/millrace is not there: build the preset portable" >&2 && exit 2; }
[ ! -e "$folder" ] || { echo "$folder exists" >&2 && exit 2; }

mkdir -p "$folder/build/portable/lib" "$folder/build/portable/bin" "$folder/tests" "$folder/resources"
cp -L "$build/bin/millrace" "$folder/build/portable/bin/"
find -L "$build/lib" -name '*.so*' -type f -exec cp -L -t "$folder/build/portable/lib" {} +
find "$folder/build/portable" -type f -exec strip --strip-unneeded {} + 2>/dev/null || true # makes it smaller
cp -r "$root/tests/bench" "$folder/tests/"
cp -r "$root/resources/sample" "$folder/resources/"

mib=$((($(du -sb "$folder" | cut -f 1) + (1 << 20) - 1) >> 20))
echo "$folder: $mib MiB; there: bash $(basename "$folder")/tests/bench/gpu.sh"
[ "$mib" -le 60 ] || {
    echo "more than 60 MiB: build for one architecture, as -DCMAKE_CUDA_ARCHITECTURES=90" >&2
    exit 1
}
