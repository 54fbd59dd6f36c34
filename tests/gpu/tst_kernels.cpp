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

#include <algorithm>
#include <iterator>
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

// Copies arrive at their wait in some, at once in others: a kernel must bear both. Address
// sanitizer looks for wrong accesses, which one order shows; where there is an nvcc, gpu/ptx runs
// what it makes of the kernels in several.
std::vector<Schedule> schedules()
{
#if defined(__SANITIZE_ADDRESS__) || defined(MR_HAS_PTX)
    return {{Order::Random, 7, true}};
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

struct Outcome {
    std::string why; // the case failed; empty if it did not
    std::vector<std::byte> bytes;
};

Outcome outcomeOf(
    Device& device, const conformance::Case& line, const std::vector<Schedule>& schedules)
{
    Outcome out;
    simt::kernelRuns().clear();
    for (const Schedule& schedule : schedules) {
        simt::setSchedule(schedule);
        conformance::CaseRun run(device, conformance::kCaseSeed);
        line.run(run);
        if (!run.status().ok())
            return {run.status().message(), {}};
        if (!(run.error() <= 1.0))
            return {"error " + std::to_string(run.error()) + " tolerances, " + run.worst(), {}};
        if (out.bytes.empty())
            out.bytes = run.bytes();
        if (run.bytes() != out.bytes)
            return {"other bits under another schedule: a barrier is missing", {}};
    }
    for (const simt::KernelRun& run : simt::kernelRuns())
        firstCases().emplace(run, line.name);
    return out;
}

// Two documents that begin inside a tile. All keys lie near one point, and the gradients of a row's
// scores add up to 0, so what is left in the gradients of queries tells the order of their sums,
// which the rounding to BF16 would hide otherwise. Its result is for comparison with other tiles.
void nearKeys(conformance::CaseRun& run)
{
    constexpr int kHeads = 2;
    constexpr int kDim = 64;
    constexpr std::int64_t kTokens = 150;
    constexpr std::int64_t kColumns = (kHeads + 2) * kDim;
    const conformance::Input random = run.random(DType::BF16, {kTokens, kColumns});
    conformance::Values rows;
    for (std::int64_t i = 0; i < kTokens * kColumns; ++i)
        rows.push_back(random(i) + (i % kColumns / kDim == kHeads ? 32.0 : 0.0));
    const conformance::Input qkv = run.given(DType::BF16, {kTokens, kColumns}, rows);
    conformance::Values first;
    for (std::int64_t t = 0; t < kTokens; ++t)
        first.push_back(t < 71 ? 0 : 71);
    const conformance::Input from = run.given(DType::I32, {kTokens}, first);
    const TensorView out = run.blank(DType::BF16, {kTokens, kHeads * kDim});
    const TensorView lse = run.blank(DType::F32, {kTokens, kHeads});
    run.call(run.ops().attention(
        {qkv.view, from.view, out, lse, kHeads, 1, kDim, 0.125F}, run.stream()));
    const conformance::Input gradOut = run.random(DType::BF16, {kTokens, kHeads * kDim});
    const TensorView gradQkv = run.blank(DType::BF16, {kTokens, kColumns});
    run.call(run.ops().attentionBackward(
        {qkv.view, from.view, out, lse, gradOut.view, run.blank(DType::F32, {kTokens, kHeads}),
            gradQkv, kHeads, 1, kDim, 0.125F},
        run.stream()));
    run.expect("gradQkv", gradQkv, conformance::Values(rows.size()),
        conformance::Values(rows.size(), 1e6));
}

// Cases that run on tensor cores: BF16 and a head_dim that has tiles.
bool hasTiles(const conformance::Case& line)
{
    if (!line.op.starts_with("attention") || line.name.find("bf16") == std::string::npos)
        return false;
    for (const char* dim : {" 64:", " 80:", " 96:", " 128:", " 256:"})
        if (line.name.find(dim) != std::string::npos)
            return true;
    return false;
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
            if (const std::string why = outcomeOf(*device, line, schedules()).why; !why.empty())
                misses += line.name + ": " + why + "\n";
        }

        QVERIFY2(misses.empty(), misses.c_str());
    }

    // A launch may give the blocks of attention any of the tiles there are. The largest ones ran
    // above.
    void everyTileOfAttentionGivesTheSameBits()
    {
        const auto deviceWith = [](int rows) {
            return simt::makeSimtDevice(
                std::size_t{1} << 28, gpu::AttentionChoice(simt::kSimtCard, rows));
        };
        const auto largest = deviceWith(128);
        const auto middle = deviceWith(64);
        const auto middleOf256 = deviceWith(48);
        const auto smallest = deviceWith(32);

        conformance::Table cases;
        std::ranges::copy_if(table(), std::back_inserter(cases), hasTiles);
        QVERIFY(cases.size() > 40);
        cases.push_back({"attentionBackward", "keys near one point", nearKeys});
        std::string misses;
        for (const conformance::Case& line : cases) {
            const bool is256 = line.name.find(" 256:") != std::string::npos;
            const Outcome want = outcomeOf(*largest, line, {Schedule{}});
            for (Device* device : {(is256 ? middleOf256 : middle).get(), smallest.get()}) {
                const Outcome out = outcomeOf(*device, line, schedules());
                if (!out.why.empty() || out.bytes != want.bytes)
                    misses += line.name + ": " + (out.why.empty() ? "other bits" : out.why) + "\n";
            }
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
