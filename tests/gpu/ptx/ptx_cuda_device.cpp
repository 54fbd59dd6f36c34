#include "gpu/ptx/ptx_cuda_device.h"

#include "gpu/cuda_device.h"
#include "gpu/ptx/ptx_runtime.h"
#include "gpu/runtime/fake_cudart.h"

#include <optional>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

namespace mr::ptx {
namespace {

constexpr std::size_t kOwnBytes = std::size_t{128} << 20; // more than the device's workspace

// Shared memory of a multiprocessor, and of one block, in KiB. Source: CUDA C++ Programming Guide
// 13.0, "Compute Capabilities".
std::pair<std::size_t, std::size_t> sharedKiB(int capability)
{
    switch (capability) {
    case 75:
        return {64, 64};
    case 80:
        return {164, 163};
    case 90:
        return {228, 227};
    default:
        return {100, 99};
    }
}

// From the card's first call to its last.
class Installed
{
public:
    explicit Installed(const PtxCard& card)
    {
        test::resetFakeCard();
        test::FakeCard& fake = test::fakeCard();
        const int capability = std::stoi(card.target.substr(3));
        const auto [shared, ofBlock] = sharedKiB(capability);
        fake.memoryBytes = card.memoryBytes + kOwnBytes;
        fake.computeMajor = capability / 10;
        fake.computeMinor = capability % 10;
        fake.multiprocessors = card.multiprocessors;
        fake.sharedBytes = shared * 1024;
        fake.blockSharedBytes = ofBlock * 1024;
        fake.streamSeed = card.streamSeed;
        runtime().target = card.target;
        runtime().failure = {};
        installMachine();
        test::startDriverModel(card.late);
    }
    ~Installed() { test::resetFakeCard(); }
    Installed(const Installed&) = delete;
    Installed& operator=(const Installed&) = delete;
};

// Tells the machine the bounds of each buffer; all else is the device's.
class PtxCudaDevice final : public Device
{
public:
    explicit PtxCudaDevice(const PtxCard& card)
        : m_card(card)
    {
    }

    Status open(std::uint64_t memoryBytes)
    {
        MR_ASSIGN(m_device, gpu::makeCudaDevice({memoryBytes}));
        return {};
    }

    const DeviceInfo& info() const noexcept override { return m_device->info(); }
    Result<Buffer> allocate(std::size_t bytes, MemoryKind kind, std::string_view tag) override
    {
        auto buffer = m_device->allocate(bytes, kind, tag);
        if (buffer.ok())
            nameMemory(buffer.value().data(), bytes, std::string(tag));
        return buffer;
    }
    Result<std::vector<Buffer>> allocateTogether(
        std::span<const BufferWish> wishes, MemoryKind kind) override
    {
        auto buffers = m_device->allocateTogether(wishes, kind);
        for (std::size_t i = 0; buffers.ok() && i < wishes.size(); ++i)
            nameMemory(buffers.value()[i].data(), wishes[i].bytes, std::string(wishes[i].tag));
        return buffers;
    }
    Result<std::unique_ptr<Stream>> createStream(std::string_view name) override
    {
        return m_device->createStream(name);
    }
    Result<std::unique_ptr<Event>> createEvent() override { return m_device->createEvent(); }
    Result<std::unique_ptr<Gate>> createGate(std::string_view name) override
    {
        return m_device->createGate(name);
    }
    void submit() noexcept override { m_device->submit(); }
    std::uint64_t enqueuedCommands() const noexcept override
    {
        return m_device->enqueuedCommands();
    }
    MemoryUsage memoryUsage() const noexcept override { return m_device->memoryUsage(); }
    LinkBytes linkBytes() const noexcept override { return m_device->linkBytes(); }
    std::optional<std::size_t> freeDeviceBytes() const noexcept override
    {
        return m_device->freeDeviceBytes();
    }
    Ops& ops() noexcept override { return m_device->ops(); }

private:
    const Installed m_card; // the device goes first
    std::unique_ptr<Device> m_device;
};

} // namespace

Result<std::unique_ptr<Device>> makePtxCudaDevice(const PtxCard& card)
{
    auto device = std::make_unique<PtxCudaDevice>(card);
    MR_TRY(device->open(card.memoryBytes));
    return std::unique_ptr<Device>(std::move(device));
}

} // namespace mr::ptx
