#!/usr/bin/env bash
# Breaks every rule of layering.cmake once, in a tree of its own, and expects each to be noticed.
#   layering_fails.sh CMAKE RULES    RULES: the file layering.cmake
set -euo pipefail
cmake=$1
rules=$2
root=$(mktemp -d)
trap 'rm -rf "$root"' EXIT

# listed NAME: the items of set(NAME ...).
listed() {
    awk -v name="set($1 " 'index($0, name) == 1 { on = 1 } on { print } on && /\)/ { exit }' "$rules" |
        tr -d '()' | sed "s/^set$1//" | tr -s ' \n' '\n' | grep -v '^$'
}
mapfile -t rooms < <(listed rooms)
mapfile -t floors < <(listed floors)
[ "${#rooms[@]}" -gt 10 ] && [ "${#floors[@]}" -gt 5 ] || { echo "no rooms or floors in $rules" && exit 1; }

# expect RC FOLDER LINE: a tree in which a file of FOLDER has this line.
failed=0
expect() {
    local rc=0
    rm -rf "${root:?}"/*
    mkdir -p "$root/core" "$root/gpu" "$root/ui" "$root/$2"
    printf '%s\n' "$3" >"$root/$2/x.h"
    "$cmake" -DROOT="$root" -P "$rules" >/dev/null 2>&1 || rc=1
    [ "$rc" -eq "$1" ] || { echo "$2: $3: not as expected" && failed=1; }
}

count=0
for ((i = 0; i < ${#rooms[@]}; ++i)); do
    for j in $((i - 1)) $((i + 1)); do
        [ "$j" -ge 0 ] && [ "$j" -lt ${#rooms[@]} ] || continue
        expect $((j > i)) "core/${rooms[i]}" "#include \"core/${rooms[j]}/y.h\""
        count=$((count + 1))
    done
    expect 1 "core/${rooms[i]}" '#include "core/y.h"'
done
for ((i = 0; i < ${#floors[@]}; ++i)); do
    for j in $((i - 1)) $((i + 1)); do
        [ "$j" -ge 0 ] && [ "$j" -lt ${#floors[@]} ] || continue
        expect $((j > i)) "ui/${floors[i]}" "#include \"${floors[j]}/y.h\""
        count=$((count + 1))
    done
done
expect 1 core/attic '// A room without a place.'
expect 1 core/base '#include <QString>'
expect 1 core/base '#include <cuda_runtime.h>'
for folder in gpu ui app; do
    expect 1 core/run "#include \"$folder/y.h\""
done
expect 1 gpu '#include <QString>'
expect 1 gpu '#include "ui/y.h"'
expect 1 gpu '#include "app/y.h"'
for folder in core gpu app; do
    expect 1 ui "#include \"$folder/y.h\""
done
expect 1 ui '#include <cuda_runtime.h>'
expect 0 ui '#include <millrace/session.h>'
[ "$failed" -eq 0 ] && echo "$count orders of rooms and floors, and 14 other rules"
exit "$failed"
