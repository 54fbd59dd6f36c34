// BlockingCopier: bytes between host memory and device outside of a step, through the pinned
// staging buffer, piece by piece.
//
// Threads    Engine thread; not during a step. Blocks.
// Ownership  Borrows device, staging buffer and streams, which outlive it.
// Errors     Those of the device.

#pragma once

#include "core/device/device.h"

#include <millrace/status.h>

#include <cstddef>
#include <memory>
#include <span>

namespace mr {

class BlockingCopier
{
public:
    struct Streams { // one for each direction
        Stream& in;
        Stream& out;
    };
    static Result<std::unique_ptr<BlockingCopier>> create(
        Device& device, std::span<std::byte> staging, const Streams& streams);

    Status toDevice(std::byte* to, std::span<const std::byte> from);
    Status toHost(std::span<std::byte> to, const std::byte* from);
    // After all work enqueued on `stream`.
    Status toHost(std::span<std::byte> to, const std::byte* from, Stream& stream);
    // Waits for all work enqueued on the stream.
    Status finish(Stream& stream);

private:
    BlockingCopier(Device& device, std::span<std::byte> staging, const Streams& streams,
        std::unique_ptr<Event> done);

    Device& m_device;
    std::span<std::byte> m_staging;
    Streams m_streams;
    std::unique_ptr<Event> m_done;
};

} // namespace mr
