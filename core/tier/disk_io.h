// DiskIo: many page-aligned reads and writes in flight, by whichever means the system allows.
//
// It moves bytes and nothing else: disk_verdict decides for all means about short and failed
// requests, and DiskStore decides the order of tiles.
//
// Threads   Created, used and destroyed on one thread; wake() from any.
// Order     None: requests that overlap are the caller's mistake.
// Ownership Descriptors and memory are the caller's. Memory of a request must live until its
//           completion was reaped: destroy only with nothing in flight.
// Errors    Those of a request arrive in its completion; flush() and reap() return -errno where
//           the means itself is broken.
// Units     Bytes. Everything a multiple of 4,096, at most kDiskRequestBytes per request.

#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace mr {

// Above this a kernel may do half of a request and report all of it as not done
// (reference: ssd_offload, 5.3).
inline constexpr std::uint32_t kDiskRequestBytes = std::uint32_t{1} << 20;

enum class DiskOp : std::uint8_t { Read, Write };

struct DiskRequest {
    DiskOp op = DiskOp::Read;
    int file = 0; // index into the files the means was opened with
    std::uint64_t offset = 0;
    std::byte* memory = nullptr;
    std::uint32_t bytes = 0;
    std::uint64_t tag = 0; // comes back with the completion; below 2^32
};

struct DiskCompletion {
    std::uint64_t tag = 0;
    std::int64_t result = 0; // bytes moved, or -errno
};

class DiskIo
{
public:
    virtual ~DiskIo() = default;

    virtual std::string_view name() const noexcept = 0; // "io_uring", "8 threads"
    // Requests that may be in flight at once.
    virtual std::size_t capacity() const noexcept = 0;

    // False: no place; reap first. The request may start now or at the next flush() or reap().
    virtual bool submit(const DiskRequest& request) noexcept = 0;
    // 0 or -errno.
    virtual int flush() noexcept = 0;
    // Flushes; waits until there is a completion, wake() was called or `limit` is over. Returns how
    // many it wrote to `out`, which is not empty; or -errno. May return 0 early.
    virtual int reap(std::span<DiskCompletion> out, std::chrono::microseconds limit) noexcept = 0;
    // Ends the reap() that waits now, or the next.
    virtual void wake() noexcept = 0;
};

} // namespace mr
