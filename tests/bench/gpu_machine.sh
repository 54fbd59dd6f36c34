# shellcheck shell=bash disable=SC2034,SC2154 # variables are shared with gpu.sh
# Describes the machine for gpu.sh, and finds the libraries and tools of NVIDIA that it uses.
#
# Needs: timed, skip and probe of gpu_run.sh, facts and figure of gpu_summary.sh, millrace, results, work.

# memory KEY: of /proc/meminfo, in GiB.
memory() { awk -v key="$1:" '$1 == key { printf "%.1f GiB", $2 / 2^20 }' /proc/meminfo; }

memory_words() { echo "MemTotal $(memory MemTotal), MemAvailable $(memory MemAvailable)"; }

free_disk() { df -Ph "$1" 2>/dev/null | awk 'NR == 2 { print $4 "B free in " $6 }'; }

describe_host() {
    local limit processor variables
    processor=$(sed -n 's/^model name[^:]*: *//p' /proc/cpuinfo | head -n 1)
    facts+=("date: $(date -u +%FT%TZ), $(uname -sr)")
    limit=$(cat /sys/fs/cgroup/memory.max 2>/dev/null || cat /sys/fs/cgroup/memory/memory.limit_in_bytes 2>/dev/null)
    [[ $limit =~ ^[0-9]{1,15}$ ]] && limit=", limit of this group $((limit >> 30)) GiB" || limit=
    facts+=("host: $(nproc) cores, ${processor:-processor unknown}, $(memory_words)$limit")
    facts+=("disk: $(free_disk "$work"), $(free_disk "$(dirname "$results")")")
    variables=$(env | grep '^\(CUDA_\|MILLRACE_CUDA_\|NVIDIA_\)' | sort | tr '\n' ' ')
    [ -z "$variables" ] || facts+=("environment: $variables")
}

describe_card() {
    local query=name,driver_version,memory.total,memory.free,clocks.max.sm,power.limit
    query+=,pcie.link.gen.max,pcie.link.width.max
    if ! command -v nvidia-smi >/dev/null; then
        skip nvidia-smi "not on this machine"
        facts+=("card: unknown, there is no nvidia-smi")
        return 0
    fi
    if timed nvidia-smi 20 nvidia-smi "--query-gpu=$query" --format=csv,noheader; then
        facts+=("card: $(head -n 1 "$output.txt") ($query)")
    else
        facts+=("card: unknown, nvidia-smi: $verdict")
    fi
    timed "nvidia-smi -q" 20 nvidia-smi -q
}

# find_library NAME [FOLDER]: a folder that holds it: ours, the given one, a toolkit's, that of a
# Python wheel. Virtual environments are often links.
find_library() {
    local found place places=()
    for place in "$(dirname "$millrace")/../lib" ${2:+"$2"} ${VIRTUAL_ENV:+"$VIRTUAL_ENV"} \
        /usr/local/cuda* /usr/lib/python3* /usr/local/lib /opt "$HOME"; do
        [ -d "$place" ] && places+=("$place")
    done
    found=$(probe 10 find -L "${places[@]}" -maxdepth 10 -name "$1" -print -quit 2>/dev/null)
    [ -z "$found" ] || dirname "$found"
}

# find_libraries: cuBLASLt, which the CUDA device needs, and CUPTI. LD_LIBRARY_PATH gets the folder of
# a library that the system's loader does not know.
find_libraries() {
    local name folder words=()
    for name in libcublasLt.so.13 libcupti.so.13; do
        if PATH=$PATH:/sbin:/usr/sbin ldconfig -p 2>/dev/null | grep -qF "$name "; then
            words+=("$name of the system")
            continue
        fi
        folder=$(find_library "$name" "${folder:-}")
        words+=("$name ${folder:+in }${folder:-not found}")
        [ -z "$folder" ] || export LD_LIBRARY_PATH="${LD_LIBRARY_PATH:+$LD_LIBRARY_PATH:}$folder"
    done
    facts+=("libraries: ${words[0]}, ${words[1]}")
}

describe_program() {
    timed "millrace --version" 10 "$millrace" --version
    facts+=("program: $(head -n 1 "$output.txt" 2>/dev/null), $millrace")
}

describe_machine() {
    describe_host
    describe_card
    find_libraries
    describe_program
}

# note_driver: what the kernel's log has of the driver; Xid is its word for an error of the card.
note_driver() {
    local lines=$work/driver.txt
    probe 5 dmesg 2>/dev/null | grep 'NVRM' | tail -n 50 >"$lines"
    ! grep -q Xid "$lines" || figure "driver: $(grep -c Xid "$lines") errors, last: $(grep Xid "$lines" | tail -n 1)"
}

# find_tool NAME: a program of the CUDA toolkit.
find_tool() {
    local file
    command -v "$1" && return 0
    for file in /usr/local/cuda*/bin/"$1" /opt/nvidia/*/*/"$1"; do
        [ -x "$file" ] && echo "$file" && return 0
    done
    return 1
}

# find_python: a Python whose PyTorch sees the card.
find_python() {
    local python check='import sys, torch; sys.exit(not torch.cuda.is_available())'
    for python in "${PYTHON:-}" python3 python ${VIRTUAL_ENV:+"$VIRTUAL_ENV/bin/python"} /opt/*/bin/python3; do
        command -v "$python" >/dev/null || continue
        probe 20 "$python" -c "$check" 2>/dev/null && echo "$python" && return 0
    done
    return 1
}
