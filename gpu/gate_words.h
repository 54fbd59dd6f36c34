// The words of gates: in pinned memory, which the card reads at an address of its own.
//
// Threads    GateWords: engine thread. GateWord: any.
// Ownership  GateWords owns the pages; words are views, valid until it goes, and never used twice.
// Errors     take(): OutOfMemory.

#pragma once

#include "gpu/cuda_failure.h"

#include <millrace/status.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace mr::gpu {

class GateWord
{
public:
    GateWord() = default;

    GateWord(std::atomic<std::uint64_t>* host, const void* device) noexcept
        : m_host(host)
        , m_device(device)
    {
    }

    std::uint64_t value() const noexcept { return m_host->load(std::memory_order_acquire); }

    // To `value`, unless it is there already. The card sees the caller's earlier writes before it
    // sees the word: both lie in host memory, which it reads in the order of the stores.
    void raise(std::uint64_t value) const noexcept
    {
        std::uint64_t now = m_host->load(std::memory_order_relaxed);
        while (now < value && !m_host->compare_exchange_weak(
                                  now, value, std::memory_order_release, std::memory_order_relaxed))
            ;
    }

    const void* deviceAddress() const noexcept { return m_device; }

private:
    std::atomic<std::uint64_t>* m_host = nullptr;
    const void* m_device = nullptr;
};

class GateWords
{
public:
    explicit GateWords(CudaFailure& failure)
        : m_failure(failure)
    {
    }

    ~GateWords();
    GateWords(const GateWords&) = delete;
    GateWords& operator=(const GateWords&) = delete;

    Result<GateWord> take();

private:
    Status addPage();

    struct Page {
        std::byte* host = nullptr;
        std::byte* device = nullptr;
    };

    CudaFailure& m_failure;
    std::vector<Page> m_pages;
    std::size_t m_usedBytes = 0; // used part of the last page
};

} // namespace mr::gpu
