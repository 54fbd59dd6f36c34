# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with gpu.sh
# Turns the JSON lines of `millrace bench` and `millrace train`, and those of the peers, into lines of
# the summary.
#
# Needs: figure of gpu_summary.sh, output and file_verdict of gpu_run.sh.

# field NAME: the values of a key, of lines of JSON.
field() { sed -n 's/.*"'"$1"'":\("[^"]*"\|[-+0-9.eE]*\|true\|false\|null\).*/\1/p' | tr -d '"'; }

# A function of awk: the value of a key of the line, without quotes.
json_value='
    function value(key, rest) {
        rest = $0
        if (!match(rest, "\"" key "\":")) return ""
        rest = substr(rest, RSTART + RLENGTH)
        if (sub(/^"/, "", rest)) sub(/".*/, "", rest)
        else sub(/[,}].*/, "", rest)
        return rest
    }'

# rates: rows of a benchmark as columns, with tabs: name, ours, limit, unit, percent of the limit.
rates() {
    awk "$json_value"'
        /"ratio":/ {
            ours = value("ours"); limit = value("limit"); unit = value("unit")
            if (unit == "GFLOP/s") { unit = "TFLOP/s"; ours /= 1000; limit /= 1000 }
            printf "%s\t%.1f\t%.1f\t%s\t%.0f\n", value("name"), ours, limit, unit, 100 * value("ratio")
        }'
}

# range_rows: one line for every kind of product, over all shapes.
range_rows() {
    awk -F '\t' '
        { split($1, word, " "); kind = word[1] " " word[2] }
        !(kind in count) { order[++kinds] = kind; low[kind] = high[kind] = $5; worst[kind] = $1 }
        { count[kind]++; limit[kind] = $3 " " $4 }
        $5 < low[kind] { low[kind] = $5; worst[kind] = $1 }
        $5 > high[kind] { high[kind] = $5 }
        END {
            for (i = 1; i <= kinds; i++) {
                k = order[i]
                printf "%s: %d to %d %% of %s over %d shapes, lowest at%s\n", k, low[k], high[k],
                    limit[k], count[k], substr(worst[k], length(k) + 1)
            }
        }'
}

# list_rows: "NAME: rate of the limit" for each row.
list_rows() { awk -F '\t' '{ printf "%s: %s of %s %s, %d %%\n", $1, $2, $3, $4, $5 }'; }

# copy_rows: the copies of one size on a line.
copy_rows() {
    awk -F '\t' '
        {
            words = split($1, word, " ")
            size = word[words - 1] " " word[words]
            way = substr($1, 6, length($1) - length(size) - 6)
            if (size != last) { if (line != "") print line; line = "copy " size ":"; comma = "" }
            last = size
            line = line comma " " way " " $2 " " $4 " (" $5 " %)"
            comma = ","
        }
        END { if (line != "") print line }'
}

# joined_rows: several short rows on a line, by the compute type in their second word.
joined_rows() {
    awk -F '\t' '
        { split($1, word, " "); type = word[2] }
        type != last || ++inLine == 7 {
            if (line != "") print line
            line = "elements " type ", of " $3 " " $4 ":"
            last = type
            inLine = 0
            comma = ""
        }
        { line = line comma " " word[1] " " $5 " %"; comma = "," }
        END { if (line != "") print line }'
}

# bench_figures NAME: of the output that was just written.
bench_figures() {
    local shape=list_rows line
    case $1 in
    matmul) shape=range_rows ;;
    elements) shape=joined_rows ;;
    copy) shape=copy_rows ;;
    esac
    while read -r line; do
        figure "$line"
    done < <(rates <"$output.txt" | "$shape")
}

# step_figures NAME: of `bench step`.
step_figures() {
    local line trace
    line=$(grep '"event":"summary"' "$output.txt") || return 0
    get() { printf '%s\n' "$line" | field "$1"; }
    figure "$1: $(awk -v t="$(get tokens_per_second)" -v w="$(get wall_ms)" -v c="$(get compute_ms)" \
        -v h="$(get host_update)" -v o="$(get other)" -v s="$(get share_of_peak)" \
        -v p="$(get planned_device_bytes)" -v m="$(get peak_device_bytes)" -v r="$(get recompute)" \
        -v up="$(get h2d_bytes)" -v down="$(get d2h_bytes)" -v ready="$(get prepare_seconds)" 'BEGIN {
        printf "%.0f tokens/s, %.1f ms (compute %.1f, host update %.1f, idle %.1f), %.1f %% of the peak, " \
            "link %.2f + %.2f GB, %.2f of %.2f GiB, recompute %s, ready in %.0f s",
            t, w, c, h, o, 100 * s, up / 1e9, down / 1e9, m / 2^30, p / 2^30, r, ready }')"
    trace=$(grep '"event":"trace"' "$output.txt") || return 0
    line=$trace
    figure "$1, ours against CUPTI: busy time off by $(get compute_off_percent) %, bytes to the device" \
        "$(get h2d_off_percent) %, to the host $(get d2h_off_percent) %, $(get dropped) records lost"
}

# compare NAME LIMIT FILE FILE: verdict on numbers that must agree, line by line. The difference is
# relative.
compare() {
    local name=$1 limit=$2 worst
    worst=$(paste "$3" "$4" 2>/dev/null | awk '
        NF != 2 { odd = 1 }
        { d = ($2 - $1) / $1; if (d < 0) d = -d; if (d > worst) worst = d }
        END { if (NR > 0 && !odd) printf "%.2e", worst }')
    if [ -z "$worst" ]; then
        file_verdict "$name" "failed: the CPU or the card printed no losses, or not as many"
    elif awk -v w="$worst" -v l="$limit" 'BEGIN { exit !(w <= l) }'; then
        file_verdict "$name" ok
        figure "$name: largest difference $worst, limit $limit"
    else
        file_verdict "$name" "failed: largest difference $worst, limit $limit"
    fi
}

# peer_figures: of torch_attention.py and torch_gpu_step.py.
peer_figures() {
    local line
    while read -r line; do
        get() { printf '%s\n' "$line" | field "$1"; }
        case $line in
        *forward_gflops*)
            figure "$(get peer), attention $(get tokens) tokens, $(get heads)/$(get kv_heads) heads of" \
                "$(get head_dim): forward $(get forward_gflops), backward $(get backward_gflops) GFLOP/s"
            ;;
        *tokens_per_second*)
            figure "$(get peer), step, recompute $(get recompute): $(get tokens_per_second) tokens/s"
            ;;
        *'"fits":'*false*) figure "$(get peer): the step does not fit" ;;
        esac
    done < <(sed 's/": /":/g' "$output.txt") # Python writes a blank after a colon
}
