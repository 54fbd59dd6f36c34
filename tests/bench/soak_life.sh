# shellcheck shell=bash disable=SC2154
# One life of a run: begun or resumed, and killed at a random instant or left to its end. Sourced by soak.sh, which
# sets `millrace`, `folder`, `disk`, `arguments`, `kills` and `span`, and reads the counts.

run=$folder/run
pid=
exec {never}<> <(:) # nothing comes from it: a wait without a process of its own

# problem WHAT: says so, with what the program said, and counts it.
problem() {
    problems=$((problems + 1))
    {
        echo "soak: $1"
        tail -n 5 "$folder/errors" | sed 's/^/    /'
    } >&2
}

# wait_ms MILLISECONDS
wait_ms() {
    read -rt "$(($1 / 1000)).$(printf '%03d' $(($1 % 1000)))" -u "$never" || true
}

# Sets `drawn` to a whole number below $1. Not printed: a subshell would have another sequence.
draw_below() {
    drawn=$(((RANDOM * 32768 + RANDOM) / 7 % $1))
}

# STEP HASH of every checkpoint, and at last of the end. A line that was cut by a kill is none.
hashes() {
    sed -n -e 's/.*"event":"checkpoint".*"step":\([0-9]*\),"weights_hash":"\([0-9a-f]*\)"}$/\1 \2/p' \
        -e 's/.*"event":"end".*"steps":\([0-9]*\),"weights_hash":"\([0-9a-f]*\)"}$/\1 \2/p' "$1"
}

# What a step was, without what it took: one line for each.
curve() {
    "$millrace" runs export "$1" --json --db "$folder/h.db" |
        sed -n 's/.*\("step":[0-9]*,"loss":[^,]*,"lr":[^,]*,"grad_norm":[^,]*,"tokens":[0-9]*\),.*/\1/p'
}

run_id() {
    sed -n 's/.*"event":"start".*"run_id":\([0-9]*\).*/\1/p' "$1" | tail -n 1
}

has_checkpoint() {
    compgen -G "$run/checkpoints/step-*" >/dev/null
}

# What an earlier life left lies there until the next checkpoint is written.
is_writing_checkpoint() {
    local path
    for path in "$run"/checkpoints/.step-*; do
        [ ! "$path" -nt "$folder/begun" ] || [ ! -e "$path" ] || return 0
    done
    return 1
}

# A process that has ended and was not waited for is still there.
is_alive() {
    local state=Z
    { read -r _ _ state _ <"/proc/$pid/stat"; } 2>/dev/null || true
    [ "$state" != Z ]
}

fresh_run() {
    rm -rf "$run"
    : >"$folder/run.log"
}

begin_life() {
    if has_checkpoint; then
        resumed=$((resumed + 1))
        set -- resume "$run"
    elif [ -e "$run/run.json" ]; then # killed before its first checkpoint: it starts again
        anew=$((anew + 1))
        set -- resume "$run"
    else
        # Killed while it opened: it is not yet a run.
        [ ! -e "$run" ] || anew=$((anew + 1))
        set -- train "${arguments[@]}" --out "$run"
    fi
    : >"$folder/begun"
    "$millrace" "$@" --json --db "$folder/h.db" >"$folder/life.log" 2>"$folder/errors" &
    pid=$!
}

end_life() {
    [ -n "$pid" ] || return 0
    ! is_alive || kill -KILL "$pid" 2>/dev/null || true
    { wait "$pid" || true; } 2>/dev/null
    pid=
}

# The instant: after a random time, and half of the times a little into the next checkpoint.
wait_for_the_end() {
    draw_below "$span"
    wait_ms "$drawn"
    draw_below 2
    [ "$drawn" -eq 0 ] || return 0
    while ! is_writing_checkpoint && is_alive; do
        wait_ms 1
    done
    draw_below 12
    wait_ms "$drawn"
}

# What a kill may leave: a checkpoint that is not complete, and the file of this run.
after_kill() {
    local files
    killed=$((killed + 1))
    ! is_writing_checkpoint || inside=$((inside + 1))
    grep -q '"event":"start"' "$folder/life.log" || opening=$((opening + 1))
    files=$(find "$disk" -name '*.scratch' | wc -l)
    [ "$files" -le 1 ] || problem "$files scratch files after a kill"
}

# True: the run has ended by itself.
live() {
    local code=0
    begin_life
    if [ "$killed" -lt "$kills" ]; then
        wait_for_the_end
        ! is_alive || kill -KILL "$pid" 2>/dev/null || true
    fi
    { wait "$pid" || code=$?; } 2>/dev/null
    pid=
    cat "$folder/life.log" >>"$folder/run.log"
    case $code in
    0) return 0 ;;
    137) after_kill ;;
    2) # Killed when all was done but for saying so.
        ! grep -q 'nothing to resume' "$folder/errors" || return 0
        problem "a life ended with code 2"
        ;;
    *) problem "a life ended with code $code" ;;
    esac
    return 1
}
