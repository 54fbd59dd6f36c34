// Every kernel against double precision, on the host, under several schedules with equal bits.

#include "core/prove/conformance_case.h"
#include "gpu/kernel_list.h"
#include "gpu/simt/grid.h"
#include "gpu/simt/simt_device.h"
#include "support/test_room.h"

#include <QObject>
#include <QTest>

#include <algorithm>
#include <memory>
#include <set>
#include <vector>

namespace mr::test::tst_kernels {

using simt::Order;
using simt::Schedule;

namespace {

constexpr unsigned kSeed = 20250117;

// Copies arrive at their wait in some, at once in others: a kernel must bear both.
std::vector<Schedule> schedules()
{
#ifdef __SANITIZE_ADDRESS__
    return {{Order::Ascending, 1, false}, {Order::Random, 7, true}};
#else
    return {{Order::Ascending, 1, false}, {Order::Descending, 1, true}, {Order::Random, 7, false}};
#endif
}

const conformance::Table& table()
{
    static const conformance::Table whole = conformance::wholeTable();
    return whole;
}

// Why a case failed; empty if it did not.
std::string missed(Device& device, const conformance::Case& line)
{
    std::vector<std::byte> first;
    for (const Schedule& schedule : schedules()) {
        simt::setSchedule(schedule);
        conformance::CaseRun run(device, kSeed);
        line.run(run);
        if (!run.status().ok())
            return run.status().message();
        if (!(run.error() <= 1.0))
            return "error " + std::to_string(run.error()) + " tolerances, " + run.worst();
        if (first.empty())
            first = run.bytes();
        if (run.bytes() != first)
            return "other bits under another schedule: a barrier is missing";
    }
    return {};
}

} // namespace

class TestKernels : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void everyOpMatchesDoubleUnderEverySchedule_data()
    {
        QTest::addColumn<QString>("op");
        std::set<std::string> ops;
        for (const conformance::Case& line : table())
            if (ops.insert(line.op).second)
                QTest::addRow("%s", line.op.c_str()) << QString::fromStdString(line.op);
    }

    void everyOpMatchesDoubleUnderEverySchedule()
    {
        QFETCH(const QString, op);
        const std::unique_ptr<Device> device = simt::makeSimtDevice(std::size_t{1} << 28);

        std::string misses;
        for (const conformance::Case& line : table()) {
            if (line.op != op.toStdString())
                continue;
            if (const std::string why = missed(*device, line); !why.empty())
                misses += line.name + ": " + why + "\n";
        }

        QVERIFY2(misses.empty(), misses.c_str());
    }

    // After all ops have run.
    void everyKernelThatRanIsOnTheList()
    {
        QVERIFY(gpu::loadKernels().ok());
        const std::set<const void*>& loaded = simt::loadedKernels();
        const std::set<const void*>& ran = simt::ranKernels();
        QVERIFY(ran.size() > 60);
        QVERIFY(std::includes(loaded.begin(), loaded.end(), ran.begin(), ran.end()));
        QCOMPARE(loaded.size(), gpu::listedKernels());
    }

    void theDeviceSaysWhatItIs()
    {
        const std::unique_ptr<Device> device = simt::makeSimtDevice(1024);
        QCOMPARE(device->info().name, std::string("SIMT host"));
        QCOMPARE(device->info().instructionSet, std::string("simt"));
    }
};

MR_TEST(TestKernels)

} // namespace mr::test::tst_kernels

#include "tst_kernels.moc"
