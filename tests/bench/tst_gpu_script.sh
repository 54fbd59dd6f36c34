#!/usr/bin/env bash
# gpu.sh keeps its promises when things go wrong: programs that hang, crash or miss a library, results
# that cannot be written, a script that is told to stop. The program is a fake; all runs go side by
# side and take half a minute.
#     tst_gpu_script.sh [MILLRACE]     MILLRACE: the real program, whose ops and options are compared
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
real=${1:-}
work=$(mktemp -d "${TMPDIR:-/tmp}/tst-gpu.XXXXXX")
full=$work/full
trap end_test EXIT
failed=0

# shellcheck disable=SC2317 # the trap calls it
end_test() {
    [ ! -f "$work/full.out" ] || rm -rf "$(summary full | sed -n 's/.*stay in \(.*millrace-gpu[^:]*\):.*/\1/p')"
    mountpoint -q "$full" && umount "$full"
    rm -rf "$work"
}

fail() {
    echo "FAIL: $*"
    failed=1
}

# The fake: with FAKE_MODE=hangs everything hangs, with FAKE_MODE=many there are more failures and
# figures than a summary holds. FAKE_CALLS is a log of its arguments.
make_fake() {
    mkdir -p "$work/bin"
    cat >"$work/bin/millrace" <<'FAKE'
#!/usr/bin/env bash
[ -z "${FAKE_CALLS:-}" ] || echo "$*" >>"$FAKE_CALLS"
row() { echo "{\"limit\":$3,\"name\":\"$1\",\"ours\":$2,\"ratio\":0.5,\"unit\":\"$4\"}"; }
hang() { sleep 1000; }
case "${FAKE_MODE:-} $*" in
*" --version") echo "millrace fake" ;;
hangs*) hang ;;
"many selftest "*)
    echo "millrace: no luck with $*" >&2
    exit 4
    ;;
"many bench attention "*) for ((i = 0; i < 70; i++)); do row "attention bf16 $i tokens" 1000 2000 GFLOP/s; done ;;
*"--op rope "*) hang ;;
*"--op swiglu "*) trap '' TERM && hang ;;
*"--op sum "*) kill -SEGV $$ ;;
*"--op cast "*)
    echo "millrace: error while loading shared libraries: libfmt.so.9: cannot open shared object file" >&2
    exit 127
    ;;
*"--op fill "*)
    echo '{"case":"fill f32 (7)","detail":"error 3 of the tolerance","pass":false}'
    exit 5
    ;;
*" selftest "*) printf '{"case":"fill f32 (1)","detail":"error 0","pass":true}\n{"cases":1,"passed":1}\n' ;;
*" bench step "*"--policy streamed"*) [ "${CUDA_MODULE_LOADING:-}" = EAGER ] || hang ;;
*" bench step "*7b.json*)
    echo "millrace: needs 98.0 GiB, the device has 23.0" >&2
    exit 3
    ;;
*" bench step "*)
    echo '{"event":"summary","loss":11.5,"tokens_per_second":25000.5,"wall_ms":82.1,"share_of_peak":0.3}'
    ;;
*" bench matmul "*)
    row "linear bf16 2048 x 1536 x 1536" 390000 780000 GFLOP/s
    row "linear bf16 2048 x 4096 x 4096" 390000 780000 GFLOP/s
    ;;
*" bench "*) row "rmsNorm bf16 64 MiB" 2000.5 4001 GB/s ;;
*" train "*)
    for ((i = 0; i < 20; i++)); do echo "{\"event\":\"step\",\"loss\":4.5}"; done
    echo '{"event":"eval","loss":3.25}'
    ;;
esac
FAKE
    mkdir -p "$work/lib" "$work/tools"
    echo library >"$work/lib/libfake.so.1"
    # Tools of the card: the real ones are left alone.
    printf '#!/bin/sh\nsleep 1000\n' >"$work/tools/nvidia-smi"
    cat >"$work/tools/ncu" <<'FAKE'
#!/bin/sh
while [ "${1##*/}" != millrace ]; do shift; done
exec "$@"
FAKE
    cp "$work/tools/ncu" "$work/tools/compute-sanitizer"
    cat >"$work/tools/python3" <<'FAKE'
#!/bin/sh
case $* in
*torch_attention.py*) echo '{"peer": "PyTorch 2", "tokens": 4096, "forward_gflops": 300.5, "backward_gflops": 200.5}' ;;
*torch_gpu_step.py*) echo '{"peer": "PyTorch 2", "recompute": "none", "tokens_per_second": 123.5}' ;;
esac
FAKE
    chmod +x "$work/bin/millrace" "$work/tools/"*
}

# run NAME SECONDS RESULTS [VARIABLE=VALUE...]: gpu.sh in the background, `$work/NAME.*` afterwards.
# A script that does not end is ended.
run() {
    local name=$1 seconds=$2 results=$3 code=0 begin=$SECONDS
    shift 3
    mkdir -p "$work/$name.tmp"
    # shellcheck disable=SC2016 # the inner shell expands it
    env -u OUT -u VIRTUAL_ENV -u PYTHON -u CUDA_MODULE_LOADING -u MILLRACE_GPU_HOST_MEMORY -u MILLRACE \
        HOME="$work/bin" TMPDIR="$work/$name.tmp" PATH=/usr/bin:/bin MILLRACE_GPU_SECONDS="$seconds" "$@" \
        timeout -k 2 $((seconds + 8)) bash -c 'echo $$ >"$1" && exec "$2" "$3"' - "$work/$name.process" \
        "$work/folder/tests/bench/gpu.sh" "$results" >"$work/$name.out" 2>"$work/$name.err" || code=$?
    echo "$code" >"$work/$name.code"
    echo $((SECONDS - begin)) >"$work/$name.seconds"
}

# summary NAME: the last one that a run printed.
summary() { awk '/^Millrace on a card:/ { text = "" } { text = text $0 "\n" } END { printf "%s", text }' "$work/$1.out"; }

# pack: the folder from which all runs are made, and one that is too large.
pack() {
    "$here/gpu_pack.sh" "$work/folder" "$work" >"$work/pack.out" || fail "gpu_pack.sh: $(cat "$work/pack.out")"
    [ -f "$work/folder/build/portable/lib/libfake.so.1" ] || fail "gpu_pack.sh: no library"
    truncate -s 61M "$work/lib/liblarge.so"
    "$here/gpu_pack.sh" "$work/large" "$work" >"$work/pack.out" 2>&1 && fail "gpu_pack.sh: 61 MiB are not too much"
    grep -q "more than 60 MiB" "$work/pack.out" || fail "gpu_pack.sh: $(cat "$work/pack.out")"
}

# expect NAME TEXT [TEXT]: as parts of one line of the last summary.
expect() {
    summary "$1" | grep -F -- "$2" | grep -qF -- "${3:-}" || fail "$1: no line with '$2' and '${3:-}' in the summary"
}

# expect_promises NAME SECONDS CODE: what holds for every run.
expect_promises() {
    local name=$1 took code lines
    took=$(cat "$work/$name.seconds")
    code=$(cat "$work/$name.code")
    [ "$took" -le $(($2 + 4)) ] || fail "$name: took $took s of $2"
    [ "$code" -eq "$3" ] || fail "$name: exit code $code, not $3"
    [ "$(grep -c '^Millrace on a card:' "$work/$name.out")" -eq 2 ] || fail "$name: not two summaries"
    for lines in $(sed '/^$/q' "$work/$name.out" | wc -l) $(summary "$name" | wc -l); do
        [[ $lines -le 60 && $lines -ge 5 ]] || fail "$name: a summary of $lines lines"
    done
    [ "$(summary "$name" | awk '{ if (length > most) most = length } END { print most }')" -le 180 ] ||
        fail "$name: a line of more than 180 characters"
    [ ! -s "$work/$name.err" ] || fail "$name: on stderr: $(head -n 3 "$work/$name.err")"
}

check_verdicts() {
    local line
    expect_promises verdicts 50 1
    for line in "  op swiglu: hung after 2 s, SIGTERM did not end it" \
        "  op sum: killed by signal 11 (SIGSEGV)" "  op cast: failed 127: error while loading shared libraries: libfmt.so.9" \
        "  op fill: failed 5: 1 cases, first fill f32 (7): error 3 of the tolerance" \
        "linear bf16: 50 to 50 % of 780.0 TFLOP/s over 2 shapes" "elements bf16, of 4001.0 GB/s: rmsNorm 50 %" \
        "step 1.5b resident: 25000 tokens/s, 82.1 ms" "train, 20 losses: largest difference 0.00e+00" \
        "step 7b resident: skipped (does not fit: needs 98.0 GiB, the device has 23.0)" \
        "  step 7b zero-offload: failed 3: " "MemTotal " "selftest: 1 cases passed, 0 failed"; do
        expect verdicts "$line"
    done
    expect verdicts "op rope" ": hung after 2 s"
    expect verdicts "fresh streamed" ": hung after "
    summary verdicts | grep -q 'op accumulate\|eager: ' && fail "verdicts: names a command that passed"
    tar -xzf "$work/verdicts.tar.gz" -C "$work/verdicts.tmp" || fail "verdicts: results that cannot be unpacked"
    grep -q sleep "$work/verdicts.tmp/op-swiglu.threads.txt" || fail "verdicts: no threads of the op that hung"
    grep -qP '^op accumulate\tok$' "$work/verdicts.tmp/verdicts.txt" || fail "verdicts: accumulate is not ok"
    [ -z "$(find "$work/verdicts.tmp" -maxdepth 1 -name 'millrace-gpu.*')" ] || fail "verdicts: left its folder"
    for line in "racecheck crossEntropy" "ncu attentionBackwardKernel"; do
        grep -qP "^$line\tok$" "$work/verdicts.tmp/verdicts.txt" || fail "verdicts: $line is not ok"
    done
    expect verdicts "PyTorch 2, attention 4096 tokens" "forward 300.5, backward 200.5 GFLOP/s"
    expect verdicts "PyTorch 2, step, recompute none: 123.5 tokens/s"
}

check_hangs() {
    expect_promises hangs 24 1
    expect hangs "op accumulate, op adamw, op adamwCompact" ": hung after 2 s"
    expect hangs "skipped (three ops before it hung)"
    expect hangs "skipped (out of time)"
    expect hangs "card: unknown, nvidia-smi: hung after 2 s"
}

check_many() {
    expect_promises many 50 1
    [ "$(summary many | wc -l)" -eq 60 ] || fail "many: the summary is not full"
    expect many "  op accumulate: failed 4: no luck with "
    [ "$(summary many | grep -c 'more lines in the results$')" -eq 2 ] || fail "many: failures and figures are not cut"
    expect many "attention bf16 0 tokens: 1.0 of 2.0 TFLOP/s, 50 %"
    expect many "skipped (not on this machine)"
}

check_unwritten() {
    local name=$1
    expect_promises "$name" 24 1
    expect "$name" "results: NOT WRITTEN, outputs stay in "
    expect "$name" "op rope" ": hung after 2 s"
    expect "$name" "  op sum: killed by signal 11"
    expect "$name" "  op cast: failed 127"
    find "$work/$name.tmp" /dev/shm -path "$(summary "$name" | sed -n 's/.*stay in \([^:]*\):.*/\1/p')/*" -name verdicts.txt |
        grep -q . || fail "$name: no outputs where it says"
}

check_stopped() {
    expect_promises stopped 20 143
    expect stopped "stopped early (exit code 143)"
    tar -tzf "$work/stopped.tar.gz" >/dev/null || fail "stopped: results that cannot be unpacked"
    pgrep -f "$work/folder/build" >/dev/null && fail "a program still runs"
}

# check_program: ops and options of the calls that were made are those of the real program.
check_program() {
    local known asked command word
    known=$("$real" selftest --device cpu --json | sed -n 's/^{"case":"\([^ "]*\).*/\1/p' | sort -u | grep -v policy)
    asked=$(sed -n 's/.*--op \([^ ]*\).*/\1/p' "$work/calls" | sort -u)
    [ "$known" = "$asked" ] || fail "ops: $(diff <(echo "$known") <(echo "$asked") | grep '^[<>]' | tr '\n' ' ')"
    for command in selftest bench train; do
        "$real" "$command" --help >"$work/$command.help"
        while read -r word; do
            grep -q -- "^ *$word " "$work/$command.help" || fail "$command has no option $word"
        done < <(grep "^$command " "$work/calls" | grep -o -- '--[a-z-]*' | sort -u)
    done
    while read -r word; do
        grep -q "^ *$word (" "$work/train.help" || fail "no policy option $word"
    done < <(grep -o -- '--policy-option [a-z-]*' "$work/calls" | cut -d ' ' -f 2 | sort -u)
    while read -r word; do
        grep -q -- "--policy TEXT.*[ ,]${word}[ ,]" "$work/train.help" || fail "no policy $word"
    done < <(grep -o -- '--policy [a-z-]*' "$work/calls" | cut -d ' ' -f 2 | sort -u)
}

make_fake
pack
tools=$work/tools:/usr/bin:/bin
run verdicts 50 "$work/verdicts.tar.gz" FAKE_CALLS="$work/calls" PATH="$tools" &
run hangs 24 "$work/hangs.tar.gz" FAKE_MODE=hangs PATH="$tools" &
run many 50 "$work/many.tar.gz" FAKE_MODE=many &
run blocked 24 "$work/bin/millrace/results.tar.gz" & # a file is no folder
run stopped 20 "$work/stopped.tar.gz" FAKE_MODE=hangs &
mkdir "$full"
if [ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=64k none "$full" 2>/dev/null; then
    head -c 100000 /dev/zero >"$full/filler" 2>/dev/null
    run full 24 "$full/results.tar.gz" TMPDIR="$full" &
else
    echo "a full disk was not tried: that needs root and a tmpfs"
fi
sleep 4
kill -TERM "$(cat "$work/stopped.process")"
wait
check_verdicts
check_hangs
check_many
check_unwritten blocked
[ ! -f "$work/full.out" ] || check_unwritten full
check_stopped
[ -z "$real" ] || check_program
[ "$failed" -eq 0 ] && echo "gpu.sh kept its promises"
exit "$failed"
