// TierStore: it holds the memory that was planned.

#include "core/device/cpu/cpu_device.h"
#include "core/tier/tier_store.h"
#include "support/test_room.h"

#include <QtTest>

#include <string>

namespace mr::test::tst_tier_store {

namespace {

constexpr GroupId kRun{-1};

MemoryPlan smallPlan()
{
    MemoryPlan plan;
    plan.items = {{Tier::Device, MemoryUse::Weights, GroupId{0}, 1000},
        {Tier::Device, MemoryUse::Weights, GroupId{1}, 77},
        {Tier::Device, MemoryUse::Workspace, kRun, 4096},
        {Tier::PinnedHost, MemoryUse::Weights, GroupId{0}, 10},
        {Tier::PinnedHost, MemoryUse::Staging, kRun, 500}};
    return plan;
}

} // namespace

class TestTierStore : public QObject
{
    Q_OBJECT

private Q_SLOTS:
    void holdsExactlyWhatWasPlannedAndGivesItBack();
    void findsByTierUseAndGroup();
    void whatTheDeviceCannotHoldIsNamed();
    void whatIsOnDiskTakesNoMemory();
    void allBytesAreZeroAlsoWhereARunBeforeLeftOthers();
};

void TestTierStore::holdsExactlyWhatWasPlannedAndGivesItBack()
{
    const auto device = makeCpuDevice(std::size_t{5173}); // to the byte
    {
        const auto store = TierStore::create(*device, smallPlan());

        QVERIFY2(store.ok(), store.status().message().c_str());
        QCOMPARE(device->memoryUsage().deviceBytes, std::size_t{1000 + 77 + 4096});
        QCOMPARE(device->memoryUsage().pinnedBytes, std::size_t{510});
        QCOMPARE(device->memoryUsage().allocations, std::size_t{5});
    }
    QCOMPARE(device->memoryUsage().deviceBytes, std::size_t{0});
    QCOMPARE(device->memoryUsage().pinnedBytes, std::size_t{0});
}

void TestTierStore::findsByTierUseAndGroup()
{
    const auto device = makeCpuDevice(std::size_t{1} << 20);
    auto made = TierStore::create(*device, smallPlan());
    QVERIFY(made.ok());
    const std::unique_ptr<TierStore> store = std::move(made).value();

    const auto first = store->find(Tier::Device, MemoryUse::Weights, GroupId{0});
    const auto second = store->find(Tier::Device, MemoryUse::Weights, GroupId{1});
    const auto host = store->find(Tier::PinnedHost, MemoryUse::Weights, GroupId{0});

    QCOMPARE(first.size(), std::size_t{1000});
    QCOMPARE(second.size(), std::size_t{77});
    QCOMPARE(host.size(), std::size_t{10});
    QVERIFY(first.data() != second.data() && first.data() != host.data());
    QCOMPARE(store->find(Tier::PinnedHost, MemoryUse::Staging).size(), std::size_t{500});
    QVERIFY(store->find(Tier::Device, MemoryUse::Staging).empty());
    QVERIFY(store->find(Tier::Device, MemoryUse::Weights, GroupId{2}).empty());
}

void TestTierStore::whatTheDeviceCannotHoldIsNamed()
{
    const auto device = makeCpuDevice(std::size_t{5172}); // one byte short

    const auto store = TierStore::create(*device, smallPlan());

    QVERIFY(!store.ok());
    QCOMPARE(store.status().kind(), ErrorKind::OutOfMemory);
    QVERIFY(store.status().message().find(name(MemoryUse::Workspace)) != std::string::npos);
    QCOMPARE(device->memoryUsage().deviceBytes, std::size_t{0}); // nothing is kept
}

void TestTierStore::whatIsOnDiskTakesNoMemory()
{
    const auto device = makeCpuDevice(std::size_t{1} << 20);
    MemoryPlan plan;
    plan.items = {{Tier::Disk, MemoryUse::Weights, GroupId{0}, 10}};

    auto store = TierStore::create(*device, plan);

    QVERIFY(store.ok());
    QVERIFY(store.value()->find(Tier::Disk, MemoryUse::Weights, GroupId{0}).empty());
    QCOMPARE(device->memoryUsage().allocations, std::size_t{0});
}

void TestTierStore::allBytesAreZeroAlsoWhereARunBeforeLeftOthers()
{
    const auto device = makeCpuDevice(std::size_t{1} << 20);
    for (int run = 0; run < 2; ++run) {
        const auto store = std::move(TierStore::create(*device, smallPlan())).value();
        for (const MemoryItem& item : store->plan().items) {
            const auto bytes = store->find(item.tier, item.use, item.group);
            QVERIFY(std::all_of(
                bytes.begin(), bytes.end(), [](std::byte b) { return b == std::byte{0}; }));
            std::fill(bytes.begin(), bytes.end(), std::byte{0xFF});
        }
    }
}

MR_TEST(TestTierStore)

} // namespace mr::test::tst_tier_store

#include "tst_tier_store.moc"
