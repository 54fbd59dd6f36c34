#include "gpu/gate_words.h"

#include <cuda_runtime_api.h>

#include <new>

namespace mr::gpu {
namespace {

constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kWordBytes = 64; // a cache line: threads open gates side by side

static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "the card sees a plain word");
static_assert(sizeof(std::atomic<std::uint64_t>) == sizeof(std::uint64_t));

} // namespace

GateWords::~GateWords()
{
    for (const Page& page : m_pages)
        m_failure.note(cudaFreeHost(page.host), "cudaFreeHost");
}

Result<GateWord> GateWords::take()
{
    if (m_pages.empty() || m_usedBytes == kPageBytes)
        MR_TRY(addPage());
    const Page& page = m_pages.back();
    auto* word = new (page.host + m_usedBytes) std::atomic<std::uint64_t>(0);
    const GateWord taken(word, page.device + m_usedBytes);
    m_usedBytes += kWordBytes;
    return taken;
}

Status GateWords::addPage()
{
    void* host = nullptr;
    void* device = nullptr;
    MR_TRY(m_failure.check(
        cudaHostAlloc(&host, kPageBytes, cudaHostAllocMapped | cudaHostAllocPortable),
        "cudaHostAlloc"));
    m_pages.push_back({static_cast<std::byte*>(host), nullptr});
    MR_TRY(m_failure.check(cudaHostGetDevicePointer(&device, host, 0), "cudaHostGetDevicePointer"));
    m_pages.back().device = static_cast<std::byte*>(device);
    m_usedBytes = 0;
    return {};
}

} // namespace mr::gpu
