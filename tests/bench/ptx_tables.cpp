#include "bench/ptx_tables.h"

#include "gpu/ptx/counters.h"

#include <cxxabi.h>
#include <fmt/core.h>

#include <array>
#include <cstddef>
#include <cstdlib>
#include <map>
#include <memory>
#include <string_view>

namespace mr::bench {
namespace {

using ptx::StepClass;

constexpr double kLeastSectorsUsed = 90;
constexpr double kMostExtraWaves = 0;
constexpr double kMostAddress = 20;

struct Reason {
    std::string_view name; // the beginning of a row's
    bool sectors;
    bool waves;
    bool address;
    std::string_view text;
};

constexpr std::string_view kCopies = "the kernel copies and rounds: beside addresses there is "
                                     "little to do, and memory takes many times as long";

constexpr std::string_view kVectors = "a number for each row and column: a few a thread, of a "
                                      "thousandth of the weight's memory";

constexpr Reason kReasons[] = {
    {"embedBackward/embedBackwardKernel", true, false, false,
        "ids and order are 4 bytes, and a warp reads the ids of 32 tokens at 32 places"},
    {"embed", false, false, true, kCopies}, // and the fill of embedBackward
    {"finishGradient", false, false, true, kCopies},
    {"gatherColumns", true, false, true,
        "single columns of 2 bytes, one in ten: nearly every sector of the wide side is touched"},
    {"scatterColumns", true, false, true, "as gatherColumns"},
    {"rope", true, false, true,
        "8 angles of a lane are two loads of 16 bytes, 32 bytes apart from lane to lane: each "
        "uses half of its sectors, and the second finds them in the first cache"},
    {"headNormRope", true, false, true, "the tables of angles, as in rope"},
    {"quantize/codesKernel", false, true, false,
        "a transposed line is read 16 bytes a lane, two lanes a bank: 8 waves where 4 are least; "
        "storing has no conflict"},
    {"attention", false, false, true,
        "attentionDeltaKernel and attentionPartialsKernel only add what they load, and memory "
        "takes "
        "many times as long; at head_dim 256 a block of 96 or 128 threads copies 3 or 4 rows of a "
        "tile at a time, and the place of every row is computed"},
    {"decodeInputs", false, false, true, kCopies},
    {"dequantizeNf4", true, false, true,
        "every element is looked up among 16 numbers, and eight lanes read one byte and two "
        "numbers of their block; these stay in the first cache, and memory takes several times as "
        "long"},
    {"joinSoftmax", true, false, false,
        "a thread reads the numbers of its row one after the other, a few for each 8,192 logits; "
        "the first cache keeps them"},
    {"adapterNorms", true, false, false,
        "a warp reads one element of B for all its lanes; B stays in the first cache"},
    {"scaleColumns", true, false, true,
        "8 factors of a lane are two loads of 16 bytes, as the angles of rope; beside one product "
        "an element there is little to do, and memory takes many times as long"},
    {"columnDots", false, false, true,
        "an element that a lane loads is multiplied once, and a stride is added to the address of "
        "each; memory takes many times as long"},
    {"columnSquares/columnTreeKernel", false, false, true, "as columnDots; a 1,024th of the rows"},
    {"averageSquares", false, false, true, kVectors},
    {"lightStepSize", false, false, true, kVectors},
    {"projectionSigns", false, false, true, kVectors},
    {"projectedStep", false, false, true, kVectors},
    {"causalConv/causalConvKernel", true, false, false,
        "a thread loads the weights of its channels one by one, once for 64 rows; they stay in the "
        "first cache"},
    {"causalConv/convHistoryKernel", false, false, true, kVectors},
    {"causalConvBackward/causalConvBackwardKernel", true, false, false,
        "weights as in causalConv, and their gradients, a few numbers for 64 rows"},
    {"gatedDelta", true, true, true,
        "gates are one number a row and head; the place of every staged row is computed, and the "
        "kernels wait for shared memory, not for addresses; nvcc splits one of four stores of two "
        "sums, which is one wave in a thousand"},
    {"gatedDeltaBackward/deltaSumKernel", true, false, true, kVectors},
    {"splitQueries", false, false, true, kCopies},
    {"copyColumns", false, false, true, kCopies},
    {"selectRows", true, false, true,
        "all lanes read the number of the same row, which stays in the first cache; once in 200 "
        "updates"},
    {"rowAdamw", true, false, true,
        "a pack halves the numbers of chosen rows until it finds its own: they stay in the first "
        "cache, and seven of eight packs have done with it"},
};

// "attentionDeltaKernel", "FillOp" of a frame.
std::string kernelName(const std::string& mangled)
{
    int status = 0;
    const std::unique_ptr<char, void (*)(void*)> text(
        abi::__cxa_demangle(mangled.c_str(), nullptr, nullptr, &status), &std::free);
    constexpr std::string_view kNamespace = "(anonymous namespace)::";
    const std::string name = status == 0 ? text.get() : mangled;
    const std::size_t at = name.find(kNamespace) + kNamespace.size();
    return name.substr(at, name.find_first_of("<(", at) - at);
}

std::vector<std::string> namesOf(const char* op, const std::vector<CountedLaunch>& launches)
{
    if (launches.size() == 1)
        return {op};
    std::vector<std::string> names;
    std::map<std::string, int> seen;
    for (const CountedLaunch& launch : launches) {
        const std::string kernel = kernelName(launch.program->name);
        const int turn = ++seen[kernel];
        names.push_back(fmt::format(
            "{}/{}{}", op, kernel, turn > 1 ? fmt::format(" {}", turn) : std::string()));
    }
    return names;
}

double percent(double part, double whole)
{
    return whole > 0 ? 100.0 * part / whole : 0.0;
}

using ClassTimes = std::array<double, ptx::kStepClasses>;

// Steps by class in a range, without moves.
ClassTimes byClass(const CountedLaunch& launch, const ptx::StepRange& range)
{
    ClassTimes times = {};
    const std::vector<StepClass> classes = ptx::classesOf(*launch.program);
    for (std::size_t i = range.first; i < range.end; ++i)
        if (classes[i] != StepClass::Move)
            times[static_cast<std::size_t>(classes[i])] +=
                static_cast<double>(launch.counters.steps[i].times);
    return times;
}

double addressShare(const CountedLaunch& launch)
{
    const ClassTimes times = byClass(launch, ptx::hotSteps(*launch.program, launch.counters));
    double all = 0;
    for (const double value : times)
        all += value;
    return percent(times[static_cast<std::size_t>(StepClass::Address)], all);
}

std::string counterRow(const std::string& name, const CountedLaunch& launch,
    const std::string& least, const Card& card)
{
    const Work work = workOf(launch);
    const Shares shares = sharesOf(launch);
    const auto blocks = static_cast<double>(launch.grid.count());
    const auto slots = static_cast<double>(slotsOf(launch, card));
    const bool hasProducts = work.products > 0;
    const double unit = hasProducts ? work.products : work.bytesAsked / 1024;
    std::string row =
        fmt::format("| {} | {} x {} | {:.1f} | {:.0f} | {:.0f} | {:.0f} | {:.0f} | {} "
                    "| {:.1f} | {:.1f} | {}",
            name, launch.grid.count(), launch.block.count(), slots > 0 ? blocks / slots : 0.0,
            shares.sectorsUsed, shares.extraWaves, shares.address, shares.idleLanes, least,
            1e-6 * work.bytesOfMemory, 1e-6 * work.bytesAsked, hasProducts ? "mma |" : "KiB |");
    const ClassTimes times = byClass(launch, {0, launch.program->steps.size()});
    for (std::size_t c = static_cast<std::size_t>(StepClass::Address); c < times.size(); ++c)
        if (c != static_cast<std::size_t>(StepClass::Product))
            row += fmt::format(" {:.1f} |", launch.scale * times[c] / unit);
    return row + "\n";
}

} // namespace

Result<CountedRun> count(const CountedOp& op, const ModelShape& model, const Card& card)
{
    OpRig rig(card.target, card.attention(), op.sample);
    const Status status = op.run(rig, model);
    MR_TRY(ptx::runtime().failure);
    MR_TRY(status);
    CountedRun run;
    run.launches = rig.takeLaunches();
    run.names = namesOf(op.name, run.launches);
    run.leastBytes = rig.leastBytes();
    return run;
}

Shares sharesOf(const CountedLaunch& launch)
{
    const ptx::StepCount total = launch.counters.total();
    const auto share = [](std::uint64_t part, std::uint64_t whole) {
        return percent(static_cast<double>(part), static_cast<double>(whole));
    };
    return {share(total.bytesUsed, total.sectors * ptx::kSectorBytes),
        share(total.waves - total.wavesLeast, total.wavesLeast), addressShare(launch),
        share(ptx::kLanes * total.times - total.lanes, ptx::kLanes * total.times)};
}

std::string overLimits(const std::string& name, const CountedLaunch& launch)
{
    const Shares shares = sharesOf(launch);
    const auto isKnown = [&](bool Reason::*which) {
        for (const Reason& reason : kReasons)
            if (name.starts_with(reason.name) && reason.*which)
                return true;
        return false;
    };
    std::string over;
    if (shares.sectorsUsed < kLeastSectorsUsed && !isKnown(&Reason::sectors))
        over += fmt::format(" {:.0f} % of sectors used", shares.sectorsUsed);
    if (shares.extraWaves > kMostExtraWaves && !isKnown(&Reason::waves))
        over += fmt::format(" {:.0f} % extra waves", shares.extraWaves);
    if (shares.address > kMostAddress && !isKnown(&Reason::address))
        over += fmt::format(" {:.0f} % addresses", shares.address);
    return over.empty() ? over : name + ":" + over + "\n";
}

std::string counterHead()
{
    return "| op | blocks x threads | blocks / slots | sectors used % | extra waves % | address % "
           "| "
           "idle lanes % | least MB | memory MB | asked MB | per | address | integer | float | "
           "special | conversion | memory | exchange | control |\n"
           "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|\n";
}

std::string counterRows(const CountedRun& run, const Card& card)
{
    const std::string least = fmt::format("{:.1f}", 1e-6 * static_cast<double>(run.leastBytes));
    std::string rows;
    for (std::size_t i = 0; i < run.launches.size(); ++i)
        // The least of an op stands in the row of its last kernel.
        rows += counterRow(
            run.names[i], run.launches[i], i + 1 == run.launches.size() ? least : "", card);
    return rows;
}

std::string reasonTable()
{
    std::string table = "| rows that begin with | limit | reason |\n|---|---|---|\n";
    for (const Reason& reason : kReasons)
        table += fmt::format("| {} |{}{}{} | {} |\n", reason.name, reason.sectors ? " sectors" : "",
            reason.waves ? " waves" : "", reason.address ? " addresses" : "", reason.text);
    return table;
}

} // namespace mr::bench
