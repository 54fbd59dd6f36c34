# shellcheck shell=bash disable=SC2034,SC2154
# Shared by app/run, app/package and tests/run: packages, configuring, building. Sourced, not run.
# The caller sets `root` to the source folder and `steps` to how many steps it will announce.

# What the build looks for, and what the programs need to run. A new dependency is added here.
build_packages=(
    ca-certificates
    build-essential cmake ninja-build pkg-config ccache
    qt6-base-dev qt6-svg-dev qt6-tools-dev qt6-tools-dev-tools qt6-l10n-tools libqcustomplot-dev
    libsentencepiece-dev libsimdjson-dev nlohmann-json3-dev # data
    zlib1g-dev libzstd-dev                                  # compressed datasets
    libsnappy-dev liblz4-dev                                # pages of Parquet files
    libpcre2-dev libutf8proc-dev                            # tokenizers
    libsqlite3-dev                                          # history
    libdnnl-dev libhwy-dev                                  # matrix products, SIMD
    libfmt-dev libcli11-dev libxxhash-dev
    libssl-dev                                              # hashes of what a hub sends
    liburing-dev                                            # files on SSDs
    fontconfig fonts-dejavu-core fonts-noto-cjk             # without fonts every letter is a box
)
if grep -qs '^ID=ubuntu$' /etc/os-release; then
    build_packages+=(libprotobuf-dev) # Ubuntu's sentencepiece.pc asks for it, Debian's does not
fi
# These check the files that desktops read, and make the head of the AppImage.
desktop_packages=(file desktop-file-utils appstream shared-mime-info)
appimage_packages=(
    squashfs-tools libsquashfuse-dev zlib1g-dev liblzma-dev libzstd-dev liblz4-dev liblzo2-dev
)
package_packages=(
    "${desktop_packages[@]}" "${appimage_packages[@]}"
    dpkg-dev patchelf binutils
    libexpat1-dev qt6-wayland qt6-translations-l10n libxcursor1 # what the AppImage takes along
)
test_packages=(
    dbus-daemon           # a bus of their own for what the desktop is told; windows are drawn offscreen
    xvfb                  # but one, which a screen reader's side looks at: Qt speaks AT-SPI on X alone
    clang libclang-rt-dev lld # the sanitizers' builds and libFuzzer
    llvm                      # llvm-symbolizer: names in their reports, which tsan.supp goes by
    clang-format-14
    "${desktop_packages[@]}" "${appimage_packages[@]}"
)

step_number=0
step_began=0
step_name=
step_times=() # "seconds name" of each step that ended

# say TEXT: one line of ours, told apart from what other programs print.
say() { printf '%s\n' "== $*"; }

# begin TEXT: announces the next step.
begin() {
    step_number=$((step_number + 1))
    step_began=$SECONDS
    step_name=$*
    say "[$step_number/$steps] $*"
}

# finish [TEXT]: ends the step and prints how long it took.
finish() {
    step_times+=("$((SECONDS - step_began)) $step_name")
    say "      ${*:-done} ($((SECONDS - step_began)) s)"
}

# How long each step took, longest first.
print_times() {
    local line
    printf '%s\n' "${step_times[@]}" | sort -rn | while read -r line; do
        say "$(printf '%5d s  %s' "${line%% *}" "${line#* }")"
    done
}

stop() {
    printf '%s\n' "== stopped: $*" >&2
    exit 1
}

# quietly COMMAND...: its output goes to a log and is shown only if it fails.
quietly() {
    local log code=0
    log=$(mktemp "${TMPDIR:-/tmp}/millrace-setup.XXXXXX")
    "$@" >"$log" 2>&1 </dev/null || code=$?
    if [ "$code" -eq 0 ]; then
        rm -f "$log"
        return 0
    fi
    printf '%s\n' "== failed with exit code $code: $*" "== the end of its output:" >&2
    tail -n 40 "$log" >&2
    printf '%s\n' "== all of it: $log" >&2
    return 1
}

is_installed() {
    [ "$(dpkg-query -W -f='${db:Status-Status}' "$1" 2>/dev/null)" = installed ]
}

# as_root COMMAND...: directly, or through sudo.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    else
        sudo "$@"
    fi
}

apt_quietly() {
    quietly as_root env DEBIAN_FRONTEND=noninteractive NEEDRESTART_MODE=l LC_ALL=C \
        apt-get -y -q -o DPkg::Lock::Timeout=600 -o Dpkg::Options::=--force-confdef \
        -o Dpkg::Options::=--force-confold -o Dpkg::Use-Pty=0 "$@"
}

# install_packages NAME...: installs those that are missing, and only them.
install_packages() {
    begin "packages"
    if ! command -v apt-get >/dev/null || ! command -v dpkg-query >/dev/null; then
        say "      no apt-get here: this machine must have these packages, or what it calls them:"
        say "      $*"
        finish "not checked"
        return 0
    fi
    local missing=() name
    for name in "$@"; do
        is_installed "$name" || missing+=("$name")
    done
    if [ ${#missing[@]} -eq 0 ]; then
        finish "all $# are installed"
        return 0
    fi
    say "      installing ${#missing[@]} of $#: ${missing[*]}"
    if [ "$(id -u)" -ne 0 ]; then
        command -v sudo >/dev/null || stop "packages are missing, you are not root, and there is" \
            "no sudo. As root, run: apt-get install --no-install-recommends ${missing[*]}"
        # The one question there may be is sudo's, for a password; without a terminal it cannot ask.
        sudo -n true 2>/dev/null || { [ -t 0 ] && sudo -v; } || stop "sudo needs a password. Run" \
            "once: sudo apt-get install --no-install-recommends ${missing[*]}"
    fi
    # A foreign source that does not answer fails the update, though ours may all be there.
    apt_quietly update || say "      not every package list could be refreshed; going on with what is known"
    apt_quietly install --no-install-recommends "${missing[@]}" ||
        stop "apt-get could not install the packages (is there a network?)"
    finish "installed"
}

# How many compilers may run at once: one a processor, and 1.5 GiB of free memory for each.
job_count() {
    local processors memory
    processors=$(nproc)
    memory=$(awk '/^MemAvailable:/ {print int($2 / 1572864)}' /proc/meminfo)
    [ "$memory" -ge 1 ] || memory=1
    echo $((processors < memory ? processors : memory))
}

# configure PRESET [CMAKE-ARGUMENT...]
configure() {
    local preset=$1
    shift
    begin "configure build/$preset"
    (cd "$root" && quietly cmake --preset "$preset" "$@") || return 1
    finish
}

# has_cuda PRESET: whether that build folder compiles the CUDA device; one of before may say so, too.
has_cuda() { grep -qs '^MR_WITH_CUDA:BOOL=ON' "$root/build/$1/CMakeCache.txt"; }

# Ninja's lines become a line every tenth of the way, and lrelease's counts are left out; whatever
# else is printed is passed on.
show_tenths() {
    local line tenth last=0
    while IFS= read -r line; do
        if [[ $line =~ ^\[([0-9]+)/([0-9]+)\]\ (.*) ]]; then
            tenth=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
            if [ "$tenth" -gt "$last" ] && [ "$tenth" -lt 10 ]; then
                say "      $((10 * tenth)) % (${BASH_REMATCH[1]} of ${BASH_REMATCH[2]})"
                last=$tenth
            fi
        elif [[ ! $line =~ ^(ninja: no work to do|Updating \'|\ +(Generated|Ignored)\ [0-9]) ]]; then
            printf '%s\n' "$line"
        fi
    done
}

# build PRESET [TARGET...]: brings the targets (or everything) up to date.
build() {
    local preset=$1 jobs
    shift
    jobs=$(job_count)
    local what=$*
    [ $# -le 4 ] || what="$# targets"
    begin "build ${what:-everything} in build/$preset, $jobs at a time"
    local command=(cmake --build "$root/build/$preset" --parallel "$jobs")
    if [ $# -gt 0 ]; then
        command+=(--target "$@")
    fi
    command+=(-- -k 0) # one broken file does not hide the state of the others
    if [ -t 1 ]; then
        "${command[@]}" || return 1
    else
        "${command[@]}" 2>&1 | show_tenths
        [ "${PIPESTATUS[0]}" -eq 0 ] || return 1
    fi
    finish
}
