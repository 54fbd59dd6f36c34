#!/usr/bin/env bash
# Fails if a source is not as clang-format 14 would write it: format.sh SOURCE-FOLDER
set -euo pipefail
cd "$1"
formatter=$(command -v clang-format-14 || command -v clang-format) || {
    echo "there is no clang-format: apt-get install clang-format-14" >&2
    exit 1
}
[[ $("$formatter" --version) == *" version 14."* ]] || {
    echo "$formatter is not version 14, whose rules these are: apt-get install clang-format-14" >&2
    exit 1
}
find app core gpu tests ui \( -name '*.cpp' -o -name '*.h' -o -name '*.cu' -o -name '*.cuh' \) -print0 |
    xargs -0 -P 2 -n 100 "$formatter" --dry-run -Werror
