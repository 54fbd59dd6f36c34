#include "gpu/ptx/counters.h"

#include "gpu/ptx/decode.h"

#include <algorithm>
#include <bit>
#include <initializer_list>
#include <set>
#include <span>
#include <string_view>

namespace mr::ptx {
namespace {

constexpr std::uint64_t kBanks = 32;
constexpr std::uint64_t kWordBytes = 4;

bool isFloat(const OpName& op)
{
    return op.has("f32") || op.has("f64") || op.has("f16") || op.has("bf16") || op.has("bf16x2") ||
           op.has("f32x2");
}

bool isOneOf(std::string_view name, std::initializer_list<std::string_view> names)
{
    return std::ranges::find(names, name) != names.end();
}

// The class without a look at what becomes of the result: Integer for all arithmetic of integers.
StepClass ownClass(const OpName& op)
{
    const std::string_view name = op.first();
    if (isOneOf(name, {"mov", "cvta"}) || op.is("ld.param"))
        return StepClass::Move;
    if (op.is("cp.async.commit_group") || op.is("cp.async.wait_group"))
        return StepClass::Control;
    if (isOneOf(name, {"ld", "st", "cp", "ldmatrix"}))
        return StepClass::Memory;
    if (isOneOf(name, {"bra", "ret", "exit", "bar", "barrier"}) || op.last() == "pred")
        return StepClass::Control;
    if (isOneOf(name, {"shfl", "vote"}))
        return StepClass::Exchange;
    if (name == "mma")
        return StepClass::Product;
    if (!isFloat(op))
        return name == "setp" ? StepClass::Control : StepClass::Integer;
    if (name == "cvt")
        return StepClass::Conversion;
    if (isOneOf(name, {"ex2", "lg2", "rcp", "rsqrt", "sqrt", "sin", "cos", "tanh", "div"}))
        return StepClass::Special;
    return StepClass::Float;
}

// mov of two halves to a whole register, or back.
bool isPack(const Program& program, std::size_t i)
{
    return program.texts[i].starts_with("mov") && program.steps[i].slots[2] != 0;
}

// Slots of registers that hold an address, or what becomes one.
class AddressSlots
{
public:
    explicit AddressSlots(const Program& program)
    {
        for (const Program::Constant& constant : program.constants)
            m_constants.insert(constant.slot);
        std::vector<StepClass> classes;
        for (std::size_t i = 0; i < program.steps.size(); ++i) {
            const OpName op(program.texts[i]);
            classes.push_back(ownClass(op));
            const bool isAccess = classes.back() == StepClass::Memory || op.first() == "ld";
            addUses(op, program.steps[i], isAccess, isPack(program, i));
        }
        for (std::size_t before = 0; before != m_slots.size();) {
            before = m_slots.size();
            for (std::size_t i = program.steps.size(); i-- > 0;)
                if (classes[i] == StepClass::Integer || classes[i] == StepClass::Move)
                    follow(program.steps[i], isPack(program, i));
        }
    }

    bool has(std::uint32_t slot) const { return m_slots.contains(slot); }

    // The sum of a register and a constant that is the base of accesses and nothing else: ptxas
    // makes it their offset.
    bool isOffset(const OpName& op, const Step& step) const
    {
        return op.first() == "add" && has(step.slots[0]) && !m_values.contains(step.slots[0]) &&
               (m_constants.contains(step.slots[1]) || m_constants.contains(step.slots[2]));
    }

private:
    void addUses(const OpName& op, const Step& step, bool isAccess, bool isPack)
    {
        std::size_t values = isPack ? 0 : 1; // the first slot that may be read
        if (isAccess) {
            values = op.first() == "cp" ? 2 : 1;
            m_slots.insert(step.slots.begin(), step.slots.begin() + static_cast<int>(values));
        }
        m_values.insert(step.slots.begin() + static_cast<int>(values), step.slots.end());
    }

    // From the result of a step to what it is made of. Halves of a register are a result where the
    // step takes it apart.
    void follow(const Step& step, bool isPack)
    {
        const auto parts = std::span(step.slots).subspan(1);
        const bool givesHalf = isPack && (has(parts[0]) || has(parts[1]));
        if (!has(step.slots[0]) && !givesHalf)
            return;
        m_slots.insert(step.slots[0]);
        for (const std::uint32_t slot : parts)
            if (slot != 0)
                m_slots.insert(slot);
    }

    std::set<std::uint32_t> m_slots;
    std::set<std::uint32_t> m_values; // that are used otherwise than as a base
    std::set<std::uint32_t> m_constants;
};

} // namespace

StepCount& StepCount::operator+=(const StepCount& other)
{
    times += other.times;
    lanes += other.lanes;
    sectors += other.sectors;
    bytesUsed += other.bytesUsed;
    waves += other.waves;
    wavesLeast += other.wavesLeast;
    return *this;
}

StepCount Counters::total() const
{
    StepCount sum;
    for (const StepCount& step : steps)
        sum += step;
    return sum;
}

void countSectors(StepCount& count, const LaneAddresses& addresses, Mask lanes, std::uint64_t bytes)
{
    struct Part {
        std::uint64_t sector = 0;
        std::uint32_t used = 0; // a bit for each byte
    };
    std::array<Part, kLanes> parts = {};
    std::size_t size = 0;
    const auto bits = static_cast<std::uint32_t>((1ULL << bytes) - 1);
    forLanes(lanes, [&](int lane) {
        const std::uint64_t address = addresses[static_cast<std::size_t>(lane)];
        parts[size++] = {address / kSectorBytes, bits << address % kSectorBytes};
    });
    const auto used = std::span(parts).first(size);
    std::ranges::sort(used, {}, &Part::sector);
    for (std::size_t i = 0; i < used.size();) {
        const std::uint64_t sector = used[i].sector;
        std::uint32_t all = 0;
        for (; i < used.size() && used[i].sector == sector; ++i)
            all |= used[i].used;
        ++count.sectors;
        count.bytesUsed += static_cast<std::uint64_t>(std::popcount(all));
    }
}

void countWaves(StepCount& count, const LaneAddresses& addresses, Mask lanes, std::uint64_t bytes)
{
    const auto together =
        static_cast<std::size_t>(kBanks * kWordBytes / std::max(bytes, kWordBytes));
    for (std::size_t first = 0; first < kLanes; first += together) {
        std::vector<std::uint64_t> words; // each once
        for (std::size_t lane = first; lane < first + together; ++lane)
            if (((lanes >> lane) & 1U) != 0)
                for (std::uint64_t at = addresses[lane]; at < addresses[lane] + bytes;
                     at += kWordBytes)
                    words.push_back(at / kWordBytes);
        std::ranges::sort(words);
        words.erase(std::unique(words.begin(), words.end()), words.end());
        std::array<std::uint64_t, kBanks> asked = {};
        for (const std::uint64_t word : words)
            ++asked[word % kBanks];
        count.waves += std::ranges::max(asked);
        count.wavesLeast += words.empty() ? 0 : 1;
    }
}

std::vector<StepClass> classesOf(const Program& program)
{
    const AddressSlots addresses(program);
    std::vector<StepClass> classes;
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
        const OpName op(program.texts[i]);
        const Step& step = program.steps[i];
        const StepClass own = ownClass(op);
        const bool isAddress = own == StepClass::Integer && addresses.has(step.slots[0]);
        classes.push_back(!isAddress                     ? own
                          : addresses.isOffset(op, step) ? StepClass::Move
                                                         : StepClass::Address);
    }
    return classes;
}

StepRange hotSteps(const Program& program, const Counters& counters)
{
    const auto timesIn = [&](const StepRange& range) {
        std::uint64_t times = 0;
        for (std::size_t i = range.first; i < range.end; ++i)
            times += counters.steps[i].times;
        return times;
    };
    std::vector<StepRange> loops; // by their ends, so those inside come first
    for (std::size_t i = 0; i < program.steps.size(); ++i) {
        const Step& step = program.steps[i];
        if (step.control != Control::Branch || step.target > i)
            continue;
        const bool hasLoop = std::ranges::any_of(
            loops, [&](const StepRange& loop) { return loop.first >= step.target; });
        if (!hasLoop)
            loops.push_back({step.target, i + 1});
    }
    const StepRange all{0, program.steps.size()};
    const auto hottest = std::ranges::max_element(loops, {}, timesIn);
    return hottest != loops.end() && 2 * timesIn(*hottest) >= timesIn(all) ? *hottest : all;
}

} // namespace mr::ptx
