// DiskIo by io_uring, on a ring that uring_setup has opened.
//
// Threads   As DiskIo: the thread that opened the ring is the only one to use it.
// Ownership UringRing closes the ring and its descriptor.
// Units     As DiskIo.

#pragma once

#include "core/tier/disk_io.h"

#include <liburing.h>

#include <memory>
#include <vector>

namespace mr {

struct UringRing {
    UringRing() = default;
    ~UringRing();
    UringRing(const UringRing&) = delete;
    UringRing& operator=(const UringRing&) = delete;

    io_uring ring{};
    bool open = false;
    unsigned completions = 0; // entries of the completion queue
    int wakeDescriptor = -1;  // an eventfd the ring polls
    bool fixedFiles = false;
    std::vector<iovec> parts; // registered buffers, by index; ascending addresses
};

std::unique_ptr<DiskIo> makeUringIo(std::unique_ptr<UringRing> ring, std::vector<int> descriptors);

} // namespace mr
