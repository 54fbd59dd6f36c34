// Every kernel against double precision, on the host, under several schedules with equal bits.

#include "core/prove/conformance_case.h"
#include "gpu/kernel_list.h"
#include "gpu/simt/grid.h"
#include "gpu/simt/simt_device.h"
#include "support/test_room.h"

#include <QFile>
#include <QObject>
#include <QTest>

#include <fmt/format.h>

#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
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

// By way of launching a kernel: the first case that did.
std::map<simt::KernelRun, std::string>& firstCases()
{
    static std::map<simt::KernelRun, std::string> cases;
    return cases;
}

// Kernels of tests/gpu, which no op launches.
bool isSample(const gpu::KernelEntry& entry)
{
    return std::string_view(entry.text).find("samples::") != std::string_view::npos;
}

// tests/gpu/paths.md
std::string pathTable()
{
    std::map<const void*, std::string> names;
    for (const gpu::KernelEntry& entry : gpu::listedKernels())
        names[entry.kernel] = gpu::kernelName(entry);
    std::set<std::string> rows;
    for (const auto& [run, name] : firstCases())
        rows.insert(fmt::format("| {} | {:4} | {} | {} |\n", names[run.kernel], run.threads,
            run.hasColumns ? "yes" : "", name));
    std::string text =
        "# Paths of the kernels\n\n"
        "Each kernel of the list with its template arguments, the threads of a block, whether the "
        "grid has several blocks along y, and the first conformance case that launches it so. "
        "The test `gpu/kernels` compares; `MR_UPDATE_PATHS=1 ctest -R gpu/kernels` writes the "
        "table."
        "\n\n"
        "| kernel | threads | blocks along y | case |\n|---|---|---|---|\n";
    for (const std::string& row : rows)
        text += row;
    return text;
}

// The first line that only one of the texts has; empty: they are equal.
std::string firstDifference(const std::string& kept, const std::string& now)
{
    if (kept == now)
        return {};
    std::istringstream before(kept);
    std::istringstream after(now);
    std::string was;
    std::string is;
    do {
        was = is = "(the end)";
        std::getline(before, was);
        std::getline(after, is);
    } while (was == is && before && after);
    return "paths.md has  " + was + "\nthe cases give " + is +
           "\nWrite it again: MR_UPDATE_PATHS=1 ctest -R gpu/kernels";
}

// Why a case failed; empty if it did not.
std::string missed(Device& device, const conformance::Case& line)
{
    std::vector<std::byte> first;
    simt::kernelRuns().clear();
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
    for (const simt::KernelRun& run : simt::kernelRuns())
        firstCases().emplace(run, line.name);
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

    // After all ops have run, as all that follow.
    void everyKernelThatRanIsOnTheList()
    {
        QVERIFY(gpu::loadKernels().ok());
        const std::set<const void*>& loaded = simt::loadedKernels();
        QVERIFY(firstCases().size() > 60);
        for (const auto& [run, name] : firstCases())
            QVERIFY2(loaded.contains(run.kernel), name.c_str());
        QCOMPARE(loaded.size(), gpu::listedKernels().size());
    }

    void everyListedKernelHasACase()
    {
        std::set<const void*> ran;
        for (const auto& [run, name] : firstCases())
            ran.insert(run.kernel);
        std::string missing;
        for (const gpu::KernelEntry& entry : gpu::listedKernels())
            if (!isSample(entry) && !ran.contains(entry.kernel))
                missing += "no conformance case launches " + gpu::kernelName(entry) + "\n";
        QVERIFY2(missing.empty(), missing.c_str());
    }

    void theTableOfPathsIsThatOfTheCases()
    {
#ifdef __clang__
        QSKIP("clang writes kernels without their template arguments");
#endif
        const QString path =
            qEnvironmentVariable("MILLRACE_SOURCE") + QLatin1String("/tests/gpu/paths.md");
        const std::string now = pathTable();
        QFile file(path);
        if (qEnvironmentVariableIsSet("MR_UPDATE_PATHS")) {
            QVERIFY(file.open(QIODevice::WriteOnly));
            QVERIFY(file.write(now.c_str()) == static_cast<qint64>(now.size()));
            return;
        }
        QVERIFY(file.open(QIODevice::ReadOnly));
        const std::string kept = file.readAll().toStdString();
        const std::string difference = firstDifference(kept, now);
        QVERIFY2(difference.empty(), difference.c_str());
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
