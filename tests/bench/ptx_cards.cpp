#include "bench/ptx_cards.h"

#include "gpu/ptx/decode.h"
#include "gpu/ptx/machine_code.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

namespace mr::bench {
namespace {

constexpr std::size_t kKiB = 1024;

constexpr std::array kCards = {
    Card{"RTX 3060", "sm_86", 8, 28, 1.777e9, 360e9, 256, 1536, 16, 100 * kKiB},
    Card{"RTX 4090", "sm_89", 8, 128, 2.520e9, 1008e9, 256, 1536, 24, 100 * kKiB},
    Card{"RTX 5090", "sm_120", 12, 170, 2.407e9, 1792e9, 256, 1536, 24, 100 * kKiB},
    Card{"H200", "sm_90", 9, 132, 1.830e9, 4800e9, 2048, 2048, 32, 228 * kKiB}};

constexpr double kIssued = 4;                   // instructions of an SM in a cycle
constexpr double kSpecialLanes = 16;            // approximate functions of an SM in a cycle
constexpr double kMultiplyAdds = 2048;          // of an mma: 16 x 8 x 16
constexpr std::uint64_t kRegisters = 64 * kKiB; // of an SM
constexpr std::uint64_t kRegisterUnit = 8;      // of a thread
constexpr std::uint64_t kSystemBytes = kKiB;    // of shared memory, for each block

// Instructions of the card for a step of this name that is no move; ptx.md compares them with the
// machine code.
double instructionsOf(const std::string& name)
{
    const ptx::OpName op(name);
    const std::string_view first = op.first();
    const bool isWide = op.last().ends_with("64");
    if (first == "div" || first == "rem" || first == "sqrt")
        return isWide ? 40 : 10;
    if (first == "ld" || first == "st" || first == "cvt" || op.is("mul.wide"))
        return 1;
    if (isWide && (first == "mul" || first == "mad"))
        return 4;
    return isWide ? 2 : 1;
}

double bytesOfMemory(const CountedLaunch& launch)
{
    double bytes = 0;
    for (const ptx::TouchedMemory& touched : launch.touched)
        for (const std::size_t sectors : {touched.sectorsRead, touched.sectorsWritten})
            bytes += std::min(static_cast<double>(touched.bytes),
                launch.scale * static_cast<double>(sectors * ptx::kSectorBytes));
    return bytes;
}

} // namespace

std::span<const Card> cards()
{
    return kCards;
}

Work workOf(const CountedLaunch& launch)
{
    Work work;
    const std::vector<ptx::StepClass> classes = ptx::classesOf(*launch.program);
    for (std::size_t i = 0; i < classes.size(); ++i) {
        const auto times = static_cast<double>(launch.counters.steps[i].times);
        if (classes[i] != ptx::StepClass::Move)
            work.instructions += times * instructionsOf(launch.program->texts[i]);
        work.special += classes[i] == ptx::StepClass::Special ? times : 0;
        work.products += classes[i] == ptx::StepClass::Product ? times : 0;
    }
    const ptx::StepCount total = launch.counters.total();
    work.bytesAsked = static_cast<double>(total.sectors * ptx::kSectorBytes);
    work.waves = static_cast<double>(total.waves);
    for (double* const value :
        {&work.bytesAsked, &work.instructions, &work.special, &work.waves, &work.products})
        *value *= launch.scale;
    work.bytesOfMemory = bytesOfMemory(launch);
    return work;
}

Expected expectedTime(const Work& work, const Card& card)
{
    const double cycles = card.multiprocessors * card.clockHz;
    const std::array times = {Expected{work.bytesOfMemory / card.bytesPerSecond, Limit::Memory},
        Expected{work.instructions / (kIssued * cycles), Limit::Issue},
        Expected{work.special * ptx::kLanes / (kSpecialLanes * cycles), Limit::Special},
        Expected{work.waves / cycles, Limit::Shared},
        Expected{work.products * kMultiplyAdds / (card.multiplyAdds * cycles), Limit::TensorCores}};
    return *std::ranges::max_element(times, {}, &Expected::seconds);
}

std::uint64_t slotsOf(const CountedLaunch& launch, const Card& card)
{
    const auto code = ptx::codeOf(launch.program->name, card.target);
    if (!code)
        return 0;
    const std::uint64_t threads =
        (launch.block.count() + ptx::kLanes - 1) / ptx::kLanes * ptx::kLanes;
    const std::uint64_t registers =
        (code->registers + kRegisterUnit - 1) / kRegisterUnit * kRegisterUnit;
    const std::uint64_t each =
        std::min({card.blocks, card.threads / threads, kRegisters / (threads * registers),
            card.sharedBytes / (launch.sharedBytes + kSystemBytes)});
    return each * static_cast<std::uint64_t>(card.multiprocessors);
}

} // namespace mr::bench
