# shellcheck shell=bash disable=SC2154 # variables are shared with gpu.sh
# Compares the card with the PTX machine (tests/gpu/ptx), which ran the same kernels on a host: bits of
# the conformance cases, and times of kernels with times that follow from the machine's counters.
#
# Needs: figure of gpu_summary.sh, file_verdict and skip of gpu_run.sh, json_value and field of
# gpu_figures.sh, here, work.

# card_cases: name, bits and error of each case that a selftest on the card printed, with tabs.
card_cases() {
    cat "$work"/op-*.txt "$work/selftest.txt" 2>/dev/null | awk "$json_value"'
        /"bits":/ && !seen[value("case")]++ {
            printf "%s\t%s\t%s\n", value("case"), value("bits"), value("error")
        }'
}

# compare_cases DIGESTS: the cases of that file as "NAME KIND RESULT CARD MACHINE", with tabs: exact or
# near; same, other or missing; errors in tolerances. A near case may have several sets of bits.
compare_cases() {
    awk -F '\t' '
        part == 1 { bits[$1] = $2; error[$1] = $3; next }
        /^#/ { next }
        !($1 in kind) { order[++cases] = $1 }
        { kind[$1] = $2; own[$1] = $4 }
        bits[$1] == $3 { same[$1] = 1 }
        END {
            for (i = 1; i <= cases; i++) {
                c = order[i]
                result = !(c in error) ? "missing" : c in same ? "same" : "other"
                printf "%s\t%s\t%s\t%s\t%s\n", c, kind[c], result, error[c], own[c]
            }
        }' part=1 <(card_cases) part=2 "$1"
}

# count_cases: of what compare_cases prints: exact cases with the same bits and with others, likewise near
# ones, cases that are missing, the largest error of a near case, the error of the machine there.
count_cases() {
    awk -F '\t' '
        { count[$2 " " $3]++; missing += $3 == "missing" }
        $2 == "near" && $3 != "missing" {
            error = $4 == "null" ? 1e300 : $4 + 0 # null: infinite
            if (error >= worst) { worst = error; own = $5 }
        }
        END {
            print count["exact same"] + 0, count["exact other"] + 0, count["near same"] + 0,
                count["near other"] + 0, missing + 0, sprintf("%.2g", worst), own + 0
        }'
}

# part_bits: cases whose kernels leave no bit open must have the bits of the machine. Errors of the other
# cases were judged by selftest and are shown beside those of the machine.
part_bits() {
    local name='bits of the PTX machine' digests=$here/ptx_digests.txt cases line
    local same other near_same near_other missing worst own
    if [ ! -r "$digests" ]; then
        skip "$name" "ptx_digests.txt is not there"
        return 0
    fi
    cases=$(compare_cases "$digests")
    printf '%s\n' "$cases" 2>/dev/null >"$work/ptx-cases.txt"
    read -r same other near_same near_other missing worst own < <(count_cases <<<"$cases")
    if [ $((same + other + near_same + near_other)) -eq 0 ]; then
        skip "$name" "the card ran none of the cases"
        return 0
    fi
    figure "PTX machine: $same of $((same + other)) exact cases have its bits; of $((near_same + near_other))" \
        "others $near_same, largest error $worst of the tolerance, there its own $own; $missing cases not run"
    if [ "$other" -eq 0 ]; then
        file_verdict "$name" ok
        return 0
    fi
    while read -r line; do
        figure "  other bits than the PTX machine: $line"
    done < <(awk -F '\t' '$2 == "exact" && $3 == "other" { print $1 }' <<<"$cases" | head -n 5)
    file_verdict "$name" "failed: $other of $((same + other)) exact cases, listed in ptx-cases.txt"
}

# kernel_rows: kernels of a traced step, as "NAME LAUNCHES MEAN LEAST MOST" with tabs, in microseconds of a
# launch; the kernel that takes most of the time first.
kernel_rows() {
    awk "$json_value"'
        /"event":"kernel"/ {
            mean = value("mean_us")
            printf "%.1f\t%s\t%d\t%.1f\t%.1f\t%.1f\n", value("launches") * mean, value("name"),
                value("launches"), mean, value("least_us"), value("most_us")
        }' | sort -rn | cut -f 2-
}

# beside_expected MODEL CARD CSV: rows of kernel_rows as lines, with the expected time where the file has
# one. Its columns: kernel, model, card, microseconds of a launch. MODEL occurs in the model, and CARD
# ends with the card. A kernel is the name of a kernel with or without template arguments, with its op
# before a slash or not, or the op alone; of several launches the mean counts.
beside_expected() {
    awk -F '\t' -v model="$1" -v card="$2" '
        # "adamw" of "elementKernel<AdamwOp<Bf16>, 4, 2>", "rmsNorm" of "rmsNormKernel<Bf16, 8>"
        function op_of(kernel) {
            if (kernel ~ /^elementKernel</) {
                sub(/^elementKernel</, "", kernel)
                sub(/Op[<,>].*/, "", kernel)
                return tolower(substr(kernel, 1, 1)) substr(kernel, 2)
            }
            sub(/(Forward)?Kernel(<.*)?$/, "", kernel)
            return kernel
        }
        function plain(kernel) { sub(/<.*/, "", kernel); return kernel }
        function mean(kernel) { return sum[kernel] / count[kernel] }
        part == 1 {
            sub(/\r$/, "")
            fields = split($0, f, ",")
            at = length(card) - length(f[fields - 1]) + 1
            if (f[fields] <= 0 || at <= 0 || substr(card, at) != f[fields - 1]) next
            if (!index(tolower(f[fields - 2]), model)) next
            kernel = f[1]
            for (i = 2; i < fields - 2; i++) kernel = kernel "," f[i] # commas between template arguments
            gsub(/"/, "", kernel)
            sub(/^[A-Za-z]*\//, "", kernel)
            sub(/ [0-9]+$/, "", kernel)
            sum[kernel] += f[fields]
            count[kernel]++
            next
        }
        {
            line = sprintf("%s: %d launches, %s us (%s to %s)", $1, $2, $3, $4, $5)
            key = $1 in sum ? $1 : plain($1) in sum ? plain($1) : op_of($1)
            if (key in sum) line = line sprintf(", expected %.1f, %.0f %%", mean(key), 100 * $3 / mean(key))
            print line
        }' part=1 "$3" part=2 -
}

# part_kernels: kernels of the traced steps of 1.5b beside their expected times.
part_kernels() {
    local csv=$here/ptx_expected.csv traced=$work/step-1.5b-resident.txt rows card line
    rows=$(kernel_rows 2>/dev/null <"$traced")
    if [ -z "$rows" ]; then
        skip "times of kernels" "no kernel of step 1.5b was traced"
        return 0
    fi
    card=$(grep '"event":"summary"' "$traced" | field device)
    if [ ! -r "$csv" ]; then
        figure "kernels of step 1.5b: no expected times, ptx_expected.csv is not there"
        csv=/dev/null
    fi
    rows=$(beside_expected 1.5b "$card" "$csv" <<<"$rows")
    printf '%s\n' "$rows" 2>/dev/null >"$work/kernels.txt"
    [[ $csv = /dev/null || $rows == *", expected "* ]] ||
        figure "kernels of step 1.5b: ptx_expected.csv has no time for ${card:-this card}"
    while read -r line; do
        figure "kernel $line"
    done < <(head -n 6 <<<"$rows")
}
