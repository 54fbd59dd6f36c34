// One instruction of a kernel is made wrong at a time: a check of the machine or the conformance
// table must notice it.
//
// The gate tries a sample. MR_PTX_MUTATIONS=all tries every kernel (MR_PTX_MUTATIONS=rope,sum those
// whose names begin so) and compares the mutants that nothing notices with survivors.txt, where
// each has its reason.

#include "core/prove/conformance_case.h"
#include "gpu/kernel_list.h"
#include "gpu/ptx/mutation_trials.h"
#include "gpu/ptx/mutations.h"
#include "gpu/ptx/ptx_runtime.h"
#include "support/test_room.h"

#include <QObject>
#include <QTest>

#include <fmt/core.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <numeric>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace mr::test::tst_mutations {

using namespace mr::ptx;

namespace {

constexpr auto kFaults = static_cast<std::size_t>(Fault::Count);
constexpr auto kVerdicts = static_cast<std::size_t>(Verdict::Count);

// Kernels that together have every fault, and the cases that may launch them.
constexpr std::array<std::string_view, 2> kSampleKernels = {
    "attentionForwardKernel<64, 32>", "crossEntropyKernel<float, 1, 4>"};

bool isSampleCase(const conformance::Case& line)
{
    return line.op == "crossEntropy" ||
           (line.op == "attention" && line.name.find(" 64:") != std::string::npos);
}

// `begins` are separated by commas.
bool beginsAsOneOf(const std::string& name, const std::string& begins)
{
    std::istringstream parts(begins);
    for (std::string part; std::getline(parts, part, ',');)
        if (name.starts_with(part))
            return true;
    return false;
}

// Kernels whose names are wanted, with their mutants.
template <typename Wanted>
Result<std::vector<KernelTrials>> kernelsOf(Wanted isWanted)
{
    std::vector<KernelTrials> all;
    for (const gpu::KernelEntry& entry : gpu::listedKernels()) {
        KernelTrials kernel;
        kernel.name = gpu::kernelName(entry);
        if (!isWanted(kernel.name))
            continue;
        MR_ASSIGN(kernel.text, kernelText(entry.kernel, runtime().target));
        kernel.mutants = mutantsOf(*kernel.text.entry);
        all.push_back(std::move(kernel));
    }
    std::ranges::sort(all, {}, &KernelTrials::name);
    return all;
}

// A line of survivors.txt. Its key is the kernel, the fault and the number.
std::string lineOf(const KernelTrials& kernel, const Mutant& mutant, Verdict verdict)
{
    return fmt::format("{} | {} {} | {} {} | {}", kernel.name, nameOf(mutant.fault), mutant.number,
        kernel.text.entry->instructions[mutant.index].op, mutant.form, nameOf(verdict));
}

std::set<std::string> listedSurvivors()
{
    std::ifstream file(
        qEnvironmentVariable("MILLRACE_SOURCE").toStdString() + "/tests/gpu/ptx/survivors.txt");
    std::set<std::string> lines;
    for (std::string line; std::getline(file, line);)
        if (!line.empty() && !line.starts_with('#'))
            lines.insert(line);
    return lines;
}

struct Tally {
    std::array<std::array<int, kVerdicts>, kFaults> counts = {};
    std::map<std::string, std::string> notCaught; // line -> place in the source

    void add(const KernelTrials& kernel, const Mutant& mutant, Verdict verdict)
    {
        ++counts[static_cast<std::size_t>(mutant.fault)][static_cast<std::size_t>(verdict)];
        if (!isCaught(verdict))
            notCaught.emplace(lineOf(kernel, mutant, verdict),
                kernel.text.entry->instructions[mutant.index].place);
    }

    void print() const
    {
        fmt::print("| fault | tried |");
        for (std::size_t verdict = 0; verdict < kVerdicts; ++verdict)
            fmt::print(" {} |", nameOf(static_cast<Verdict>(verdict)));
        fmt::print("\n");
        for (std::size_t fault = 0; fault < kFaults; ++fault) {
            const auto& row = counts[fault];
            fmt::print("| {} | {} |", nameOf(static_cast<Fault>(fault)),
                std::accumulate(row.begin(), row.end(), 0));
            for (const int count : row)
                fmt::print(" {} |", count);
            fmt::print("\n");
        }
        std::fflush(stdout);
    }
};

std::string unlisted(const Tally& tally, const std::set<std::string>& listed)
{
    std::string text;
    for (const auto& [line, place] : tally.notCaught)
        if (!listed.contains(line))
            text += fmt::format("is not in survivors.txt: {} ({})\n", line, place);
    return text;
}

std::string noLongerTrue(const Tally& tally, const std::set<std::string>& listed)
{
    std::string text;
    for (const std::string& line : listed)
        if (!tally.notCaught.contains(line))
            text += "is no longer true: " + line + "\n";
    return text;
}

// The first, middle and last mutant of each fault.
std::vector<Mutant> sampleOf(const KernelTrials& kernel)
{
    std::vector<Mutant> sample;
    for (std::size_t fault = 0; fault < kFaults; ++fault) {
        std::vector<Mutant> alike;
        std::ranges::copy_if(kernel.mutants, std::back_inserter(alike),
            [&](const Mutant& mutant) { return static_cast<std::size_t>(mutant.fault) == fault; });
        if (alike.empty())
            continue;
        const std::size_t last = alike.size() - 1;
        for (const std::size_t i : std::set<std::size_t>{0, last / 2, last})
            sample.push_back(alike[i]);
    }
    return sample;
}

} // namespace

class TestMutations : public QObject
{
    Q_OBJECT

private Q_SLOTS:

    void aSampleIsNoticed()
    {
        auto kernels = kernelsOf([](const std::string& name) {
            return std::ranges::find(kSampleKernels, name) != kSampleKernels.end();
        });
        QVERIFY2(kernels.ok(), kernels.status().message().c_str());
        QCOMPARE(kernels.value().size(), kSampleKernels.size());
        conformance::Table table = conformance::wholeTable();
        std::erase_if(table, [](const conformance::Case& line) { return !isSampleCase(line); });
        const Status status = addTrials(table, kernels.value());
        QVERIFY2(status.ok(), status.message().c_str());

        Tally tally;
        std::set<Fault> caught;
        for (const KernelTrials& kernel : kernels.value())
            for (const Mutant& mutant : sampleOf(kernel)) {
                auto verdict = verdictOn(kernel, mutant);
                QVERIFY2(verdict.ok(), verdict.status().message().c_str());
                if (isCaught(verdict.value()))
                    caught.insert(mutant.fault);
                else if (verdict.value() == Verdict::Survived) // other cases may execute the rest
                    tally.add(kernel, mutant, verdict.value());
            }

        const std::string news = unlisted(tally, listedSurvivors());
        QVERIFY2(news.empty(), news.c_str());
        QCOMPARE(caught.size(), kFaults);
    }

    void everyMutantIsNoticedOrListed()
    {
        const std::string which = qEnvironmentVariable("MR_PTX_MUTATIONS").toStdString();
        if (which.empty())
            QSKIP("MR_PTX_MUTATIONS=all tries every kernel");
        const auto isWanted = [&](const std::string& name) {
            return which == "all" || beginsAsOneOf(name, which);
        };
        auto kernels = kernelsOf(isWanted);
        QVERIFY2(kernels.ok(), kernels.status().message().c_str());
        const conformance::Table table = conformance::wholeTable();
        const Status status = addTrials(table, kernels.value());
        QVERIFY2(status.ok(), status.message().c_str());

        std::set<std::string> listed = listedSurvivors();
        Tally tally;
        for (const KernelTrials& kernel : kernels.value()) {
            for (const Mutant& mutant : kernel.mutants) {
                auto verdict = verdictOn(kernel, mutant);
                QVERIFY2(verdict.ok(), verdict.status().message().c_str());
                // One that is not known is news only if no case at all notices it.
                if (verdict.value() == Verdict::Survived &&
                    !listed.contains(lineOf(kernel, mutant, Verdict::Survived)))
                    verdict = verdictOn(kernel, mutant, kernel.trials.size());
                QVERIFY2(verdict.ok(), verdict.status().message().c_str());
                tally.add(kernel, mutant, verdict.value());
            }
            fmt::print("{}: {} mutants\n", kernel.name, kernel.mutants.size());
            std::fflush(stdout);
        }
        tally.print();

        std::erase_if(listed, [&](const std::string& line) { return !isWanted(line); });
        const std::string differences = unlisted(tally, listed) + noLongerTrue(tally, listed);
        if (!differences.empty())
            fmt::print("{}", differences); // Qt Test cuts long messages
        QVERIFY2(differences.empty(), "survivors.txt differs from what was found");
    }
};

MR_TEST(TestMutations)

} // namespace mr::test::tst_mutations

#include "tst_mutations.moc"
