# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with gpu.sh
# Runs commands for gpu.sh, one at a time, each with a limit, and files a verdict for each:
#     ok | failed RC: REASON | hung after N s | killed by signal N (NAME) | skipped (REASON)
# A command that survives its limit and SIGKILL (a driver may hold it) is left behind.
#
# Needs: total, work, stdout, stderr; pack_if_due of gpu_summary.sh.

names=()    # of the commands
verdicts=() # of the same commands
verdict=    # of the last command
output=     # of the last command: $output.txt, $output.err
child=      # process of the running command
grace=2     # seconds between SIGTERM and SIGKILL
remark=     # added to the verdict of a command that fails
may_not_fit= # yes: a plan that is larger than the machine (exit code 3) is an answer, not a failure
reserve=$((total > 108 ? total / 54 : 2)) # seconds kept for the last summary

say() { printf '%(%T)T  %s\n' -1 "$*"; }
left() { echo $((total - reserve - SECONDS)); }

# scaled SECONDS: a limit, shortened as much as the time for everything is.
scaled() {
    local seconds=$1
    [ "$total" -ge 540 ] || seconds=$((seconds * total / 540))
    echo $((seconds > 2 ? seconds : 2))
}

# probe SECONDS COMMAND...: a short question to the system, without a verdict.
probe() {
    local limit
    limit=$(scaled "$1")
    shift
    [ "$(left)" -ge "$limit" ] || return 1
    timeout -k 1 "$limit" "$@"
}

# file_verdict NAME VERDICT
file_verdict() {
    verdict=$2
    names+=("$1")
    verdicts+=("$2")
    say "$1: $2"
    printf '%s\t%s\n' "$1" "$2" 2>/dev/null >>"$work/verdicts.txt"
}

skip() { file_verdict "$1" "skipped ($2)"; }

# timed NAME LIMIT COMMAND...: runs it and files its verdict. 0 if that is ok.
timed() {
    local name=$1 limit code start
    limit=$(scaled "$2")
    shift 2
    if [ "$(left)" -lt $((limit + grace)) ]; then
        skip "$name" "out of time"
        return 1
    fi
    output=$work/${name//[^A-Za-z0-9.]/-}
    printf '%s\n' "$*" 2>/dev/null >"$output.command.txt"
    start=$SECONDS
    start_command "$limit" "$@"
    code=unkillable
    # The shell's own message about a signal would say it twice.
    { await "$limit" && { wait "$child" && code=0 || code=$?; }; } 2>/dev/null
    child=
    file_verdict "$name" "$(judge "$code" $((SECONDS - start)) "$limit")"
    [ "$code" = 0 ]
}

# start_command LIMIT COMMAND...: sets `child`. If memory runs out, the kernel ends the command and
# not the script.
start_command() {
    local limit=$1 text=$output.txt errors=$output.err
    shift
    if ! { : >"$text" && : >"$errors"; } 2>/dev/null; then
        text=/dev/null
        errors=/dev/null
    fi
    (
        echo 1000 2>/dev/null >/proc/self/oom_score_adj
        exec {stdout}>&- {stderr}>&- timeout -k "$grace" "$limit" "$@"
    ) >"$text" 2>"$errors" &
    child=$!
}

# await LIMIT: until the command ended; 1 if it did not, although it was killed.
await() {
    local end=$((SECONDS + $1 + grace + 2)) look=$((SECONDS + $1 - ($1 > 8 ? 4 : 1)))
    while kill -0 "$child"; do
        [ "$SECONDS" -lt "$end" ] || return 1
        if [ "$1" -gt 0 ] && [ "$SECONDS" -ge "$look" ]; then
            note_threads
            look=$end
        fi
        pack_if_due
        sleep 0.1
    done
}

# descendants PROCESS
descendants() {
    local process
    # shellcheck disable=SC2013 # words
    for process in $(cat "/proc/$1/task/"*/children); do
        echo "$process"
        descendants "$process"
    done
}

# note_threads: where every thread waits, of a command that is about to reach its limit.
note_threads() {
    local process task
    for process in $(descendants "$child"); do
        for task in "/proc/$process/task/"*; do
            printf '%s %s, state %s, in %s, call %s\n' "${task##*/}" "$(cat "$task/comm")" \
                "$(sed -n 's/^State:[[:space:]]*//p' "$task/status")" "$(cat "$task/wchan")" \
                "$(cat "$task/syscall")"
        done
        timeout -k 1 3 gdb -p "$process" -batch -ex 'thread apply all bt'
    done >"$output.threads.txt"
} 2>/dev/null

# judge CODE SECONDS LIMIT: a verdict. timeout says 124 where SIGTERM was enough, and dies of SIGKILL
# with the command where it was not.
judge() {
    local code=$1 seconds=$2 limit=$3
    case $code in
    0) echo ok ;;
    124) echo "hung after $limit s" ;;
    unkillable) echo "hung after $limit s and cannot be killed" ;;
    *)
        if [ "$code" -eq 137 ] && [ "$seconds" -ge "$limit" ]; then
            echo "hung after $limit s, SIGTERM did not end it"
        elif [ "$code" -gt 128 ] && kill -l "$code" >/dev/null 2>&1; then
            echo "killed by signal $((code - 128)) (SIG$(kill -l "$code"))"
        elif [ "$code$may_not_fit" = 3yes ]; then
            echo "skipped (does not fit: $(reason))"
        else
            echo "failed $code: $(reason)${remark:+; $remark}"
        fi
        ;;
    esac
}

# reason: one line of the last output that says why it failed: the first failed case, else the last
# line of stderr, else the last line of stdout.
reason() {
    local line failed
    failed=$(grep -c '"pass":false' "$output.txt")
    line=$(sed -n '/"pass":false/{s/.*"case":"\([^"]*\)","detail":"\([^"]*\)".*/\1: \2/p;q}' "$output.txt")
    [ "${failed:-0}" -eq 0 ] || line="$failed cases, first $line"
    [ -n "$line" ] || line=$(grep -v '^[[:space:]]*$' "$output.err" | tail -n 1)
    [ -n "$line" ] || line=$(grep -v '^[[:space:]]*$' "$output.txt" | tail -n 1)
    line=${line#"$millrace: "}
    printf '%s\n' "${line#millrace: }" | tr '\t' ' ' | cut -c 1-120
} 2>/dev/null

# end_command: ends what still runs, when the script is told to stop.
end_command() {
    [ -n "$child" ] || return 0
    kill "$child" && await 0 # timeout passes the signal on
    child=
} 2>/dev/null

count_verdicts() { printf '%s\n' "${verdicts[@]}" | grep -c "$1"; }
count_failures() { printf '%s\n' "${verdicts[@]}" | grep -vc '^\(ok\|skipped .*\|\)$'; }
