# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with gpu.sh
# The summary of gpu.sh, at most 60 lines of 180 characters, and the file that holds the results.
# Both come from what the shell remembers, so a full disk costs outputs and no verdict.
#
# Needs: work, results, total, reserve, and the verdicts of gpu_run.sh.

facts=()     # lines about the machine and the program
figures=()   # lines with measured values
state='describing the machine'
stored='not written yet'
unwritten=   # why the results file could not be written
packed_at=0  # second of the last try
packer=      # process that writes the results file, if one does

figure() { figures+=("$*"); }

# grouped PATTERN: the verdicts that match. Commands with equal verdicts share a line, which names
# the first ones.
grouped() {
    local i
    for i in "${!names[@]}"; do
        printf '%s\t%s\n' "${verdicts[i]}" "${names[i]}"
    done | awk -F '\t' -v pattern="$1" '
        $1 !~ pattern { next }
        !($1 in count) { order[++groups] = $1 }
        !count[$1]++ { list[$1] = $2; next }
        length(list[$1] $2) <= 90 && !more[$1] { list[$1] = list[$1] ", " $2; next }
        { more[$1]++ }
        END {
            for (i = 1; i <= groups; i++) {
                v = order[i]
                print "  " list[v] (more[v] ? " and " more[v] " more" : "") ": " v
            }
        }'
}

# section TITLE LINES: stdin with a title, shortened to so many lines; nothing if it is empty.
section() {
    awk -v title="$1" -v most="$2" '
        NR == 1 { print title }
        { line[NR] = $0 }
        END {
            shown = NR > most ? most - 1 : NR
            for (i = 1; i <= shown; i++) print line[i]
            if (NR > shown) print "  and " NR - shown " more lines in the results"
        }'
}

summary() {
    local head bad skipped room
    head=$(
        printf 'Millrace on a card: %s, %d of %d s\n' "$state" "$SECONDS" "$total"
        printf '%s\n' "${facts[@]}"
        printf 'results: %s\n' "${unwritten:-$stored}"
        printf '%d ok, %d not ok, %d skipped\n' "$(count_verdicts '^ok$')" "$(count_failures)" \
            "$(count_verdicts '^skipped')"
    )
    bad=$(grouped '^(failed|hung|killed)' | section 'Not ok:' 17)
    skipped=$(grouped '^skipped' | section 'Skipped:' 6)
    room=$((60 - $(printf '%s\n%s\n%s\n' "$head" "$bad" "$skipped" | wc -l) - 1))
    {
        printf '%s\n' "$head" "$bad"
        [ ${#figures[@]} -eq 0 ] || printf '  %s\n' "${figures[@]}" | section 'Figures:' "$room"
        printf '%s\n' "$skipped"
    } | grep . | cut -c 1-180 | head -n 60
}

# write_results: a temporary file beside the results, then a rename.
write_results() {
    local part=$results.part code=0
    # 1: a file grew while it was read.
    timeout -k 1 "$((reserve > 8 ? 4 : 2))" tar -C "$work" -czf "$part" --exclude=./runs . || code=$?
    if [ "$code" -gt 1 ] || ! mv -f "$part" "$results"; then
        rm -f "$part"
        return 1
    fi
}

# start_pack: writes the results beside what runs.
start_pack() {
    local errors=$work/pack.err
    packed_at=$SECONDS
    summary 2>/dev/null >"$work/summary.txt"
    : 2>/dev/null >"$errors" || errors=/dev/null
    write_results >/dev/null 2>"$errors" &
    packer=$!
}

# finish_pack: remembers whether that worked.
finish_pack() {
    local until=$((SECONDS + (reserve > 8 ? 6 : 4))) said='the disk does not answer'
    while kill -0 "$packer" && [ "$SECONDS" -lt "$until" ]; do
        sleep 0.1
    done 2>/dev/null
    if ! kill -0 "$packer" 2>/dev/null && wait "$packer"; then
        unwritten=
        stored="$results, $(($(stat -L -c %s "$results") / 1024 + 1)) KiB"
    else
        kill -0 "$packer" 2>/dev/null || said=$(head -n 1 "$work/pack.err")
        unwritten="NOT WRITTEN, outputs stay in $work: ${said:-no reason given}"
    fi
    packer=
}

pack() {
    [ -z "$packer" ] || finish_pack
    start_pack
    finish_pack
}

# pack_if_due: called while a command runs, packs every 15 seconds.
pack_if_due() {
    if [ -n "$packer" ]; then
        kill -0 "$packer" 2>/dev/null || finish_pack
    elif [ $((SECONDS - packed_at)) -ge 15 ]; then
        start_pack
    fi
}
