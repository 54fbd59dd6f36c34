#!/usr/bin/env bash
# The files of `cmake --install` run from a folder of their own, and desktops and man can read them.
#   tst_install.sh CMAKE SOURCE BUILD
set -uo pipefail
cmake=$1
source=$2
build=$3
work=$(mktemp -d "${TMPDIR:-/tmp}/tst-install.XXXXXX")
trap 'rm -rf "$work"' EXIT
export HOME=$work/home LC_ALL=C.UTF-8 QT_QPA_PLATFORM=offscreen
mkdir -p "$HOME"
failed=0
fail() {
    echo "FAIL: $*"
    failed=1
}
# there TOOL: false, and a line says so, where the tool that checks is missing.
there() { command -v "$1" >/dev/null || { echo "not checked: there is no $1 here" && return 1; }; }

"$cmake" --install "$build" --prefix "$work/first" >"$work/log" || fail "install: $(tail -3 "$work/log")"
mv "$work/first" "$work/prefix" # a package is unpacked elsewhere, too
prefix=$work/prefix
millrace=$prefix/bin/millrace

programs_run() {
    local file
    [ "$("$millrace" --version)" = "$("$build/bin/millrace" --version)" ] || fail "millrace --version"
    for file in "$prefix"/bin/* "$prefix"/lib/millrace/*; do
        ! ldd "$file" | grep 'not found' | grep -v cublas || fail "$file lacks a library"
        ! readelf -d "$file" | grep -E 'R(UN)?PATH' || fail "$file looks for libraries where it was built"
    done
    "$millrace" eval --model "$prefix/share/millrace/sample/model" --blocks 1 --seq-len 32 \
        --data "$prefix/share/millrace/sample/eval.jsonl" >"$work/out" 2>&1 ||
        fail "the sample: $(cat "$work/out")"
    [ ! -e "$prefix/bin/millrace-desktop" ] || "$prefix/bin/millrace-desktop" --version >"$work/out" 2>&1 ||
        fail "millrace-desktop --version: $(cat "$work/out")"
}

# A hub that nobody serves is refused by the plugin; without the plugin, the program says that.
plugins_are_found() {
    [ -e "$prefix/lib/millrace/libmillrace_net.so" ] || fail "there is no network plugin"
    HF_ENDPOINT=http://127.0.0.1:9 "$millrace" get some/model --yes >"$work/out" 2>&1 &&
        fail "a model came from nowhere"
    grep -q '127.0.0.1' "$work/out" || fail "the network plugin was not found: $(cat "$work/out")"
    mv "$prefix/lib/millrace/libmillrace_net.so" "$work/"
    HF_ENDPOINT=http://127.0.0.1:9 "$millrace" get some/model --yes >"$work/out" 2>&1
    grep -q 'libmillrace_net.so' "$work/out" || fail "another plugin was found: $(cat "$work/out")"
}

# page_has NAME PATTERN: a line of the page, without what only man reads, matches.
page_has() {
    zcat "$prefix/share/man/man1/$1.1.gz" | sed 's/\\-/-/g; s/\\fB//g; s/\\fR//g' >"$work/page"
    grep -qE -- "$2" "$work/page" || fail "$1.1 has no line $2"
}

# Every command has its page, and every option of --help is in it.
manual_is_whole() {
    local command option commands
    commands=$("$millrace" --help | awk '/^Subcommands:/ { on = 1; next } on && NF { print $1 }')
    [ "$(wc -w <<<"$commands")" -ge 14 ] || fail "commands in --help: $commands"
    for command in $commands; do
        page_has millrace "^$command\$"
        for option in $("$millrace" "$command" --help | grep -oE '^  (-[a-z],)?--[a-z0-9-]+' | grep -oE -- '--[a-z0-9-]+'); do
            page_has "millrace-$command" "(^|, )$option( |\$)"
        done
    done
    [ ! -e "$prefix/bin/millrace-desktop" ] || page_has millrace-desktop '^--demo$'
}

# Signs of roff in a help are text.
manual_is_text() {
    printf '%s\n' 'Does\things' 'Usage: /a/b/prog x' '' 'Options:' '  --long-name TEXT Excludes: --all' \
        '                              .ends with a point' '  --some-long-option TEXT ... One space' "  -q,--quiet  'tis quiet" |
        awk -v name=prog -v source=S -f "$source/app/packaging/man_page.awk" >"$work/page" ||
        fail "man_page.awk"
    local line
    for line in 'prog \- Does\ethings' 'prog x' '\fB\-\-long\-name TEXT Excludes: \-\-all\fR' \
        '\&.ends with a point' '\fB\-\-some\-long\-option TEXT ...\fR' 'One space' '\fB\-q, \-\-quiet\fR' "\\&'tis quiet"; do
        grep -qxF -- "$line" "$work/page" || fail "no line $line in: $(cat "$work/page")"
    done
    ! awk -v name=prog -f "$source/app/packaging/man_page.awk" </dev/null >/dev/null 2>&1 ||
        fail "a page was made of nothing"
}

desktops_read_it() {
    local metainfo=$prefix/share/metainfo/org.millrace.millrace.metainfo.xml version
    version=$("$millrace" --version | cut -d' ' -f2)
    grep -q "<release version=\"$version\"" "$metainfo" || fail "the metainfo has no release $version"
    if there appstreamcli; then
        appstreamcli validate --no-net "$metainfo" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
    fi
    if there desktop-file-validate; then
        desktop-file-validate "$prefix/share/applications/millrace.desktop" || fail "the menu entry"
    fi
    if there update-mime-database; then
        update-mime-database "$prefix/share/mime" >"$work/out" 2>&1 || fail "$(cat "$work/out")"
        grep -q '^60:application/x-millrace-run+json:run.json:cs$' "$prefix/share/mime/globs2" ||
            fail "run.json has no type"
    fi
    local pixels
    for pixels in 48 64 128 256; do
        file "$prefix/share/icons/hicolor/${pixels}x$pixels/apps/millrace.png" |
            grep -q "PNG image data, $pixels x $pixels" || fail "the icon of $pixels pixels"
    done
}

programs_run
plugins_are_found
manual_is_whole
manual_is_text
[ ! -e "$prefix/bin/millrace-desktop" ] || desktops_read_it
[ "$failed" -eq 0 ] && echo "installed, found its plugins, documented"
exit "$failed"
