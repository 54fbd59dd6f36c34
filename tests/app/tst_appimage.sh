#!/usr/bin/env bash
# The head of the AppImage, which unpacks and starts it, and AppRun: with two programs that say what
# they were called with.
#   tst_appimage.sh SOURCE
set -uo pipefail
root=$1
work=$(mktemp -d "${TMPDIR:-/tmp}/tst-appimage.XXXXXX")
trap 'rm -rf "$work"' EXIT
failed=0
fail() {
    echo "FAIL: $*"
    failed=1
}
build=$work
. "$root/app/setup.sh"
. "$root/app/packaging/appimage.sh"
if ! command -v mksquashfs >/dev/null || [ ! -e "$multiarch/libsquashfuse.a" ]; then
    echo "not checked: there is no squashfs-tools or libsquashfuse-dev here"
    exit 0
fi
unset DISPLAY WAYLAND_DISPLAY QT_QPA_PLATFORM LD_LIBRARY_PATH QT_PLUGIN_PATH
export XDG_CACHE_HOME=$work/cache
unpacked=$work/cache/millrace/appimage

mkdir -p "$app_dir/usr/bin"
cp "$root/app/packaging/appimage/AppRun" "$app_dir/"
for name in millrace millrace-desktop; do
    cat >"$app_dir/usr/bin/$name" <<'PROGRAM'
#!/bin/sh
echo "$(basename "$0"): $*"
[ "${1:-}" != hold ] || { echo up >"$2" && cat "$3"; }
PROGRAM
    chmod 755 "$app_dir/usr/bin/$name"
done
echo 2.35 >"$app_dir/glibc"
head -c 3000000 /dev/urandom >"$app_dir/usr/noise"
ln -s ../usr/noise "$app_dir/usr/link"
build_head "$work/head" || fail "the head was not built"
build_head() { cp "$work/head" "$1"; } # once is enough
pack_appimage "$work/one" || fail "not packed"
echo two >"$app_dir/usr/version"
pack_appimage "$work/two" || fail "not packed"
echo three >"$app_dir/usr/version"
pack_appimage "$work/three" || fail "not packed"

# call ARGUMENT...: its output in $work/out, its exit code in `code`.
call() {
    code=0
    "$@" >"$work/out" 2>&1 </dev/null || code=$?
}
expect() {
    [ "$code" -eq "$1" ] || fail "exit code $code, not $1: $(cat "$work/out")"
    grep -q -- "$2" "$work/out" || fail "no '$2' in: $(cat "$work/out")"
}

type_two() {
    [ "$(head -c 11 "$work/three" | tail -c 3 | od -An -c | tr -d ' ')" = 'AI002' ] || fail "no type 2"
    call "$work/three" --appimage-offset
    expect 0 "^$(stat -c %s "$work/head")\$"
    unsquashfs -o "$(stat -c %s "$work/head")" -d "$work/tools" "$work/three" >/dev/null 2>&1
    diff -r --no-dereference "$app_dir" "$work/tools" >/dev/null || fail "tools unpack another folder"
    (cd "$work" && "$work/three" --appimage-extract) || fail "--appimage-extract"
    diff -r --no-dereference "$app_dir" "$work/squashfs-root" || fail "other files were unpacked"
    [ ! -e "$unpacked" ] || fail "an option of the file used the cache"
    call "$work/three" --appimage-mount
    expect 1 'mounts nothing'
}

# Four starts at once: each works, and one folder is left, which the next start takes as it is.
unpacks_once() {
    local i processes=()
    for i in 1 2 3 4; do
        "$work/one" train "$i" >"$work/out$i" 2>&1 &
        processes+=($!)
    done
    for i in 1 2 3 4; do
        wait "${processes[i - 1]}" || fail "start $i: $(cat "$work/out$i")"
        grep -q "^millrace: train $i\$" "$work/out$i" || fail "start $i: $(cat "$work/out$i")"
    done
    [ "$(find "$unpacked" -mindepth 1 -maxdepth 1 -type d | wc -l)" -eq 1 ] || fail "$(ls "$unpacked")"
    call "$work/one" --appimage-extract-and-run train 5
    [ "$(cat "$work/out")" = 'millrace: train 5' ] || fail "the second start: $(cat "$work/out")"
}

# A version in use stays; one that nobody runs goes, with what a killed unpacking left.
keeps_what_runs() {
    mkfifo "$work/up" "$work/end"
    "$work/one" hold "$work/up" "$work/end" >"$work/held" 2>&1 &
    local holder=$! dead
    (exit 0) &
    dead=$!
    wait "$dead"
    mkdir "$unpacked/abc.part-$dead" "$unpacked/abc.part-$$"
    cat "$work/up" >/dev/null
    call "$work/two" train
    expect 0 'millrace: train'
    [ -x "$unpacked/$(unsquashed_id one)/AppRun" ] || fail "a version in use was removed"
    [ ! -e "$unpacked/abc.part-$dead" ] || fail "what a killed unpacking left is still there"
    [ -e "$unpacked/abc.part-$$" ] || fail "the folder of an unpacking under way was removed"
    echo >"$work/end"
    wait "$holder" || fail "the version in use: $(cat "$work/held")"
    call "$work/three" train
    [ ! -e "$unpacked/$(unsquashed_id one)" ] || fail "a version that nobody runs was kept"
    [ ! -e "$unpacked/$(unsquashed_id two)" ] || fail "a version that nobody runs was kept"
}
unsquashed_id() { unsquashfs -o "$(stat -c %s "$work/head")" -cat "$work/$1" image_id 2>/dev/null; }

chooses_the_program() {
    call "$work/three"
    expect 1 'no display.*the command line works without one'
    call "$work/three" --version
    expect 0 '^millrace: --version$'
    call env DISPLAY=:9 "$work/three" --demo
    expect 0 '^millrace-desktop: --demo$'
    call env DISPLAY=:9 "$work/three" '--db' 'a b'
    expect 0 '^millrace-desktop: --db a b$'
    ln -s three "$work/millrace"
    call env DISPLAY=:9 "$work/millrace" --json
    expect 0 '^millrace: --json$'
}

says_what_is_wrong() {
    call env -u XDG_CACHE_HOME -u HOME "$work/three" train
    expect 1 'neither XDG_CACHE_HOME nor HOME is set'
    echo >"$work/file"
    call env XDG_CACHE_HOME="$work/file" "$work/three" train
    expect 1 'cannot be written.*Name a folder with room for it in XDG_CACHE_HOME'
    head -c 4000000 "$work/three" >"$work/cut"
    chmod 755 "$work/cut"
    call env XDG_CACHE_HOME="$work/other" "$work/cut" train
    expect 1 'cut: .*damaged: fetch it again'
    cp "$work/head" "$work/bare"
    call "$work/bare" train
    expect 1 'nothing is packed behind its program'
    chmod 644 "$unpacked/$(unsquashed_id three)/AppRun"
    call "$work/three" train
    expect 1 'AppRun: cannot be started.*delete '
}

# A system older than the libraries in the file.
refuses_old_systems() {
    mkdir "$work/system"
    cat >"$work/system/getconf" <<'PROGRAM'
#!/bin/sh
echo "glibc $GLIBC"
PROGRAM
    chmod 755 "$work/system/getconf"
    call env PATH="$work/system:$PATH" GLIBC=2.4 "$work/three" train
    expect 1 'has glibc 2.4 and Millrace needs 2.35'
    call env PATH="$work/system:$PATH" GLIBC=2.35 "$work/three" train
    expect 0 'millrace: train'
    call env PATH="$work/system:$PATH" GLIBC=2.100 "$work/three" train
    expect 0 'millrace: train'
}

type_two
unpacks_once
keeps_what_runs
chooses_the_program
refuses_old_systems
says_what_is_wrong
[ "$failed" -eq 0 ] && echo "an AppImage unpacked once, by four at a time, and started"
exit "$failed"
