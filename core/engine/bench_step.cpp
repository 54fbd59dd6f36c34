#include "core/engine/bench_step.h"

#include "core/device/bench_limits.h"
#include "core/engine/exact_check.h"

#include <array>

namespace mr {
namespace {

struct Case {
    const char* name;
    std::int64_t hidden, intermediate, layers, vocab, seqLen;
};

constexpr std::array<Case, 2> kCases{{
    {"step 6M parameters, 2 x 256 tokens", 256, 688, 6, 4096, 256},
    {"step 50M parameters, 2 x 512 tokens", 640, 1728, 8, 16384, 512},
}};

ModelConfig configOf(const Case& c)
{
    ModelConfig config = tinyConfig(true);
    config.hidden = c.hidden;
    config.intermediate = c.intermediate;
    config.layers = c.layers;
    config.headDim = 64;
    config.heads = c.hidden / 64;
    config.kvHeads = config.heads;
    config.vocab = c.vocab;
    config.maxPositions = c.seqLen;
    config.initializerRange = 0.02;
    return config;
}

} // namespace

Result<std::vector<BenchRow>> benchStep(Device& device)
{
    constexpr double kGiga = 1e9;
    std::vector<BenchRow> rows;
    for (const Case& c : kCases) {
        for (const DType compute : {DType::F32, DType::BF16}) {
            TinyRun run;
            run.config = configOf(c);
            run.seqLen = c.seqLen;
            run.compute = compute;
            run.accumulate = 1;
            auto result = runTiny(device, run);
            if (!result.ok())
                return result.status();
            BenchRow row;
            row.name = std::string(c.name) + (compute == DType::F32 ? ", fp32" : ", bf16");
            row.unit = "GFLOP/s";
            row.ours = result.value().stepFlops / result.value().stepSeconds / kGiga;
            row.limit = peakFlops(compute, device.info().threads) / kGiga;
            row.ratio = row.ours / row.limit;
            rows.push_back(row);
        }
    }
    return rows;
}

} // namespace mr
