// When an event passed, on the steady clock of the host.
//
// The card tells only how long two events lie apart, in milliseconds as a float: 24 bits, so a
// second apart is known to 60 ns, a minute to 4 us. Base events therefore follow each other, one
// per submit() and at most one a second; an event is measured from the base that was the newest
// when it was recorded, and all events of one step have the same.
//
// A base is recorded on a stream where nothing else runs, between two readings of the host's
// clock. Its time is the one that follows from the base before, moved into that interval: so times
// do not jump by the uncertainty of a reading (some 10 us), and drift between the two clocks never
// adds up.
//
// Threads  open(), advance(): engine thread. newest(), timeNs(): any.
// Errors   open(): those of toStatus(). A base that cannot be taken is tried again later.

#pragma once

#include "gpu/cuda_failure.h"

#include <cuda_runtime_api.h>

#include <array>
#include <atomic>
#include <cstdint>
#include <mutex>

namespace mr::gpu {

class CudaClock
{
public:
    explicit CudaClock(CudaFailure& failure)
        : m_failure(failure)
    {
    }

    ~CudaClock();
    CudaClock(const CudaClock&) = delete;
    CudaClock& operator=(const CudaClock&) = delete;

    // Borrows `stream`, which must have no other work.
    Status open(cudaStream_t stream);

    // A new base, if the newest is older than a second. Spins for 200 us at most: less than that
    // unless the card is busy switching programs, and then the older base serves on.
    void advance() noexcept;

    std::uint64_t newest() const noexcept { return m_newest.load(std::memory_order_acquire); }

    // `base` is newest() as it was when `event` was recorded. 0 if the card does not answer.
    std::int64_t timeNs(cudaEvent_t event, std::uint64_t base) const noexcept;

private:
    struct Base {
        cudaEvent_t event = nullptr;
        std::int64_t hostNs = 0;
    };

    static constexpr std::uint64_t kBases = 64; // a minute of them

    const Base& at(std::uint64_t base) const noexcept { return m_bases[base % kBases]; }

    // False if the event did not pass in time.
    bool record(Base& base, std::int64_t& beforeNs, std::int64_t& afterNs) noexcept;

    CudaFailure& m_failure;
    cudaStream_t m_stream = nullptr;
    mutable std::mutex m_mutex;         // held while a base is recorded or measured from
    std::array<Base, kBases> m_bases{}; // guarded by m_mutex
    std::atomic<std::uint64_t> m_newest = 0;
};

} // namespace mr::gpu
