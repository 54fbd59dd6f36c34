#include "gpu/cuda_stream.h"

#include "core/base/log.h"
#include "gpu/command_count.h"
#include "gpu/stream_handle.h"

#include <fmt/format.h>

#include <cstring>
#include <memory>

namespace mr::gpu {
namespace {

// Waits that have passed are forgotten once there are so many. One step's waits fit.
constexpr std::size_t kWaitsKept = 256;

struct HostCopy {
    std::byte* to;
    std::span<const std::byte> from;
};

void CUDART_CB runHostCopy(void* closure)
{
    const std::unique_ptr<HostCopy> copy(static_cast<HostCopy*>(closure));
    std::memcpy(copy->to, copy->from.data(), copy->from.size());
}

cudaMemcpyKind kindOf(MemoryKind to, MemoryKind from)
{
    if (to == MemoryKind::Device)
        return from == MemoryKind::Device ? cudaMemcpyDeviceToDevice : cudaMemcpyHostToDevice;
    return from == MemoryKind::Device ? cudaMemcpyDeviceToHost : cudaMemcpyHostToHost;
}

} // namespace

cudaStream_t streamHandle(Stream& stream) noexcept
{
    return static_cast<CudaStream&>(stream).handle();
}

CudaEvent::~CudaEvent()
{
    m_shared.failure.note(cudaEventDestroy(m_handle), "cudaEventDestroy");
}

Status CudaEvent::wait()
{
    MR_TRY(m_shared.failure.status());
    return m_shared.failure.check(cudaEventSynchronize(m_handle), "work on the card");
}

bool CudaEvent::done() const noexcept
{
    if (m_shared.failure.lost())
        return true;
    const cudaError_t code = cudaEventQuery(m_handle);
    if (code == cudaErrorNotReady) {
        (void)cudaGetLastError(); // or the next launch would report it
        return false;
    }
    m_shared.failure.remember(code, "work on the card");
    return true;
}

std::int64_t CudaEvent::timeNs() const noexcept
{
    const std::uint64_t base = m_base.load();
    return base == 0 || m_shared.failure.lost() ? 0 : m_shared.clock.timeNs(m_handle, base);
}

CudaStream::CudaStream(std::string_view name, cudaStream_t handle, CudaShared& shared)
    : m_name(name)
    , m_handle(handle)
    , m_shared(shared)
{
    m_waits.reserve(kWaitsKept);
}

CudaStream::~CudaStream()
{
    openWhatIsWaitedFor();
    m_shared.failure.note(cudaStreamSynchronize(m_handle), "cudaStreamSynchronize");
    m_shared.failure.note(cudaStreamDestroy(m_handle), "cudaStreamDestroy");
}

Status CudaStream::record(Event& event)
{
    MR_TRY(m_shared.failure.status());
    auto& cuda = static_cast<CudaEvent&>(event);
    countCommand();
    MR_TRY(m_shared.failure.check(cudaEventRecord(cuda.handle(), m_handle), "cudaEventRecord"));
    cuda.recordedNow();
    return {};
}

Status CudaStream::waitFor(Event& event)
{
    MR_TRY(m_shared.failure.status());
    countCommand();
    return m_shared.failure.check(
        cudaStreamWaitEvent(m_handle, static_cast<CudaEvent&>(event).handle(), 0),
        "cudaStreamWaitEvent");
}

Status CudaStream::waitFor(Gate& gate, std::uint64_t generation)
{
    MR_TRY(m_shared.failure.status());
    const auto& cuda = static_cast<const CudaGate&>(gate);
    if (cuda.isOpen(generation)) // work enqueued from here on comes after the open()
        return {};
    if (!m_shared.driver.waitsForValues())
        return Status::error(ErrorKind::Internal,
            fmt::format("cuda stream {}: gate {} is not open for generation {}", m_name,
                cuda.name(), generation));
    remember({cuda.word(), generation});
    countCommand();
    return m_shared.failure.check(
        m_shared.driver.waitUntilAtLeast(m_handle, cuda.word().deviceAddress(), generation),
        "cuStreamWaitValue64");
}

void CudaStream::remember(const GateWait& wait)
{
    if (m_waits.size() == kWaitsKept)
        std::erase_if(m_waits, [](const GateWait& w) { return w.word.value() >= w.generation; });
    m_waits.push_back(wait);
}

void CudaStream::openWhatIsWaitedFor() noexcept
{
    for (const GateWait& wait : m_waits) {
        if (wait.word.value() >= wait.generation)
            continue;
        log(LogLevel::Warning, "a stream of the CUDA device ends while it waits for a gate");
        wait.word.raise(wait.generation);
    }
}

Status CudaStream::copy(std::byte* to, std::span<const std::byte> from)
{
    MR_TRY(m_shared.failure.status());
    if (from.empty())
        return {};
    const auto target = m_shared.memory.find(to, from.size());
    const auto source = m_shared.memory.find(from.data(), from.size());
    if (!target || !source)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("cuda stream {}: copy of {} bytes: the {} is not inside one allocation of "
                        "this device, device or pinned",
                m_name, from.size(), source ? "target" : "source"));
    countCommand();
    return enqueueCopy(to, from, kindOf(*target, *source));
}

Status CudaStream::enqueueCopy(std::byte* to, std::span<const std::byte> from, cudaMemcpyKind kind)
{
    if (kind == cudaMemcpyHostToHost)
        return copyOnHost(to, from);
    if (kind == cudaMemcpyHostToDevice)
        m_shared.copied.toDevice += static_cast<std::int64_t>(from.size());
    if (kind == cudaMemcpyDeviceToHost)
        m_shared.copied.toHost += static_cast<std::int64_t>(from.size());
    return m_shared.failure.check(
        cudaMemcpyAsync(to, from.data(), from.size(), kind, m_handle), "cudaMemcpyAsync");
}

// cudaMemcpyAsync would hold the caller until the stream came to the copy. No step has such a
// copy, so its allocation does not matter.
Status CudaStream::copyOnHost(std::byte* to, std::span<const std::byte> from)
{
    auto closure = std::make_unique<HostCopy>(HostCopy{to, from});
    MR_TRY(m_shared.failure.check(
        cudaLaunchHostFunc(m_handle, &runHostCopy, closure.get()), "cudaLaunchHostFunc"));
    (void)closure.release(); // runHostCopy() has it now
    return {};
}

} // namespace mr::gpu
