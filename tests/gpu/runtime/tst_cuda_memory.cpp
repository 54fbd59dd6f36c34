// Card memory that is asked for together, over a fake runtime: one block, and buffers that know
// their own bounds in it.

#include "core/model/layout.h"
#include "core/plan/policies.h"
#include "core/tier/tier_store.h"
#include "gpu/cuda_memory.h"
#include "gpu/runtime/fake_cudart.h"
#include "support/test_room.h"

#include <QTest>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace mr::test::tst_cuda_memory {

using namespace mr::gpu;

namespace {

constexpr std::size_t kMiB = std::size_t{1} << 20;
constexpr std::ptrdiff_t kBetween = 256; // buffers of a block begin at multiples of it
constexpr std::array<BufferWish, 2> kTwo = {BufferWish{1024, "weights"}, {300, "slots"}};

// Memory as CudaDevice has it, and nothing else of a device.
class MemoryDevice final : public Device
{
public:
    explicit MemoryDevice(std::size_t budgetBytes)
        : memory(budgetBytes, failure)
    {
        (void)cudaStreamCreateWithFlags(&m_service, cudaStreamNonBlocking);
    }
    ~MemoryDevice() override { (void)cudaStreamDestroy(m_service); }

    Result<Buffer> allocate(std::size_t bytes, MemoryKind kind, std::string_view tag) override
    {
        return memory.allocate(bytes, kind, tag, m_service);
    }
    Result<std::vector<Buffer>> allocateTogether(
        std::span<const BufferWish> wishes, MemoryKind kind) override
    {
        return kind == MemoryKind::Device ? memory.allocateTogether(wishes, m_service)
                                          : Device::allocateTogether(wishes, kind);
    }
    MemoryUsage memoryUsage() const noexcept override { return memory.usage(); }

    const DeviceInfo& info() const noexcept override { return m_info; }
    Result<std::unique_ptr<Stream>> createStream(std::string_view) override { return refused(); }
    Result<std::unique_ptr<Event>> createEvent() override { return refused(); }
    Result<std::unique_ptr<Gate>> createGate(std::string_view) override { return refused(); }
    void submit() noexcept override {}
    LinkBytes linkBytes() const noexcept override { return {}; }
    Ops& ops() noexcept override { qFatal("no op is run here"); }

    CudaFailure failure;
    CudaMemory memory;

private:
    static Status refused() { return Status::error(ErrorKind::Internal, "memory only"); }

    DeviceInfo m_info;
    cudaStream_t m_service = nullptr;
};

// A model of 8 billion parameters in 34 groups. Bytes are a 65,536th, so that it fits here, and
// most are no multiple of anything.
MemoryPlan planOf8B(const char* policy)
{
    ModelConfig config;
    config.hidden = 4096;
    config.block.intermediate = 14336;
    config.layers = 32;
    config.block.heads = 32;
    config.block.kvHeads = 8;
    config.block.headDim = 128;
    config.vocab = 128256;
    config.maxPositions = 8192;
    const MicroShape micro{2048, 1, 2, DType::BF16};
    const ModelShape shape = modelShape(config, buildParamTable(config), micro);
    StepSpec step;
    step.microBatches = 2;
    step.precision = Precision::BF16;
    const Budget all{SIZE_MAX, SIZE_MAX, SIZE_MAX};
    auto plan = planMemory(step, shape, all, Feedback{}, makePolicy(policy, {}).value());
    if (!plan.ok())
        qFatal("%s", plan.status().message().c_str());
    MemoryPlan small = std::move(plan).value();
    for (MemoryItem& item : small.items)
        item.bytes = item.bytes / 65536 + 1;
    return small;
}

std::size_t itemsIn(const MemoryPlan& plan, Tier tier)
{
    return static_cast<std::size_t>(std::count_if(plan.items.begin(), plan.items.end(),
        [tier](const MemoryItem& item) { return item.tier == tier; }));
}

bool has(const Status& status, const char* words)
{
    if (status.message().find(words) != std::string::npos)
        return true;
    qWarning("\"%s\" is not in: %s", words, status.message().c_str());
    return false;
}

} // namespace

class TestCudaMemory : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void init() { test::resetFakeCard(); }

    void aRunTakesOneBlockOfTheCard_data()
    {
        QTest::addColumn<QByteArray>("policy");
        QTest::addColumn<int>("items"); // on the card, at least
        QTest::newRow("resident") << QByteArray("resident") << 170;
        QTest::newRow("zero-offload") << QByteArray("zero-offload") << 40;
        QTest::newRow("streamed") << QByteArray("streamed") << 10;
    }

    void aRunTakesOneBlockOfTheCard()
    {
        QFETCH(const QByteArray, policy);
        QFETCH(const int, items);
        const MemoryPlan plan = planOf8B(policy.constData());
        MemoryDevice device(plan.bytes(Tier::Device)); // to the byte: padding does not count
        {
            const auto store = TierStore::create(device, plan);

            QVERIFY2(store.ok(), store.status().message().c_str());
            QVERIFY(itemsIn(plan, Tier::Device) >= static_cast<std::size_t>(items));
            QCOMPARE(fakeCard().allocations, std::size_t{1});
            QCOMPARE(fakeCard().registrations, itemsIn(plan, Tier::PinnedHost));
            QCOMPARE(device.memory.usage().deviceBytes, plan.bytes(Tier::Device));
            QCOMPARE(device.memory.usage().pinnedBytes, plan.bytes(Tier::PinnedHost));
        }
        QCOMPARE(fakeCard().allocations, std::size_t{0});
        QCOMPARE(fakeCard().registrations, std::size_t{0});
        QCOMPARE(device.memory.usage().deviceBytes, std::size_t{0});
    }

    void buffersInABlockAreZeroedAndApart()
    {
        MemoryDevice device(kMiB);
        const std::array<BufferWish, 4> wishes = {
            BufferWish{1000, "weights"}, {1, "scalars"}, {0, "nothing"}, {256, "slots"}};

        const std::vector<Buffer> buffers =
            device.allocateTogether(wishes, MemoryKind::Device).value();

        QCOMPARE(buffers.size(), wishes.size());
        for (std::size_t i = 0; i < buffers.size(); ++i) {
            QCOMPARE(buffers[i].bytes(), wishes[i].bytes);
            QVERIFY(std::all_of(buffers[i].data(), buffers[i].data() + buffers[i].bytes(),
                [](std::byte b) { return b == std::byte{0}; }));
            QVERIFY((buffers[i].data() - buffers[0].data()) % kBetween == 0);
            QVERIFY(i == 0 || buffers[i].data() > buffers[i - 1].data());
        }
        QCOMPARE(
            buffers[3].data() - buffers[0].data(), 1024 + 2 * kBetween); // no more between them
    }

    void aRangeThatLeavesItsBufferIsNotFound()
    {
        MemoryDevice device(kMiB);
        const std::vector<Buffer> buffers =
            device.allocateTogether(kTwo, MemoryKind::Device).value();
        const std::byte* first = buffers[0].data();

        QVERIFY(device.memory.find(first, 1024) == MemoryKind::Device);
        QVERIFY(device.memory.find(first + 1024, 300) == MemoryKind::Device);
        QVERIFY(!device.memory.find(first, 1025)); // the next one begins there
        QVERIFY(!device.memory.find(first + 1024, 301));
    }

    void theBlockIsFreedWithItsLastBuffer()
    {
        MemoryDevice device(kMiB);
        std::vector<Buffer> buffers = device.allocateTogether(kTwo, MemoryKind::Device).value();

        buffers[0] = Buffer();
        QCOMPARE(fakeCard().allocations, std::size_t{1});
        QCOMPARE(device.memory.usage().deviceBytes, std::size_t{300});
        buffers[1] = Buffer();
        QCOMPARE(fakeCard().allocations, std::size_t{0});
        QCOMPARE(device.memory.usage().deviceBytes, std::size_t{0});
        QCOMPARE(device.memory.usage().devicePeakBytes, std::size_t{1324});
        QCOMPARE(device.memory.usage().allocations, std::size_t{2});
    }

    void aBlockBeyondTheBudgetNamesAllAndTheLargest()
    {
        MemoryDevice device(1323); // one byte short

        const Status refused = device.allocateTogether(kTwo, MemoryKind::Device).status();

        QVERIFY(!refused.ok() && refused.kind() == ErrorKind::OutOfMemory);
        QVERIFY(has(refused, "no room for 1.3 KiB in 2 buffers, the largest 1.0 KiB of weights; "
                             "1.3 KiB of 1.3 KiB are left"));
        QCOMPARE(fakeCard().allocations, std::size_t{0});
        QCOMPARE(device.memory.usage().allocations, std::size_t{0});
    }

    void aBlockThatTheCardLacksIsNoLostDevice()
    {
        MemoryDevice device(kMiB);
        fakeCard().memoryBytes = 1024; // so that both do not fit, and the first would

        const Status refused = device.allocateTogether(kTwo, MemoryKind::Device).status();

        QVERIFY(!refused.ok() && refused.kind() == ErrorKind::OutOfMemory);
        QVERIFY(has(refused, "the card has no 1.3 KiB in 2 buffers"));
        QVERIFY(has(refused, "1.0 KiB of the card's 1.0 KiB are free"));
        QVERIFY(!device.failure.lost());
        QCOMPARE(device.memory.usage().deviceBytes, std::size_t{0});
    }

    void theTierThatLacksIsToldWhereItComesInOnePiece()
    {
        const MemoryPlan plan = planOf8B("zero-offload");
        MemoryDevice device(plan.bytes(Tier::Device) - 1);
        Tier lacking = Tier::Disk;
        QVERIFY(!TierStore::create(device, plan, &lacking).ok());
        QVERIFY(lacking == Tier::Device);

        MemoryDevice enough(plan.bytes(Tier::Device));
        fakeCard().failRegistration = 3;
        QVERIFY(!TierStore::create(enough, plan, &lacking).ok());
        QVERIFY(lacking == Tier::PinnedHost);
        QCOMPARE(fakeCard().allocations, std::size_t{0}); // nothing is kept
        QCOMPARE(fakeCard().registrations, std::size_t{0});
    }
};

MR_TEST(TestCudaMemory)

} // namespace mr::test::tst_cuda_memory

#include "tst_cuda_memory.moc"
