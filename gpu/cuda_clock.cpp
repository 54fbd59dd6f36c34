#include "gpu/cuda_clock.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace mr::gpu {
namespace {

constexpr std::int64_t kPatienceNs = 200'000;
constexpr std::int64_t kBaseEveryNs = 1'000'000'000;
constexpr std::int64_t kGoodReadingNs = 50'000;
constexpr int kFirstTries = 8;

std::int64_t hostNs() noexcept
{
    return std::chrono::duration_cast<std::chrono::nanoseconds>(
        std::chrono::steady_clock::now().time_since_epoch())
        .count();
}

bool nsBetween(cudaEvent_t from, cudaEvent_t to, std::int64_t& ns) noexcept
{
    float ms = 0.0F;
    if (cudaEventElapsedTime(&ms, from, to) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    ns = std::llround(static_cast<double>(ms) * 1e6);
    return true;
}

} // namespace

CudaClock::~CudaClock()
{
    for (const Base& base : m_bases)
        if (base.event)
            m_failure.note(cudaEventDestroy(base.event), "cudaEventDestroy");
}

Status CudaClock::open(cudaStream_t stream)
{
    m_stream = stream;
    for (Base& base : m_bases)
        MR_TRY(m_failure.check(cudaEventCreate(&base.event), "cudaEventCreate"));
    // The first readings also start the card; the event's last recording is the one that counts.
    for (int i = 0; i < kFirstTries; ++i) {
        Base& first = m_bases[1];
        const std::int64_t before = hostNs();
        MR_TRY(m_failure.check(cudaEventRecord(first.event, stream), "cudaEventRecord"));
        MR_TRY(m_failure.check(cudaEventSynchronize(first.event), "cudaEventSynchronize"));
        const std::int64_t took = hostNs() - before;
        first.hostNs = before + took / 2;
        if (took < kGoodReadingNs)
            break;
    }
    m_newest.store(1, std::memory_order_release);
    return {};
}

bool CudaClock::record(Base& base, std::int64_t& beforeNs, std::int64_t& afterNs) noexcept
{
    beforeNs = hostNs();
    if (cudaEventRecord(base.event, m_stream) != cudaSuccess) {
        (void)cudaGetLastError();
        return false;
    }
    for (;;) {
        const cudaError_t code = cudaEventQuery(base.event);
        afterNs = hostNs();
        if (code == cudaSuccess)
            return true;
        (void)cudaGetLastError(); // not ready counts as an error, too
        if (code != cudaErrorNotReady || afterNs - beforeNs > kPatienceNs)
            return false;
    }
}

void CudaClock::advance() noexcept
{
    const std::scoped_lock lock(m_mutex);
    const std::uint64_t newest = this->newest();
    const Base& last = at(newest);
    if (m_failure.lost() || hostNs() - last.hostNs < kBaseEveryNs)
        return;
    Base& next = m_bases[(newest + 1) % kBases];
    std::int64_t before = 0;
    std::int64_t after = 0;
    std::int64_t passed = 0;
    if (!record(next, before, after) || !nsBetween(last.event, next.event, passed))
        return;
    next.hostNs = std::clamp(last.hostNs + passed, before, after);
    m_newest.store(newest + 1, std::memory_order_release);
}

std::int64_t CudaClock::timeNs(cudaEvent_t event, std::uint64_t base) const noexcept
{
    const std::scoped_lock lock(m_mutex);
    const std::uint64_t newest = this->newest();
    // The slot behind the newest may hold a base that was not finished. An event older than that
    // is measured backwards from the newest.
    if (newest - base >= kBases - 1)
        base = newest;
    std::int64_t passed = 0;
    return nsBetween(at(base).event, event, passed) ? at(base).hostNs + passed : 0;
}

} // namespace mr::gpu
