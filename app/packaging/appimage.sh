# shellcheck shell=bash disable=SC2154
# Makes the AppImage from a build. Sourced by app/package, which sets `root`, `build`, `out` and
# `version`. Everything in it comes from the build and from the system's packages; nothing is
# fetched. The libraries are those of the machine it is made on, so that one should be old: Debian 12.

readonly app_dir=$build/AppDir
readonly multiarch=/usr/lib/x86_64-linux-gnu
readonly appimage_limit=$((100 * 1000 * 1000))

# Qt's plugins that the program may want. The window is drawn by the processor, so those for OpenGL
# stay out, and with them the machine's drivers.
readonly qt_plugins=(
    platforms/libqxcb.so platforms/libqoffscreen.so platforms/libqwayland-generic.so
    wayland-shell-integration/libxdg-shell.so wayland-decoration-client/libbradient.so
    platforminputcontexts iconengines imageformats tls
)
# The machine's own: they belong to its kernel, its C library and its drivers.
readonly left_out='^(ld-linux-x86-64|lib(c|m|dl|rt|pthread|resolv|util|anl|mvec|nsl|nss_[a-z]+))\.so'
readonly nvidia='^lib(cuda|cudart|cublas|cublasLt|nvidia.*|nvrtc|cupti)\.so'

stage_programs() {
    rm -rf "$app_dir"
    quietly cmake --install "$build" --prefix "$app_dir/usr" --strip
    local own=$root/app/packaging/appimage
    install -m 755 "$own/AppRun" "$app_dir/AppRun"
    install -m 644 "$own/qt.conf" "$app_dir/usr/bin/qt.conf"
    install -m 644 "$own/fonts.conf" "$app_dir/usr/share/millrace/fonts.conf"
    ln -s usr/share/applications/millrace.desktop "$app_dir/millrace.desktop"
    ln -s usr/share/icons/hicolor/scalable/apps/millrace.svg "$app_dir/millrace.svg"
    ln -s usr/share/icons/hicolor/256x256/apps/millrace.png "$app_dir/.DirIcon"
}

stage_qt() {
    local plugin source target
    for plugin in "${qt_plugins[@]}"; do
        source=$multiarch/qt6/plugins/$plugin
        [ -e "$source" ] || stop "Qt's plugin $source is missing; install qt6-wayland and libqt6svg6"
        target=$app_dir/usr/lib/qt6/plugins/$plugin
        mkdir -p "$(dirname "$target")"
        cp -rL --no-preserve=mode "$source" "$target"
        find "$source" -type f >>"$build/copied"
    done
    install -D -m 644 -t "$app_dir/usr/share/qt6/translations" /usr/share/qt6/translations/qtbase_ja.qm
    install -D -m 644 -t "$app_dir/usr/share/fonts" /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf
    printf '%s\n' /usr/share/qt6/translations/qtbase_ja.qm \
        /usr/share/fonts/truetype/dejavu/DejaVuSans.ttf >>"$build/copied"
}

# Each "name path" that the programs, their plugins and Qt's load. libssl and the cursors' library
# are opened by name when they are wanted.
libraries_needed() {
    local file by_name=("$multiarch/libssl.so.3" "$multiarch/libXcursor.so.1")
    {
        find "$app_dir/usr/bin" -type f -name 'millrace*'
        find "$app_dir/usr/lib" -type f
        printf '%s\n' "${by_name[@]}"
    } | while read -r file; do
        ldd "$file" 2>/dev/null || true # a file of data
    done | awk '$2 == "=>" && $3 ~ /^\// { print $1, $3 }'
    for file in "${by_name[@]}"; do
        printf '%s %s\n' "${file##*/}" "$file"
    done
}

# Debian's wants a newer glibc than all others (arc4random_buf.cpp says more).
link_expat() {
    quietly g++ -O2 -fPIC -shared -s -Wl,-soname,libexpat.so.1 -Wl,-Bsymbolic -Wl,-z,defs \
        "$root/app/packaging/appimage/arc4random_buf.cpp" \
        -Wl,--whole-archive -l:libexpat.a -Wl,--no-whole-archive -o "$app_dir/usr/lib/libexpat.so.1"
}

stage_libraries() {
    local name path folder
    libraries_needed | sort -u >"$build/libraries"
    while read -r name path; do
        if [[ $name =~ $left_out || $name =~ $nvidia ]]; then
            continue
        fi
        folder=$app_dir/usr/lib
        case $name in
        libstdc++.so.* | libgcc_s.so.*) folder+=/fallback/c++ ;;
        libEGL.so.* | libGLX.so.* | libOpenGL.so.* | libGLdispatch.so.*) folder+=/fallback/gl ;;
        esac
        install -D -m 644 "$path" "$folder/$name"
        readlink -f "$path" >>"$build/copied"
    done <"$build/libraries"
    link_expat
    local program
    for program in millrace millrace-desktop; do
        # The old form of the path also serves the libraries that libraries and plugins load.
        patchelf --force-rpath --set-rpath "\$ORIGIN/../lib" "$app_dir/usr/bin/$program"
    done
}

# The licence of each package that a copied or linked file is from.
stage_licences() {
    local package
    printf '%s\n' "$multiarch"/lib{squashfuse,z,lzma,zstd,lz4,lzo2,c,expat}.a >>"$build/copied"
    sort -u "$build/copied" | while read -r file; do
        dpkg-query -S "$file" 2>/dev/null || dpkg-query -S "${file#/usr}" 2>/dev/null ||
            stop "no package owns $file, so its licence is not known"
    done | cut -d: -f1 | sort -u >"$build/packages"
    while read -r package; do
        install -D -m 644 "/usr/share/doc/$package/copyright" \
            "$app_dir/usr/share/doc/$package/copyright"
    done <"$build/packages"
}

# Every library that a packed file names is packed, or is the machine's.
check_libraries() {
    local file name
    find "$app_dir/usr/lib" "$app_dir/usr/bin" -type f | while read -r file; do
        for name in $(objdump -p "$file" 2>/dev/null | awk '$1 == "NEEDED" { print $2 }'); do
            [[ ! $name =~ $left_out && ! $name =~ $nvidia ]] || continue
            [ -e "$app_dir/usr/lib/$name" ] || [ -e "$app_dir/usr/lib/fallback/c++/$name" ] ||
                [ -e "$app_dir/usr/lib/fallback/gl/$name" ] || stop "$file needs $name, which is not packed"
        done
    done
}

check_app_dir() {
    local found
    found=$(find "$app_dir" -printf '%f\n' | grep -E "$nvidia" || true)
    [ -z "$found" ] || stop "files of NVIDIA's would be packed: $found"
    check_libraries
    found=$({ find "$app_dir/usr/lib" "$app_dir/usr/bin" -type f -not -path '*/fallback/c++/*' \
        -exec objdump -T {} + 2>/dev/null || true; } | grep -oE 'GLIBC_2\.[0-9]+' | sort -uV | tail -n 1)
    printf '%s\n' "${found#GLIBC_}" >"$app_dir/glibc" # AppRun compares
    say "      it starts on Linux on x86-64 with glibc ${found#GLIBC_} or newer"
}

# The program at the head of the file: static, for any x86-64.
build_head() {
    local own=$root/app/packaging/appimage
    quietly g++ -std=c++20 -O2 -s -static -isystem /usr/include/squashfuse \
        "$own/main.cpp" "$own/cache.cpp" "$own/image.cpp" -o "$1" \
        -lsquashfuse -lz -llzma -lzstd -llz4 -llzo2
    printf 'AI\002' | dd of="$1" bs=1 seek=8 conv=notrunc status=none
}

# id_of FOLDER: a name for its content.
id_of() {
    (cd "$1" && find . \( -type f -o -type l \) -print0 | sort -z |
        while IFS= read -r -d '' file; do
            printf '%s %s\n' "$file" "$(readlink "$file" || sha256sum <"$file")"
        done | sha256sum | cut -c1-32)
}

# pack_appimage FILE
pack_appimage() {
    local image=$build/AppDir.squashfs part=$1.part bytes
    id_of "$app_dir" >"$build/image_id"
    mv "$build/image_id" "$app_dir/image_id"
    build_head "$part"
    # zstd takes a tenth more than xz, and is unpacked several times as fast.
    quietly mksquashfs "$app_dir" "$image" -noappend -root-owned -no-xattrs -b 1M -comp zstd \
        -Xcompression-level 15
    cat "$image" >>"$part"
    rm -f "$image"
    chmod 755 "$part"
    bytes=$(stat -c %s "$part")
    [ "$bytes" -le "$appimage_limit" ] ||
        stop "$part has $bytes bytes, and may have $appimage_limit"
    sync "$part"
    mv "$part" "$1"
}

# make_appimage FILE. To be called plainly: the first command that fails ends the script.
make_appimage() {
    rm -f "$build/copied"
    stage_programs
    stage_qt
    stage_libraries
    stage_licences
    check_app_dir
    pack_appimage "$1"
}
