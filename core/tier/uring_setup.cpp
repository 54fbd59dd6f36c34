#include "core/tier/uring_setup.h"

#include "core/tier/uring_io.h"

#include <fmt/format.h>
#include <liburing.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <fstream>
#include <system_error>
#include <utility>

namespace mr {
namespace {

constexpr unsigned kEntries = 256;
constexpr std::uint64_t kPartBytes = std::uint64_t{1} << 30;

struct Rung {
    unsigned flags;
    const char* name;
};

// No SQPOLL (a core for nothing at 7,000 requests a second), no IOPOLL (needs poll queues that
// hardly anybody sets up, and silently is none without them).
constexpr std::array kRungs = {
    Rung{IORING_SETUP_SINGLE_ISSUER | IORING_SETUP_DEFER_TASKRUN, "DEFER_TASKRUN"}, // 6.1
    Rung{IORING_SETUP_COOP_TASKRUN, "COOP_TASKRUN"},                                // 5.19
    Rung{0, "no flags"},
};

std::string reasonOf(int error)
{
    return std::generic_category().message(error);
}

std::string sysctlWords()
{
    int disabled = 0;
    std::ifstream("/proc/sys/kernel/io_uring_disabled") >> disabled;
    if (disabled == 0)
        return "a container's system call filter often does that: start the container with "
               "--security-opt seccomp=PROFILE where PROFILE allows io_uring_setup, "
               "io_uring_enter and io_uring_register";
    return fmt::format(
        "the setting kernel.io_uring_disabled is {}: as root, sysctl kernel.io_uring_disabled=0",
        disabled);
}

std::string refusalWords(int error)
{
    const std::string start = "io_uring is refused (" + reasonOf(error) + "): ";
    if (error == EPERM || error == EACCES)
        return start + sysctlWords();
    if (error == ENOSYS)
        return start + "this kernel has none or it is filtered; Linux 5.6 or later has it";
    if (error == ENOMEM)
        return start + "too little memory may be locked: ulimit -l unlimited (or LimitMEMLOCK= "
                       "of the service)";
    return start + "not known why";
}

// Goes down where the kernel does not know a flag, stops where it refuses rings altogether.
int climb(UringRing& ring, const UringCalls& calls, std::string& words)
{
    int error = 0;
    for (const Rung& rung : kRungs) {
        io_uring_params params{};
        params.flags = rung.flags;
        error = -calls.setup(kEntries, &ring.ring, &params);
        if (error == 0) {
            ring.open = true;
            ring.completions = params.cq_entries;
            words += std::string("io_uring (") + rung.name + ")";
            return 0;
        }
        if (error != EINVAL)
            return error;
        words += std::string(rung.name) + " is not known to this kernel; ";
    }
    return error;
}

bool canReadAndWrite(UringRing& ring)
{
    io_uring_probe* probe = io_uring_get_probe_ring(&ring.ring);
    const bool able = probe && io_uring_opcode_supported(probe, IORING_OP_READ) != 0 &&
                      io_uring_opcode_supported(probe, IORING_OP_WRITE) != 0;
    io_uring_free_probe(probe);
    return able;
}

void registerMemory(UringRing& ring, std::span<const std::span<std::byte>> memory,
    const UringCalls& calls, std::string& words)
{
    std::vector<iovec> parts = uringBufferParts(memory);
    if (parts.empty())
        return;
    const int got =
        calls.registerBuffers(&ring.ring, parts.data(), static_cast<unsigned>(parts.size()));
    if (got == -ENOMEM)
        words += "; buffers are not registered, which costs some processor time: too little "
                 "memory may be locked (ulimit -l unlimited)";
    else if (got < 0)
        words += "; buffers are not registered, which costs some processor time (" +
                 reasonOf(-got) + ")";
    else if (static_cast<std::size_t>(got) < parts.size())
        words += fmt::format("; only {} of {} buffers are registered, the rest costs some "
                             "processor time (ulimit -l unlimited)",
            got, parts.size());
    parts.resize(static_cast<std::size_t>(std::max(got, 0)));
    ring.parts = std::move(parts);
}

int registerFront(io_uring* ring, const iovec* parts, unsigned count)
{
    // A sparse table takes as many as may be locked; kernels before 5.19 know all or nothing.
    if (io_uring_register_buffers_sparse(ring, count) == 0) {
        const int got = io_uring_register_buffers_update_tag(ring, 0, parts, nullptr, count);
        if (got <= 0)
            io_uring_unregister_buffers(ring);
        return got;
    }
    const int got = io_uring_register_buffers(ring, parts, count);
    return got < 0 ? got : static_cast<int>(count);
}

} // namespace

UringCalls systemUringCalls()
{
    return {io_uring_queue_init_params, registerFront, io_uring_register_files};
}

std::vector<iovec> uringBufferParts(std::span<const std::span<std::byte>> memory)
{
    std::vector<iovec> parts;
    for (std::span<std::byte> region : memory)
        while (!region.empty()) {
            const std::size_t bytes = std::min<std::size_t>(region.size(), kPartBytes);
            parts.push_back({region.data(), bytes});
            region = region.subspan(bytes);
        }
    // Requests look their part up by address.
    std::ranges::sort(parts, {}, [](const iovec& part) { return part.iov_base; });
    return parts;
}

UringOpening openUring(std::vector<int> descriptors, std::span<const std::span<std::byte>> memory,
    const UringCalls& calls)
{
    std::string words;
    auto ring = std::make_unique<UringRing>();
    if (const int error = climb(*ring, calls, words); error != 0)
        return {nullptr, words + refusalWords(error)};
    if (!canReadAndWrite(*ring))
        return {nullptr, "io_uring of this kernel cannot read and write: Linux 5.6 or later can"};
    ring->wakeDescriptor = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (ring->wakeDescriptor < 0)
        return {nullptr, "io_uring is not used: no event descriptor (" + reasonOf(errno) + ")"};
    const int error = -calls.registerFiles(
        &ring->ring, descriptors.data(), static_cast<unsigned>(descriptors.size()));
    ring->fixedFiles = error == 0;
    if (error != 0)
        words += "; files are not registered (" + reasonOf(error) + ")";
    registerMemory(*ring, memory, calls, words);
    return {makeUringIo(std::move(ring), std::move(descriptors)), words};
}

} // namespace mr
