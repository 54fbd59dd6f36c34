#!/usr/bin/env bash
# vector_stores.sh NVCC SOURCE FOLDER: compiles the kernels that work on packs of elements to PTX and
# looks at their stores. A kernel for packs stores packs: 8 or 16 bytes in one instruction. Where
# nvcc cannot follow an address it makes 2-byte stores of them, which nothing else would show.
#
# Kernels over plain ranges (elementKernel, adamwCompactKernel) end with single elements, and heads
# that a warp walks along rotate by them, so for these only the vector stores are asked for.
set -euo pipefail

nvcc=$1
source=$2
folder=$3
mkdir -p "$folder"
unit=$folder/packed.cu
for op in accumulate adamw adamw_compact attention_partials chosen_rows cross_entropy dequantize_nf4 dropout \
    elementwise head_norm_rope head_norm_rope_backward input_codes light_update lookup quantize rms_norm \
    rms_norm_backward rope scale_columns softcap square_sums swiglu; do
    printf '#include "gpu/ops/%s.cu"\n' "$op"
done > "$unit"
# rms_norm and its backward name their helpers alike.
sed -i '/rms_norm_backward/d' "$unit"
"$nvcc" -std=c++20 -ptx -arch=compute_80 -fmad=false -I"$source" -I"$source/core/api" "$unit" \
    -o "$folder/packed.ptx"
"$nvcc" -std=c++20 -ptx -arch=compute_80 -fmad=false -I"$source" -I"$source/core/api" \
    "$source/gpu/ops/rms_norm_backward.cu" -o "$folder/norm.ptx"

awk '
    /\.entry/ {
        name = $0
        sub(/.*\.entry /, "", name)
        sub(/\(.*/, "", name)
        # A pack of 4 or 8 elements is the first number among the template arguments.
        first = match(name, /Li[0-9]+E/) ? substr(name, RSTART + 2, RLENGTH - 3) : 0
        isPacked = first > 1 || name ~ /attentionPartials/
        if (isPacked)
            kernels[name] = 1
    }
    isPacked && /st\.global\.v[24]/ { vectors[name]++ }
    isPacked && /st\.global\.[usb](8|16)/ { singles[name]++ }
    END {
        for (name in kernels) {
            count++
            sums = name ~ /columnSums|columnSquares|columnProjection|normBlocks|rowSquares|rowProjection/ # store sums, one float a thread
            ranges = name ~ /elementKernel|adamwCompact|WalkKernel/
            if (!sums && !(name in vectors)) {
                print name " stores no packs"
                bad = 1
            }
            if (!ranges && name in singles) {
                print name " has " singles[name] " stores of one element"
                bad = 1
            }
        }
        if (count < 30) {
            print "only " count " kernels for packs were found"
            bad = 1
        }
        exit bad
    }' "$folder/packed.ptx" "$folder/norm.ptx"
