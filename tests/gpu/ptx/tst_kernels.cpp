// The conformance table on the PTX of every kernel, with the freedoms that the ISA leaves.

#include "core/prove/conformance_case.h"
#include "gpu/ptx/case_digests.h"
#include "gpu/ptx/instruction_table.h"
#include "gpu/ptx/kernel_cases.h"
#include "gpu/ptx/ptx_runtime.h"
#include "support/test_room.h"

#include <QObject>
#include <QTest>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace mr::test::tst_kernels {

using namespace mr::ptx;

namespace {

// Both targets have the same program of the kernel. Remembered: cases ask again and again.
bool hasSameCode(const std::string& kernel, const std::string& target, const std::string& earlier)
{
    static std::map<std::array<std::string, 3>, bool> known;
    const auto [found, isNew] = known.try_emplace({kernel, target, earlier}, false);
    if (isNew) {
        auto ours = programFor(kernel, target);
        auto theirs = programFor(kernel, earlier);
        found->second = ours.ok() && theirs.ok() && ours.value()->hasSameCode(*theirs.value());
    }
    return found->second;
}

std::vector<std::string> earlierTargets(const std::string& target)
{
    std::vector<std::string> all = targets();
    all.erase(std::ranges::find(all, target), all.end());
    return all;
}

// An earlier target runs the case by programs that do the same.
bool ranBefore(
    const conformance::Case& line, const std::string& target, int rows, const DryRun& here)
{
    return std::ranges::any_of(earlierTargets(target), [&](const std::string& earlier) {
        const auto isSame = [&](const auto& launch) {
            return hasSameCode(launch.first, target, earlier);
        };
        return std::ranges::all_of(here.kernels, isSame) &&
               (hasTensorCores(target) == hasTensorCores(earlier) ||
                   dryRunOf(line, earlier, rows) == here);
    });
}

// Cards before sm_80 have no tensor cores that multiply BF16: nothing launches these there.
bool isForTensorCores(const Program& program)
{
    return program.name.find("attention_mma") != std::string::npos ||
           program.name.find("attentionPartials") != std::string::npos;
}

// Kernels that no case launches, but for the empty one that is looked up when a device opens.
std::string missing(const Launches& launches)
{
    auto all = programs();
    if (!all.ok())
        return all.status().message();
    std::string names;
    for (const Program* program : all.value())
        if (program->steps.size() > 1 && !launches.contains(program->name) &&
            !(program->target == "sm_75" && isForTensorCores(*program)))
            names += program->name + "\n";
    return names;
}

// The instructions of all kernels on all targets, without unit tests and cases.
Result<InstructionTable> usedInstructions()
{
    InstructionTable table;
    std::map<std::string, std::set<std::string>> kernels;
    const std::string before = runtime().target;
    for (const std::string& target : targets()) {
        runtime().target = target;
        MR_ASSIGN(const std::vector<const Program*> all, programs());
        for (const Program* program : all)
            for (const std::string& name : program->texts) {
                kernels[name].insert(program->name);
                std::string& on = table[name].targets;
                if (!on.ends_with(target.substr(3)))
                    on += (on.empty() ? "" : " ") + target.substr(3);
            }
    }
    for (auto& [name, row] : table)
        row.kernels = kernels[name].size();
    runtime().target = before;
    return table;
}

// Names of what the launches since `executed` was cleared have run.
std::set<std::string> executedNames()
{
    std::set<std::string> names;
    for (const auto& [kernel, times] : runtime().executed) {
        auto program = programFor(kernel, runtime().target);
        for (std::size_t i = 0; program.ok() && i < times.size(); ++i)
            if (times[i] > 0)
                names.insert(program.value()->texts[i]);
    }
    return names;
}

// Compares what a case executed with the rows that name it; an update fills the rows that name
// none.
void note(InstructionTable& table, const std::string& line, std::string& misses)
{
    const std::set<std::string> names = executedNames();
    for (auto& [name, row] : table) {
        const bool isRun = names.contains(name);
        if (updatesInstructionTable() && isRun && row.conformance.empty()) {
            row.target = runtime().target;
            row.conformance = line;
        }
        if (row.target == runtime().target && row.conformance == line && !isRun)
            misses += line + " does not execute " + name + "\n";
    }
}

// In the gate an older program runs in one round: it is the same source, with other copies.
std::span<const Round> roundsOn(const std::string& target)
{
    return otherSeed() != 0 || target == targets().back() ? rounds() : rounds().first(1);
}

// Without products, which are the library's.
const conformance::Table& modelSizes()
{
    static const conformance::Table all = [] {
        conformance::Table table = conformance::modelSizeTable();
        std::erase_if(table, [](const auto& line) { return line.op.starts_with("linear"); });
        conformance::addModelSizeAttentionCases(table);
        return table;
    }();
    return all;
}

} // namespace

class TestKernels : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void instructionsAreListed()
    {
        auto used = usedInstructions();
        QVERIFY2(used.ok(), used.status().message().c_str());
        InstructionTable& now = used.value();
        InstructionTable kept = readInstructionTable();
        const std::size_t rows = kept.size();
        std::string differences;
        for (auto& [name, row] : now) {
            const InstructionRow& old = kept[name];
            if (old.targets != row.targets || old.kernels != row.kernels || old.unit.empty() ||
                old.conformance.empty() ||
                (old.target != "-" && std::ranges::count(targets(), old.target) == 0))
                differences += name + "\n";
            row = {row.targets, row.kernels, old.unit, old.target, old.conformance};
        }
        if (updatesInstructionTable())
            QVERIFY(writeInstructionTable(now));
        else
            QVERIFY2(differences.empty() && rows == now.size(), differences.c_str());
    }

    void digestsAreOfTheTable()
    {
        auto digests = readDigests(digestsPath());
        QVERIFY2(digests.ok(), digests.status().message().c_str());
        std::set<std::string> names;
        for (const conformance::Case& line : conformance::wholeTable())
            names.insert(line.name);
        std::string others;
        for (const CaseDigest& digest : digests.value())
            if (!names.contains(digest.name))
                others += digest.name + "\n";
        QVERIFY2(others.empty(), others.c_str());
        const std::string several = disagreements(digests.value());
        QVERIFY2(several.empty(), several.c_str());
    }

    void everyCase_data()
    {
        QTest::addColumn<QString>("row");
        for (const std::string& target : targets())
            QTest::newRow(target.c_str()) << QString::fromStdString(target);
    }

    void everyCase()
    {
        QFETCH(const QString, row);
        const std::string target = row.toStdString();
        runtime().target = target;
        Launches launches;
        std::string misses;
        CaseDigests digests;
        InstructionTable table = readInstructionTable();
        for (const conformance::Case& line : conformance::wholeTable()) {
            std::vector<DryRun> ran; // with other tiles
            runtime().executed.clear();
            for (const int rows : rowsOf(line)) {
                const DryRun here = dryRunOf(line, target, rows);
                launches.insert(here.kernels.begin(), here.kernels.end());
                if (std::ranges::count(ran, here) > 0 || ranBefore(line, target, rows, here))
                    continue;
                ran.push_back(here);
                const auto device = deviceOf(target, rows);
                CaseDigest digest{line.name, areExact(here.kernels), {}, {}};
                if (const std::string why = missed(*device, line, roundsOn(target), &digest);
                    !why.empty())
                    misses += line.name + ": " + why + "\n";
                else if (device->products() == 0)
                    digests.insert(digest);
            }
            if (otherSeed() == 0)
                note(table, line.name, misses);
        }
        if (otherSeed() == 0)
            misses += checkDigests(digests);
        if (updatesInstructionTable())
            QVERIFY(writeInstructionTable(table));
        QVERIFY2(misses.empty(), misses.c_str());
        const std::string names = missing(launches);
        QVERIFY2(names.empty(), names.c_str());
    }

    // Minutes: run by tests/bench/soak.sh --ptx and not by the gate.
    void everyModelSize_data()
    {
        QTest::addColumn<QString>("row");
        QTest::addColumn<int>("line");
        const conformance::Table& table = modelSizes();
        for (const std::string& target : targets())
            for (std::size_t i = 0; i < table.size(); ++i)
                QTest::newRow((target + " " + table[i].name).c_str())
                    << QString::fromStdString(target) << static_cast<int>(i);
    }

    void everyModelSize()
    {
        QFETCH(const QString, row);
        QFETCH(const int, line);
        const std::string target = row.toStdString();
        const conformance::Case& each = modelSizes()[static_cast<std::size_t>(line)];
        constexpr int kRows = 128;
        runtime().target = target;
        const DryRun here = dryRunOf(each, target, kRows);
        if (ranBefore(each, target, kRows, here))
            QSKIP("an earlier card runs the same programs");
        CaseDigest digest{each.name, areExact(here.kernels), {}, {}};

        const std::string why = missed(*deviceOf(target, kRows), each, rounds(), &digest);

        QVERIFY2(why.empty(), why.c_str());
    }
};

MR_TEST(TestKernels)

} // namespace mr::test::tst_kernels

#include "tst_kernels.moc"
