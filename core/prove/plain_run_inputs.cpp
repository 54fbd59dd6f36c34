#include "core/prove/plain_run_inputs.h"

#include "core/base/philox.h"
#include "core/device/adamw.h"
#include "core/model/weights.h"
#include "core/step/run_master.h"

#include <algorithm>
#include <cmath>
#include <numeric>

namespace mr {
namespace {

constexpr std::uint64_t kInputSeed = 11;

// Random weights at the rate of a copy: one block of numbers, again and again, from another place
// in every tensor. Sampling 7 billion normals one by one would take minutes.
class CheapNumbers
{
public:
    explicit CheapNumbers(double range)
        : m_high(kBlock)
        , m_low(kBlock)
    {
        const auto width = static_cast<float>(range * std::sqrt(12.0)); // uniform, equal variance
        for (std::size_t i = 0; i < kBlock; ++i) {
            const std::uint32_t word = philox(kInputSeed, i / 4)[i % 4];
            const float value = width * (static_cast<float>(word >> 8) * 0x1p-24F - 0.5F);
            m_high[i] = highHalf(value);
            m_low[i] = lowHalf(value);
        }
    }

    void operator()(const NamedTensor& tensor, std::int64_t first, const MasterView& out) const
    {
        const std::int64_t place = tensor.group.value * kStride + tensor.first + first;
        std::size_t next = static_cast<std::size_t>(place) % kBlock;
        for (std::size_t at = 0; at < out.high.size(); next = 0) {
            const std::size_t count = std::min(kBlock - next, out.high.size() - at);
            const MasterView part = out.part(at, count);
            std::copy_n(m_high.data() + next, count, part.high.data());
            std::copy_n(m_low.data() + next, part.low.size(), part.low.data());
            at += count;
        }
    }

private:
    static constexpr std::size_t kBlock = (std::size_t{1} << 20) - 3;
    static constexpr std::int64_t kStride = 400'009; // between groups

    std::vector<std::uint16_t> m_high;
    std::vector<std::int16_t> m_low;
};

} // namespace

Status installCheapWeights(PlainRun& run)
{
    const auto weights = madeWeights(run.table(), CheapNumbers(run.spec().config.initializerRange));
    return installMaster(run.executor(), run.memory(), *weights);
}

std::vector<MicroBatchData> randomBatch(std::int64_t vocab, const MicroShape& micro)
{
    const auto length = static_cast<std::size_t>(micro.seqLen) + 1;
    std::vector<MicroBatchData> micros(static_cast<std::size_t>(micro.microBatches));
    std::vector<TokenSequence> sequences(static_cast<std::size_t>(micro.microBatch));
    std::uint64_t number = 0;
    for (MicroBatchData& data : micros) {
        for (TokenSequence& sequence : sequences) {
            sequence.tokens.resize(length);
            sequence.trained.assign(length, 1);
            for (TokenId& id : sequence.tokens) {
                const std::uint32_t word = philox(kInputSeed + 1, number++)[0];
                id = static_cast<TokenId>(word % static_cast<std::uint32_t>(vocab));
            }
        }
        fillMicroBatch(sequences, {micro.seqLen, micro.microBatch, micro.microBatches}, data);
    }
    return micros;
}

} // namespace mr
