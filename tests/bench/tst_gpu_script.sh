#!/usr/bin/env bash
# gpu.sh keeps its promises when things go wrong: programs that hang, crash or miss a library, results
# that cannot be written, a script that is told to stop. The program is a fake; all runs go side by
# side and take a minute.
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
# figures than a summary holds, with FAKE_MODE=passes all passes, and the bits of every exact case are
# those of the file. FAKE_CALLS is a log of its arguments.
make_fake() {
    mkdir -p "$work/bin"
    cat >"$work/bin/millrace" <<'FAKE'
#!/usr/bin/env bash
[ -z "${FAKE_CALLS:-}" ] || echo "$*" >>"$FAKE_CALLS"
row() { echo "{\"limit\":$3,\"name\":\"$1\",\"ours\":$2,\"ratio\":0.5,\"unit\":\"$4\"}"; }
hang() { sleep 1000; }
bits() { echo "{\"bits\":\"$2\",\"case\":\"$1\",\"detail\":\"error $3\",\"error\":$3,\"pass\":true}"; }
cases() { # BITS of the second
    bits "fill f32 (1)" aa 0.0
    bits "add f32 (7)" "$1" 0.0
    bits "attention bf16 97 tokens" cc 0.25
    bits "swiglu bf16 (7, 33)" ff 0.5
    bits "linear f32 (1, 1, 1)" 99 0.75
    echo '{"cases":5,"passed":5}'
}
kernel() { echo "{\"event\":\"kernel\",\"launches\":$2,\"least_us\":$4,\"mean_us\":$3,\"most_us\":$5,\"name\":\"$1\"}"; }
step() { # DEVICE
    echo "{\"device\":\"$1\",\"event\":\"summary\",\"loss\":11.5,\"tokens_per_second\":25000.5,\"wall_ms\":82.1,\"share_of_peak\":0.3}"
    kernel "elementKernel<AddOp<Bf16>, 4, 2>" 28 10.25 10.0 11.5
    kernel "rmsNormKernel<Bf16, 8>" 57 100.5 90.0 120.0
    kernel "rmsNormLongKernel<Bf16, 8, 4>" 3 50.0 50.0 50.0
    kernel "attentionDeltaKernel<Bf16>" 28 8.0 8.0 8.0
    kernel "swigluKernel<Bf16>" 28 7.0 7.0 7.0
    kernel nvjet_tst_128x256 28 1.0 1.0 1.0
}
case "${FAKE_MODE:-} $*" in
*" --version") echo "millrace fake" ;;
hangs*) hang ;;
"passes selftest "*) cases bb ;;
"passes bench step "*) step "NVIDIA Fake 4090" ;;
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
*" selftest "*) cases 0b ;;
*" bench step "*" --optimizer "*) step "NVIDIA Fake 4090 Laptop GPU" ;;
*" bench step "*"--policy streamed"*) [ "${CUDA_MODULE_LOADING:-}" = EAGER ] || hang ;;
*" bench step "*7b.json*)
    echo "millrace: needs 98.0 GiB, the device has 23.0" >&2
    exit 3
    ;;
*" bench step "*)
    step "NVIDIA Fake 4090 Laptop GPU"
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
# A script that does not end is ended. It runs from $work/${folder:-folder}.
run() {
    local name=$1 seconds=$2 results=$3 code=0 begin=$SECONDS
    shift 3
    mkdir -p "$work/$name.tmp"
    # shellcheck disable=SC2016 # the inner shell expands it
    env -u OUT -u VIRTUAL_ENV -u PYTHON -u CUDA_MODULE_LOADING -u MILLRACE_GPU_HOST_MEMORY -u MILLRACE \
        HOME="$work/bin" TMPDIR="$work/$name.tmp" PATH=/usr/bin:/bin MILLRACE_GPU_SECONDS="$seconds" "$@" \
        timeout -k 2 $((seconds + 8)) bash -c 'echo $$ >"$1" && exec "$2" "$3"' - "$work/$name.process" \
        "$work/${folder:-folder}/tests/bench/gpu.sh" "$results" >"$work/$name.out" 2>"$work/$name.err" || code=$?
    echo "$code" >"$work/$name.code"
    echo $((SECONDS - begin)) >"$work/$name.seconds"
}

# await_summary NAME: until a run has printed its first one, so that it is in the middle; at most 30 seconds.
await_summary() {
    local waited
    for ((waited = 0; waited < 300; waited++)); do
        grep -qs '^Millrace on a card:' "$work/$1.out" && return 0
        sleep 0.1
    done
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

# make_files: what the PTX machine computed, as `folder` has it; `bare` has neither file.
make_files() {
    rm -f "$work/folder/tests/bench/ptx_digests.txt" "$work/folder/tests/bench/ptx_expected.csv"
    cp -r "$work/folder" "$work/bare"
    printf '%s\t%s\t%s\t%s\n' "# head" "" "" "" "add f32 (7)" exact bb 0 "attention bf16 97 tokens" near cc 0.25 \
        "attention bf16 97 tokens" near dd 0.25 "fill f32 (1)" exact aa 0 "rope f32 (9)" exact 11 0 \
        "swiglu bf16 (7, 33)" near ee 0.4 >"$work/folder/tests/bench/ptx_digests.txt"
    cat >"$work/folder/tests/bench/ptx_expected.csv" <<'CSV'
kernel,model,card,microseconds
rmsNorm,Llama 3 8B,Fake 4090,1
rmsNorm,Qwen2.5 1.5B,Fake 4090,80.4
rmsNorm,Qwen2.5 1.5B,Other,2
add,Qwen2.5 1.5B,Fake 4090,10.25
attentionBackward/attentionDeltaKernel,Qwen2.5 1.5B,Fake 4090,5
attentionBackward/attentionDeltaKernel 2,Qwen2.5 1.5B,Fake 4090,15
rmsNormLongKernel<Bf16, 8, 4>,Qwen2.5 1.5B,Fake 4090,25
CSV
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
        "  step 7b zero-offload: failed 3: " "MemTotal " "selftest: 5 cases passed, 0 failed" \
        "PTX machine: 1 of 2 exact cases have its bits; of 2 others 1, largest error 0.5 of the tolerance, there its own 0.4; 1 cases not run" \
        "  other bits than the PTX machine: add f32 (7)" \
        "  bits of the PTX machine: failed: 1 of 2 exact cases, listed in ptx-cases.txt" \
        "kernels of step 1.5b: ptx_expected.csv has no time for NVIDIA Fake 4090 Laptop GPU" \
        "kernel rmsNormKernel<Bf16, 8>: 57 launches, 100.5 us (90.0 to 120.0)"; do
        expect verdicts "$line"
    done
    expect verdicts "op rope" ": hung after 2 s"
    expect verdicts "fresh streamed" ": hung after "
    summary verdicts | grep -q 'op accumulate\|eager: \|, expected ' && fail "verdicts: names a command that passed"
    tar -xzf "$work/verdicts.tar.gz" -C "$work/verdicts.tmp" || fail "verdicts: results that cannot be unpacked"
    grep -q sleep "$work/verdicts.tmp/op-swiglu.threads.txt" || fail "verdicts: no threads of the op that hung"
    grep -qP '^add f32 \(7\)\texact\tother\t0.0\t0$' "$work/verdicts.tmp/ptx-cases.txt" || fail "verdicts: no list of cases"
    grep -qP '^op accumulate\tok$' "$work/verdicts.tmp/verdicts.txt" || fail "verdicts: accumulate is not ok"
    [ -z "$(find "$work/verdicts.tmp" -maxdepth 1 -name 'millrace-gpu.*')" ] || fail "verdicts: left its folder"
    for line in "racecheck crossEntropy" "ncu attentionBackwardKernel"; do
        grep -qP "^$line\tok$" "$work/verdicts.tmp/verdicts.txt" || fail "verdicts: $line is not ok"
    done
    expect verdicts "PyTorch 2, attention 4096 tokens" "forward 300.5, backward 200.5 GFLOP/s"
    expect verdicts "PyTorch 2, step, recompute none: 123.5 tokens/s"
}

check_passes() {
    expect_promises passes 50 0
    grep -q '^[0-9:]*  bits of the PTX machine: ok$' "$work/passes.out" || fail "passes: equal bits are not ok"
    expect passes "PTX machine: 2 of 2 exact cases have its bits; of 2 others 1"
    summary passes | grep -q 'other bits than' && fail "passes: names a case with equal bits"
    diff - <(summary passes | grep '^  kernel ') <<'LINES' || fail "passes: kernels beside their expected times"
  kernel rmsNormKernel<Bf16, 8>: 57 launches, 100.5 us (90.0 to 120.0), expected 80.4, 125 %
  kernel elementKernel<AddOp<Bf16>, 4, 2>: 28 launches, 10.2 us (10.0 to 11.5), expected 10.2, 100 %
  kernel attentionDeltaKernel<Bf16>: 28 launches, 8.0 us (8.0 to 8.0), expected 10.0, 80 %
  kernel swigluKernel<Bf16>: 28 launches, 7.0 us (7.0 to 7.0)
  kernel rmsNormLongKernel<Bf16, 8, 4>: 3 launches, 50.0 us (50.0 to 50.0), expected 25.0, 200 %
  kernel nvjet_tst_128x256: 28 launches, 1.0 us (1.0 to 1.0)
LINES
}

# Without the files of the PTX machine all else goes on.
check_bare() {
    expect_promises bare 50 0
    expect bare "bits of the PTX machine: skipped (ptx_digests.txt is not there)"
    expect bare "kernels of step 1.5b: no expected times, ptx_expected.csv is not there"
    expect bare "kernel rmsNormKernel<Bf16, 8>: 57 launches, 100.5 us (90.0 to 120.0)"
}

check_hangs() {
    expect_promises hangs 24 1
    expect hangs "op accumulate, op adamw, op adamwCompact" ": hung after 2 s"
    expect hangs "skipped (three ops before it hung)"
    expect hangs "skipped (out of time)"
    grep -qF "bits of the PTX machine: skipped (the card ran none of the cases)" "$work/hangs.out" || fail "hangs: bits without a case"
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
    expect_promises stopped 50 143
    expect stopped "stopped early (exit code 143)"
    tar -tzf "$work/stopped.tar.gz" >/dev/null || fail "stopped: results that cannot be unpacked"
    pgrep -f "$work/folder/build" >/dev/null && fail "a program still runs"
}

# check_program: ops and options of the calls that were made are those of the real program.
check_program() {
    local known asked command word
    known=$("$real" selftest --list-ops | sort -u)
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
make_files
tools=$work/tools:/usr/bin:/bin
run verdicts 50 "$work/verdicts.tar.gz" FAKE_CALLS="$work/calls" PATH="$tools" &
run hangs 24 "$work/hangs.tar.gz" FAKE_MODE=hangs PATH="$tools" &
run many 50 "$work/many.tar.gz" FAKE_MODE=many &
run passes 50 "$work/passes.tar.gz" FAKE_MODE=passes MILLRACE_GPU_HOST_MEMORY=100GiB &
folder=bare run bare 50 "$work/bare.tar.gz" FAKE_MODE=passes MILLRACE_GPU_HOST_MEMORY=100GiB &
run blocked 24 "$work/bin/millrace/results.tar.gz" & # a file is no folder
run stopped 50 "$work/stopped.tar.gz" FAKE_MODE=hangs &
mkdir "$full"
if [ "$(id -u)" -eq 0 ] && mount -t tmpfs -o size=64k none "$full" 2>/dev/null; then
    head -c 100000 /dev/zero >"$full/filler" 2>/dev/null
    run full 24 "$full/results.tar.gz" TMPDIR="$full" &
else
    echo "a full disk was not tried: that needs root and a tmpfs"
fi
await_summary stopped
kill -TERM "$(cat "$work/stopped.process")"
wait
check_verdicts
check_passes
check_bare
check_hangs
check_many
check_unwritten blocked
[ ! -f "$work/full.out" ] || check_unwritten full
check_stopped
[ -z "$real" ] || check_program
[ "$failed" -eq 0 ] && echo "gpu.sh kept its promises"
exit "$failed"
