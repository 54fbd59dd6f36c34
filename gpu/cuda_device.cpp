#include "gpu/cuda_device.h"

#include "core/base/bytes.h"
#include "core/base/log.h"
#include "gpu/command_count.h"
#include "gpu/cublaslt_gemm.h"
#include "gpu/cuda_facts.h"
#include "gpu/cuda_ops.h"
#include "gpu/cuda_status.h"
#include "gpu/cuda_stream.h"
#include "gpu/kernel_list.h"
#include "gpu/launch_order.h"

#if __has_include(<nvtx3/nvToolsExtCudaRt.h>)
#include <nvtx3/nvToolsExtCudaRt.h>
#endif

namespace mr::gpu {
namespace {

// Shown by profilers; costs nothing without one.
void nameForProfilers([[maybe_unused]] cudaStream_t stream, [[maybe_unused]] const char* name)
{
#if __has_include(<nvtx3/nvToolsExtCudaRt.h>)
    nvtxNameCudaStreamA(stream, name);
#endif
}

Result<AttentionCard> attentionCard(const CudaFacts& facts)
{
    int multiprocessors = 0;
    int sharedBytes = 0;
    MR_TRY(toStatus(
        cudaDeviceGetAttribute(&multiprocessors, cudaDevAttrMultiProcessorCount, 0), "card"));
    MR_TRY(toStatus(
        cudaDeviceGetAttribute(&sharedBytes, cudaDevAttrMaxSharedMemoryPerMultiprocessor, 0),
        "card"));
    return AttentionCard{
        facts.computeMajor, multiprocessors, static_cast<std::size_t>(sharedBytes)};
}

class CudaDevice final : public Device
{
public:
    explicit CudaDevice(const CudaDeviceOptions& options)
        : m_shared(static_cast<std::size_t>(options.memoryBytes))
    {
    }

    ~CudaDevice() override;

    Status open(const CudaFacts& facts);

    std::uint64_t baselineBytes() const noexcept { return m_baselineBytes; }

    const DeviceInfo& info() const noexcept override { return m_info; }

    Result<Buffer> allocate(std::size_t bytes, MemoryKind kind, std::string_view tag) override
    {
        return m_shared.memory.allocate(bytes, kind, tag, m_service);
    }

    Result<std::vector<Buffer>> allocateTogether(
        std::span<const BufferWish> wishes, MemoryKind kind) override
    {
        return kind == MemoryKind::Device ? m_shared.memory.allocateTogether(wishes, m_service)
                                          : Device::allocateTogether(wishes, kind);
    }

    Result<std::unique_ptr<Stream>> createStream(std::string_view name) override;
    Result<std::unique_ptr<Event>> createEvent() override;
    Result<std::unique_ptr<Gate>> createGate(std::string_view name) override;

    // The card has started already; this is only a good moment to look at its clock.
    void submit() noexcept override { m_shared.clock.advance(); }

    std::uint64_t enqueuedCommands() const noexcept override { return g_commands.load(); }

    MemoryUsage memoryUsage() const noexcept override { return m_shared.memory.usage(); }
    LinkBytes linkBytes() const noexcept override { return m_shared.copied; }

    std::optional<std::size_t> freeDeviceBytes() const noexcept override
    {
        return m_shared.memory.freeBytes();
    }

    Ops& ops() noexcept override { return *m_ops; }

private:
    Status check(cudaError_t code, std::string_view what)
    {
        return m_shared.failure.check(code, what);
    }

    Status measureBaseline();

    DeviceInfo m_info;
    std::uint64_t m_baselineBytes = 0;
    CudaShared m_shared;
    cudaStream_t m_service = nullptr; // zeroes new memory and carries the clock
    std::unique_ptr<Gemm> m_gemm;
    std::unique_ptr<Ops> m_ops;
};

CudaDevice::~CudaDevice()
{
    m_ops.reset();
    m_gemm.reset();
    if (m_service)
        m_shared.failure.note(cudaStreamDestroy(m_service), "cudaStreamDestroy");
}

Status CudaDevice::open(const CudaFacts& facts)
{
    MR_TRY(loadKernels()); // before a stream can wait at a gate
    MR_TRY(check(cudaStreamCreateWithFlags(&m_service, cudaStreamNonBlocking), "cudaStreamCreate"));
    m_shared.driver = loadDriverApi(0);
    MR_TRY(m_shared.clock.open(m_service));
    MR_ASSIGN(m_gemm, makeCublasLtGemm(facts, m_shared.failure));
    MR_ASSIGN(auto card, attentionCard(facts));
    m_ops = makeCudaOps(*m_gemm, AttentionChoice(card),
        [this](const Status& status) { m_shared.failure.remember(status); });
    m_info.name = facts.name;
    m_info.memoryBytes = static_cast<std::size_t>(facts.totalBytes);
    m_info.asynchronous = true;
    const std::string serialised = serialisedLaunches();
    if (!serialised.empty())
        log(LogLevel::Warning, serialised);
    m_info.waitsForGates = m_shared.driver.waitsForValues() && serialised.empty();
    m_info.picksAlgorithms = true;
    m_info.loadsLazily = true; // cuBLASLt's kernels; ours are on the card already
    m_info.multipliesCodes = hasFp8(facts);
    m_info.threads = 0;
    m_info.instructionSet = instructionSetOf(facts);
    return measureBaseline();
}

// All that is held on the card; where other programs use it too, that is in here as well.
Status CudaDevice::measureBaseline()
{
    std::size_t freeBytes = 0;
    std::size_t totalBytes = 0;
    MR_TRY(check(cudaMemGetInfo(&freeBytes, &totalBytes), "cudaMemGetInfo"));
    m_baselineBytes = totalBytes - freeBytes;
    return {};
}

Result<std::unique_ptr<Stream>> CudaDevice::createStream(std::string_view name)
{
    MR_TRY(m_shared.failure.status());
    cudaStream_t handle = nullptr;
    MR_TRY(check(cudaStreamCreateWithFlags(&handle, cudaStreamNonBlocking), "cudaStreamCreate"));
    nameForProfilers(handle, std::string(name).c_str());
    return std::unique_ptr<Stream>(new CudaStream(name, handle, m_shared));
}

Result<std::unique_ptr<Event>> CudaDevice::createEvent()
{
    MR_TRY(m_shared.failure.status());
    cudaEvent_t handle = nullptr;
    MR_TRY(check(cudaEventCreateWithFlags(&handle, cudaEventBlockingSync), "cudaEventCreate"));
    return std::unique_ptr<Event>(new CudaEvent(handle, m_shared));
}

Result<std::unique_ptr<Gate>> CudaDevice::createGate(std::string_view name)
{
    MR_TRY(m_shared.failure.status());
    MR_ASSIGN(auto word, m_shared.gateWords.take());
    return std::unique_ptr<Gate>(new CudaGate(name, word));
}

} // namespace

Result<std::unique_ptr<Device>> makeCudaDevice(const CudaDeviceOptions& options)
{
    MR_ASSIGN(auto facts, inspectCuda());
    if (options.memoryBytes > facts.totalBytes)
        return Status::error(ErrorKind::OutOfMemory,
            "device cuda: a budget of " + formatBytes(options.memoryBytes) + " is more than " +
                facts.name + " has, " + formatBytes(facts.totalBytes) +
                "; give a smaller --device-memory");
    auto device = std::make_unique<CudaDevice>(options);
    MR_TRY(device->open(facts));
    return std::unique_ptr<Device>(std::move(device));
}

std::uint64_t baselineBytes(const Device& device)
{
    return static_cast<const CudaDevice&>(device).baselineBytes();
}

} // namespace mr::gpu
