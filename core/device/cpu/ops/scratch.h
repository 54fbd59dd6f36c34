// Scratch memory of the CPU ops: one block per thread of the pool.
//
// Threads  The thread that runs an op calls hold() before it forks; the hold keeps other streams
//          out until it is dropped. of() is for the items of that op.
// Ownership Blocks grow and never shrink, so that a step like the one before allocates nothing.
// Errors   std::bad_alloc, as the standard library.
// Units    floats.

#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace mr::cpu {

class Scratch
{
public:
    explicit Scratch(int threads)
        : m_blocks(static_cast<std::size_t>(threads))
    {
    }

    // Every thread's block has at least `floatsPerThread` while the hold lives.
    [[nodiscard]] std::unique_lock<std::mutex> hold(std::int64_t floatsPerThread)
    {
        std::unique_lock lock(m_mutex);
        grow(floatsPerThread);
        return lock;
    }

    // As hold(), for a caller that holds already.
    void grow(std::int64_t floatsPerThread)
    {
        const auto count = static_cast<std::size_t>(floatsPerThread);
        if (count > m_floats) {
            for (auto& block : m_blocks) {
                block.reset();
                block.reset(allocate(count));
            }
            m_floats = count;
        }
    }

    // Starts at a cache line.
    float* of(int worker) noexcept { return m_blocks[static_cast<std::size_t>(worker)].get(); }

    // List of integers for the holder. Grows like the blocks.
    std::vector<std::int64_t>& numbers() noexcept { return m_numbers; }

private:
    static constexpr std::align_val_t kAlignment{64};

    struct Free {
        void operator()(float* p) const noexcept { ::operator delete[](p, kAlignment); }
    };

    static float* allocate(std::size_t count)
    {
        return static_cast<float*>(::operator new[](count * sizeof(float), kAlignment));
    }

    std::mutex m_mutex;
    std::size_t m_floats = 0;
    std::vector<std::unique_ptr<float[], Free>> m_blocks;
    std::vector<std::int64_t> m_numbers;
};

} // namespace mr::cpu
