// DiskMemory: page-aligned memory for the tier's own small needs (probes, benchmarks).
//
// Threads   A value; its bytes are the user's business.
// Ownership Owns the bytes, which are not initialised.
// Errors    std::bad_alloc.

#pragma once

#include "core/tier/disk_layout.h"

#include <cstddef>
#include <memory>
#include <new>
#include <span>

namespace mr {

class DiskMemory
{
public:
    DiskMemory() = default;
    explicit DiskMemory(std::uint64_t bytes)
        : m_bytes(bytes)
        , m_data(static_cast<std::byte*>(::operator new(bytes, kAlignment)))
    {
    }

    std::byte* data() const noexcept { return m_data.get(); }
    std::span<std::byte> all() const noexcept { return {m_data.get(), m_bytes}; }

private:
    static constexpr std::align_val_t kAlignment{kDiskPageBytes};
    struct Free {
        void operator()(std::byte* data) const noexcept { ::operator delete(data, kAlignment); }
    };

    std::uint64_t m_bytes = 0;
    std::unique_ptr<std::byte, Free> m_data;
};

} // namespace mr
