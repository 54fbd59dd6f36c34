// The ladder of io_uring: the ring that this kernel grants, with its refusals and reasons in words.
//
// Threads  openUring() on the thread that will use the ring: the kernel ties the ring to it.
// Errors   A refusal is a result, with the sentence that goes into DiskStore::about().
// Units    As DiskIo.

#pragma once

#include "core/tier/disk_io.h"

#include <sys/uio.h>

#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

struct io_uring;
struct io_uring_params;

namespace mr {

// Calls to the kernel; tests answer in its place.
struct UringCalls {
    // As io_uring_queue_init_params: 0 or -errno.
    std::function<int(unsigned entries, io_uring* ring, io_uring_params* params)> setup;
    // How many were registered, from the front; or -errno.
    std::function<int(io_uring* ring, const iovec* parts, unsigned count)> registerBuffers;
    std::function<int(io_uring* ring, const int* files, unsigned count)> registerFiles;
};
UringCalls systemUringCalls();

// At most 1 GiB per part: one byte more is refused (reference: ssd_offload, 5.2).
std::vector<iovec> uringBufferParts(std::span<const std::span<std::byte>> memory);

struct UringOpening {
    std::unique_ptr<DiskIo> io; // null: refused
    std::string words;          // "io_uring (DEFER_TASKRUN), ..."; or why not, and the remedy
};

// Most requests will use `memory`; requests elsewhere work as well, a little slower.
UringOpening openUring(std::vector<int> descriptors, std::span<const std::span<std::byte>> memory,
    const UringCalls& calls = systemUringCalls());

} // namespace mr
