// The conformance table on the PTX of every kernel, with the freedoms that the ISA leaves.

#include "core/prove/conformance_case.h"
#include "gpu/ptx/ptx_device.h"
#include "gpu/ptx/ptx_runtime.h"
#include "support/test_room.h"

#include <QObject>
#include <QTest>

#include <cstdlib>
#include <string>
#include <vector>

namespace mr::test::tst_kernels {

using namespace mr::ptx;

namespace {

constexpr unsigned kSeed = 20250117;

struct Round {
    Freedom freedom;
    bool sameBits = true; // as the first round
};

// Warps and lanes in other orders, copies at once and late, must not change a bit; how tensor cores
// add and how far approximations err may, within the bounds of the table.
const std::vector<Round>& rounds()
{
    static const std::vector<Round> all = {{{1, false, false, false, false}, true},
        {{7, true, false, false, false}, true}, {{3, true, true, true, true}, false}};
    return all;
}

std::string missed(Device& device, const conformance::Case& line)
{
    std::vector<std::byte> first;
    for (const Round& round : rounds()) {
        runtime().freedom = round.freedom;
        runtime().failure = {};
        conformance::CaseRun run(device, kSeed);
        line.run(run);
        if (!runtime().failure.ok())
            return runtime().failure.message();
        if (!run.status().ok())
            return run.status().message();
        if (!(run.error() <= 1.0))
            return "error " + std::to_string(run.error()) + " tolerances, " + run.worst();
        if (first.empty())
            first = run.bytes();
        if (round.sameBits && run.bytes() != first)
            return "other bits under another order";
    }
    return {};
}

// Kernels without a launch, but for the empty one that is looked up when a device opens.
std::string neverRan()
{
    auto all = programs();
    if (!all.ok())
        return all.status().message();
    std::string names;
    for (const Program* program : all.value())
        if (program->steps.size() > 1 && runtime().launches.count(program->name) == 0)
            names += program->name + "\n";
    return names;
}

// Rows that a block of attention may have at most, so that every tile runs.
std::vector<int> rowsOf(const conformance::Case& line)
{
    return line.op.starts_with("attention") ? std::vector<int>{128, 64, 48, 32}
                                            : std::vector<int>{128};
}

} // namespace

class TestKernels : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void everyCase_data()
    {
        QTest::addColumn<QString>("target");
        for (const std::string& target : targets())
            QTest::newRow(target.c_str()) << QString::fromStdString(target);
    }

    void everyCase()
    {
        QFETCH(const QString, target);
        runtime().target = target.toStdString();
        runtime().launches.clear();
        const gpu::AttentionCard card{
            std::atoi(target.toStdString().c_str() + 3) / 10, 1, 228 * 1024};
        std::string misses;
        for (const conformance::Case& line : conformance::wholeTable())
            for (const int rows : rowsOf(line)) {
                const auto device =
                    makePtxDevice(std::size_t{1} << 28, gpu::AttentionChoice(card, rows));
                if (const std::string why = missed(*device, line); !why.empty())
                    misses += line.name + ": " + why + "\n";
            }
        QVERIFY2(misses.empty(), misses.c_str());
        const std::string names = neverRan();
        QVERIFY2(names.empty(), names.c_str());
    }
};

MR_TEST(TestKernels)

} // namespace mr::test::tst_kernels

#include "tst_kernels.moc"
