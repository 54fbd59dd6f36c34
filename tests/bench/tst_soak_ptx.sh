#!/usr/bin/env bash
# soak.sh --ptx: every part is run and judged. The test programs are fakes.
set -uo pipefail
here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
work=$(mktemp -d "${TMPDIR:-/tmp}/tst-soak.XXXXXX")
trap 'rm -rf "$work"' EXIT
failed=0
fail() {
    echo "FAIL: $*"
    failed=1
}

cat >"$work/tst_ptx_kernels" <<'FAKE'
#!/usr/bin/env bash
case $* in
"") printf 'tst_ptx_kernels CLASS\nclasses:\n  kernels\n  mutations\n' >&2 && exit 2 ;;
"kernels -datatags") printf 'mr::TestKernels instructionsAreListed\nmr::TestKernels everyCase sm_75\nmr::TestKernels everyCase sm_80\n' ;;
*everyCase:sm_75) [ "$MR_PTX_SEED" != 1 ] || { echo "FAIL!  : everyCase(sm_75) other bits" && exit 1; } ;;
mutations) [ "$MR_PTX_MUTATIONS" = all ] ;;
esac
FAKE
cat >"$work/tst_ptx_training" <<'FAKE'
#!/usr/bin/env bash
case $* in
"") printf 'tst_ptx_training CLASS\nclasses:\n  training\n' >&2 && exit 2 ;;
training) [ "$MR_PTX_TRAINING" = all ] ;;
esac
FAKE
chmod +x "$work"/tst_*

# soak ARGUMENTS: its output and exit code in $work/out and `code`.
soak() {
    code=0
    PTX_TESTS=$work TMPDIR=$work "$here/soak.sh" --ptx "$@" >"$work/out" 2>&1 || code=$?
}
expect() { grep -qE "$1" "$work/out" || fail "no line '$1' in: $(cat "$work/out")"; }

soak --seeds 2 --jobs 2
[ "$code" -eq 1 ] || fail "a failure ends with $code"
expect '^\| conformance sm_75, seed 0 \| [0-9]+ s \| passed \|$'
expect '^\| conformance sm_75, seed 1 \| [0-9]+ s \| FAILED: FAIL!  : everyCase\(sm_75\) other bits \|$'
expect '^\| conformance sm_80, seed 1 \| [0-9]+ s \| passed \|$'
expect '^\| sizes of models \| [0-9]+ s \| passed \|$'
expect '^\| mutations \| [0-9]+ s \| passed \|$'
expect '^\| training \| [0-9]+ s \| passed \|$'
[ "$(grep -c '^| ' "$work/out")" -eq 8 ] || fail "not 7 runs: $(cat "$work/out")"
[ -s "$(sed -n 's/^what the tests printed: //p' "$work/out")/conformance-sm_75--seed-1.txt" ] || fail "no output of the run that failed"

soak --seeds 1 conformance
[ "$code" -eq 0 ] || fail "without a failure it ends with $code"
[ "$(grep -c passed "$work/out")" -eq 2 ] || fail "one seed is not two runs: $(cat "$work/out")"

rm "$work/tst_ptx_training"
soak training
[ "$code" -eq 1 ] || fail "a part that is not built ends with $code"
expect 'FAILED: no test program has training'

soak flights
[ "$code" -eq 2 ] || fail "bad usage ends with $code"
[ "$failed" -eq 0 ] && echo "soak.sh --ptx judges every part"
exit "$failed"
