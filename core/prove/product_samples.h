// ProductSamples: fixed numbers for the operands of a product, and samples of its result.
//
// Numbers lie in [-1, 1) and repeat every 65,521, a prime, so that rows differ; the device copies
// them to itself, because making each on the host would take longer than the product.
//
// Threads    Engine thread.
// Ownership  Owns stream, event and pinned memory; borrows the device.
// Errors     fill() keeps the first; take() returns it, or those of the device.

#pragma once

#include "core/device/device.h"
#include "core/device/ops.h"

#include <millrace/status.h>

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

namespace mr {

class ProductSamples
{
public:
    static Result<std::unique_ptr<ProductSamples>> create(Device& device);

    Stream& stream() noexcept { return *m_stream; }

    // F32 or BF16; numbers of other phases differ. Enqueued.
    void fill(const TensorView& view, int phase);
    // The bytes of the view's samples: all, or pieces from end to end. Blocks until the stream is
    // idle.
    Status take(const TensorView& view, std::vector<std::byte>& samples);
    // samples, of an F32 view, += what fill() with this phase would have put there.
    void addFilled(const TensorView& view, int phase, std::vector<std::byte>& samples) const;

private:
    explicit ProductSamples(Device& device)
        : m_device(device)
    {
    }
    std::span<const std::byte> numbers(DType type, int phase) const;

    Device& m_device;
    std::unique_ptr<Stream> m_stream;
    std::unique_ptr<Event> m_event;
    Buffer m_numbers; // two periods of F32, then two of BF16
    Buffer m_landing;
    Status m_status;
};

} // namespace mr
