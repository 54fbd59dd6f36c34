#include "core/engine/plain_run_inputs.h"

#include "core/base/philox.h"
#include "core/optim/adamw.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mr {
namespace {

constexpr std::uint64_t kSeed = 11;

// Random weights at the rate of a copy: one block of numbers, again and again, from another place
// in every slot. Sampling 7 billion normals one by one would take minutes.
class CheapWeights
{
public:
    explicit CheapWeights(double range)
        : m_high(kBlock)
        , m_low(kBlock)
    {
        const auto width = static_cast<float>(range * std::sqrt(12.0)); // uniform, equal variance
        for (std::size_t i = 0; i < kBlock; ++i) {
            const std::uint32_t word = philox(kSeed, i / 4)[i % 4];
            const float value = width * (static_cast<float>(word >> 8) * 0x1p-24F - 0.5F);
            m_high[i] = highHalf(value);
            m_low[i] = lowHalf(value);
        }
    }

    // `view` has the group's elements, all zero between the slots.
    void fill(const ParamGroup& group, const MasterView& view)
    {
        for (const ParamSlot& slot : group.paramSlots) {
            const auto first = static_cast<std::size_t>(slot.first);
            const auto count = static_cast<std::size_t>(slot.count());
            if (slot.rank == 2)
                repeat(view.high.subspan(first, count), view.low.subspan(first, count));
            else if (isNorm(slot.kind))
                std::fill_n(view.high.begin() + slot.first, count, highHalf(1.0F));
        }
    }

private:
    static constexpr std::size_t kBlock = (std::size_t{1} << 20) - 3;

    static bool isNorm(SlotKind kind)
    {
        return kind == SlotKind::AttnNorm || kind == SlotKind::MlpNorm ||
               kind == SlotKind::FinalNorm;
    }

    void repeat(std::span<std::uint16_t> high, std::span<std::int16_t> low)
    {
        for (std::size_t at = 0; at < high.size();) {
            const std::size_t count = std::min(kBlock - m_next, high.size() - at);
            std::copy_n(m_high.begin() + static_cast<std::ptrdiff_t>(m_next), count,
                high.begin() + static_cast<std::ptrdiff_t>(at));
            std::copy_n(m_low.begin() + static_cast<std::ptrdiff_t>(m_next), count,
                low.begin() + static_cast<std::ptrdiff_t>(at));
            at += count;
            m_next = (m_next + count) % kBlock;
        }
    }

    std::vector<std::uint16_t> m_high;
    std::vector<std::int16_t> m_low;
    std::size_t m_next = 0;
};

} // namespace

Status installCheapWeights(PlainRun& run)
{
    CheapWeights weights(run.spec().config.initializerRange);
    std::vector<std::uint16_t> high;
    std::vector<std::int16_t> low;
    for (std::size_t g = 0; g < run.table().groups.size(); ++g) {
        const ParamGroup& group = run.table().groups[g];
        const GroupId id{static_cast<std::int32_t>(g)};
        high.assign(static_cast<std::size_t>(group.elements), 0);
        low.assign(static_cast<std::size_t>(group.elements), 0);
        const MasterView view{high, low};
        weights.fill(group, view);
        StepExecutor& executor = run.executor();
        if (run.memory().group(id).state[0])
            MR_TRY(executor.writeMaster(id, view));
        // Where the device updates in BF16, the high half is the weight.
        if (run.memory().group(id).state[0] != run.memory().group(id).weights)
            MR_TRY(executor.uploadWeights(id, view));
    }
    return {};
}

std::vector<MicroBatchData> randomBatch(std::int64_t vocab, const MicroShape& micro)
{
    const std::int64_t sequences = micro.microBatch * micro.microBatches;
    const std::int64_t length = micro.seqLen + 1;
    TokenSet set;
    for (std::int64_t t = 0; t < sequences * length; ++t) {
        const std::uint32_t word = philox(kSeed + 1, static_cast<std::uint64_t>(t))[0];
        set.tokens.push_back(static_cast<TokenId>(word % static_cast<std::uint32_t>(vocab)));
        set.trained.push_back(1);
    }
    for (std::int64_t s = 0; s <= sequences; ++s)
        set.starts.push_back(static_cast<std::uint64_t>(s * length));
    std::vector<MicroBatchData> micros(static_cast<std::size_t>(micro.microBatches));
    std::vector<std::int64_t> picked(static_cast<std::size_t>(micro.microBatch));
    for (std::size_t m = 0; m < micros.size(); ++m) {
        std::iota(picked.begin(), picked.end(), static_cast<std::int64_t>(m) * micro.microBatch);
        fillMicroBatch(
            set, picked, {micro.seqLen, micro.microBatch, micro.microBatches}, micros[m]);
    }
    return micros;
}

} // namespace mr
