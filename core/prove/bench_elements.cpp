// benchElements: the ops that only memory limits, one function each.

#include "core/prove/bench.h"
#include "core/prove/bench_peaks.h"
#include "core/prove/bench_rig.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <random>

namespace mr {
namespace {

// Rows and columns of all tensors; counts that other ops need follow from them.
struct Sizes {
    DType type = DType::BF16;
    std::int64_t tokens = 0;
    std::int64_t hidden = 0;

    std::int64_t count() const { return tokens * hidden; }
    double bytes() const
    {
        return static_cast<double>(count()) * static_cast<double>(sizeOf(type));
    }
    static constexpr std::int64_t kHeadDim = 64;
    static constexpr std::int64_t kMostPositions = 4096;
    static constexpr std::int64_t kChunkRows = 1024; // rows of logits; a step takes them in chunks
};

Sizes sizesOf(const BenchRig& rig, DType type)
{
    // An element of 512 bytes of memory: the largest op holds some ten tensors of F32.
    const std::int64_t fits = static_cast<std::int64_t>(rig.memoryBytes() / 512);
    const std::int64_t most = std::int64_t{1} << (rig.onHost() ? 24 : 27);
    Sizes sizes;
    sizes.type = type;
    sizes.hidden = rig.onHost() ? 1024 : 4096;
    sizes.tokens = std::max<std::int64_t>(64, std::min(fits, most) / sizes.hidden);
    return sizes;
}

struct Call {
    BenchRig::Enqueue enqueue;
    double bytes = 0.0; // read once plus written once
};

Call rmsNorm(BenchRig& rig, const Sizes& s)
{
    RmsNormArgs args;
    args.x = rig.random(s.type, s.tokens, s.hidden);
    args.residual = rig.random(s.type, s.tokens, s.hidden);
    args.weight = rig.randomVector(s.type, s.hidden);
    args.sum = rig.zeros(s.type, s.tokens, s.hidden);
    args.out = rig.zeros(s.type, s.tokens, s.hidden);
    args.rstd = vectorView(rig.zeros(DType::F32, 1, s.tokens).data, DType::F32, s.tokens);
    return {[&rig, args](int) { return rig.ops().rmsNorm(args, rig.stream()); },
        4.0 * s.bytes() + 4.0 * static_cast<double>(s.tokens)};
}

Call rmsNormBackward(BenchRig& rig, const Sizes& s)
{
    RmsNormBackwardArgs args;
    args.gradOut = rig.random(s.type, s.tokens, s.hidden);
    args.x = rig.random(s.type, s.tokens, s.hidden);
    args.weight = rig.randomVector(s.type, s.hidden);
    args.rstd = rig.randomVector(DType::F32, s.tokens, 0.5F, 1.5F);
    args.gradResidual = rig.random(s.type, s.tokens, s.hidden);
    args.gradX = rig.zeros(s.type, s.tokens, s.hidden);
    args.gradWeight = vectorView(rig.zeros(DType::F32, 1, s.hidden).data, DType::F32, s.hidden);
    const std::int64_t blocks = (s.tokens + kNormRowBlock - 1) / kNormRowBlock;
    args.partial = rig.zeros(DType::F32, blocks, s.hidden);
    return {[&rig, args](int) { return rig.ops().rmsNormBackward(args, rig.stream()); },
        4.0 * s.bytes() + 4.0 * static_cast<double>(s.tokens + s.hidden)};
}

Call swiglu(BenchRig& rig, const Sizes& s)
{
    const SwigluArgs args{rig.random(s.type, s.tokens, 2 * s.hidden, -4.0F, 4.0F),
        rig.zeros(s.type, s.tokens, s.hidden)};
    return {[&rig, args](int) { return rig.ops().swiglu(args, rig.stream()); }, 3.0 * s.bytes()};
}

Call swigluBackward(BenchRig& rig, const Sizes& s)
{
    const SwigluBackwardArgs args{rig.random(s.type, s.tokens, 2 * s.hidden, -4.0F, 4.0F),
        rig.random(s.type, s.tokens, s.hidden), rig.zeros(s.type, s.tokens, 2 * s.hidden)};
    return {[&rig, args](int) { return rig.ops().swigluBackward(args, rig.stream()); },
        5.0 * s.bytes()};
}

// Heads of q or k, `heads` of each token.
HeadNorm headNorm(BenchRig& rig, const Sizes& s, std::int64_t heads)
{
    HeadNorm norm;
    norm.projected = rig.random(s.type, s.tokens, heads * Sizes::kHeadDim);
    norm.rstd = rig.random(DType::F32, s.tokens, heads, 0.5F, 1.5F);
    norm.weight = rig.randomVector(s.type, Sizes::kHeadDim);
    return norm;
}

// Half of the columns are query heads, a quarter each keys and values.
Call rope(BenchRig& rig, const Sizes& s)
{
    RopeArgs args;
    args.x = rig.random(s.type, s.tokens, s.hidden);
    const std::int64_t positions = std::min(s.tokens, Sizes::kMostPositions);
    args.positions = rig.ids(s.tokens, positions);
    args.cosTable = rig.random(DType::F32, positions, Sizes::kHeadDim / 2);
    args.sinTable = rig.random(DType::F32, positions, Sizes::kHeadDim / 2);
    args.heads = static_cast<int>(s.hidden / Sizes::kHeadDim / 4 * 3);
    args.headDim = Sizes::kHeadDim;
    args.rotaryDim = Sizes::kHeadDim;
    return {[&rig, args](int) { return rig.ops().rope(args, rig.stream()); },
        2.0 * 0.75 * s.bytes() + 4.0 * static_cast<double>(s.tokens)};
}

// Fills the arguments that forward and backward of normed heads share; half of the columns are
// query heads, a quarter each keys and values. Returns the bytes of a call: three times those of q
// and k, and beside them.
template <typename Args>
double fillHeads(BenchRig& rig, const Sizes& s, Args& args)
{
    const std::int64_t positions = std::min(s.tokens, Sizes::kMostPositions);
    args.kvHeads = static_cast<int>(s.hidden / Sizes::kHeadDim / 4);
    args.heads = 2 * args.kvHeads;
    args.headDim = Sizes::kHeadDim;
    args.rotaryDim = Sizes::kHeadDim;
    args.queries = headNorm(rig, s, args.heads);
    args.keys = headNorm(rig, s, args.kvHeads);
    args.positions = rig.ids(s.tokens, positions);
    args.cosTable = rig.random(DType::F32, positions, Sizes::kHeadDim / 2);
    args.sinTable = rig.random(DType::F32, positions, Sizes::kHeadDim / 2);
    const double rows = static_cast<double>(s.tokens) * (args.heads + args.kvHeads);
    return 3.0 * 0.75 * s.bytes() + 4.0 * (static_cast<double>(s.tokens) + rows);
}

Call headNormRope(BenchRig& rig, const Sizes& s)
{
    HeadNormRopeArgs args;
    args.qkv = rig.random(s.type, s.tokens, s.hidden);
    const double bytes = fillHeads(rig, s, args);
    return {[&rig, args](int) { return rig.ops().headNormRope(args, rig.stream()); }, bytes};
}

Call headNormRopeBackward(BenchRig& rig, const Sizes& s)
{
    HeadNormRopeBackwardArgs args;
    args.gradQkv = rig.random(s.type, s.tokens, s.hidden);
    const double bytes = fillHeads(rig, s, args);
    for (TensorView* gradient : {&args.gradQueryWeight, &args.gradKeyWeight})
        *gradient = rig.randomVector(DType::F32, Sizes::kHeadDim);
    args.partial = rig.zeros(
        DType::F32, headNormPartials(s.tokens, args.heads, args.kvHeads), Sizes::kHeadDim);
    return {
        [&rig, args](int) { return rig.ops().headNormRopeBackward(args, rig.stream()); }, bytes};
}

// The vocabulary that gives a chunk of logits as many elements as the other tensors.
Call crossEntropy(BenchRig& rig, const Sizes& s)
{
    const std::int64_t rows = std::min(Sizes::kChunkRows, s.tokens);
    const std::int64_t vocab = s.count() / rows;
    CrossEntropyArgs args;
    args.logits = rig.random(DType::F32, rows, vocab, -8.0F, 8.0F);
    args.targets = rig.ids(rows, vocab);
    args.losses = vectorView(rig.zeros(DType::F32, 1, rows).data, DType::F32, rows);
    args.gradLogits = rig.zeros(s.type, rows, vocab);
    args.scale = 1.0F / static_cast<float>(rows);
    return {[&rig, args](int) { return rig.ops().crossEntropy(args, rig.stream()); },
        4.0 * static_cast<double>(s.count()) + s.bytes()};
}

Call add(BenchRig& rig, const Sizes& s)
{
    const AddArgs args{rig.random(s.type, s.tokens, s.hidden),
        rig.random(s.type, s.tokens, s.hidden), rig.zeros(s.type, s.tokens, s.hidden)};
    return {[&rig, args](int) { return rig.ops().add(args, rig.stream()); }, 3.0 * s.bytes()};
}

Call dropout(BenchRig& rig, const Sizes& s)
{
    const DropoutArgs args{rig.random(s.type, s.tokens, s.hidden),
        rig.zeros(s.type, s.tokens, s.hidden), {1, 2, 0.1}, false};
    return {[&rig, args](int) { return rig.ops().dropout(args, rig.stream()); }, 2.0 * s.bytes()};
}

Call finishGradient(BenchRig& rig, const Sizes& s)
{
    const std::int64_t n = s.count();
    const FinishGradientArgs args{
        rig.randomVector(DType::F32, n), {}, vectorView(rig.zeros(s.type, 1, n).data, s.type, n)};
    return {[&rig, args](int) { return rig.ops().finishGradient(args, rig.stream()); },
        4.0 * static_cast<double>(n) + s.bytes()};
}

Call normBlocks(BenchRig& rig, const Sizes& s)
{
    constexpr std::int64_t kBlock = 1024;
    const std::int64_t blocks = (s.count() + kBlock - 1) / kBlock;
    const NormBlocksArgs args{rig.randomVector(s.type, s.count()),
        vectorView(rig.zeros(DType::F32, 1, blocks).data, DType::F32, blocks)};
    return {[&rig, args](int) { return rig.ops().normBlocks(args, rig.stream()); },
        s.bytes() + 4.0 * static_cast<double>(blocks)};
}

// Every row of the table once, in random order.
Call embed(BenchRig& rig, const Sizes& s)
{
    std::vector<std::int32_t> ids(static_cast<std::size_t>(s.tokens));
    std::iota(ids.begin(), ids.end(), 0);
    std::shuffle(ids.begin(), ids.end(), std::mt19937(1)); // NOLINT: the same in every run
    EmbedArgs args;
    args.ids =
        vectorView(rig.given(DType::I32, 1, s.tokens, ids.data()).data, DType::I32, s.tokens);
    args.table = rig.random(s.type, s.tokens, s.hidden);
    args.out = rig.zeros(s.type, s.tokens, s.hidden);
    return {[&rig, args](int) { return rig.ops().embed(args, rig.stream()); },
        2.0 * s.bytes() + 4.0 * static_cast<double>(s.tokens)};
}

Call columnEnergy(BenchRig& rig, const Sizes& s)
{
    const ColumnEnergyArgs args{rig.random(s.type, s.tokens, s.hidden),
        vectorView(rig.zeros(DType::F32, 1, s.hidden).data, DType::F32, s.hidden)};
    return {[&rig, args](int) { return rig.ops().columnEnergy(args, rig.stream()); },
        s.bytes() + 4.0 * static_cast<double>(s.hidden)};
}

// Every tenth column, the share of urgent columns.
TensorView tenthOfColumns(BenchRig& rig, const Sizes& s)
{
    std::vector<std::int32_t> columns(static_cast<std::size_t>(s.hidden / 10));
    for (std::size_t i = 0; i < columns.size(); ++i)
        columns[i] = static_cast<std::int32_t>(10 * i + i % 7);
    const auto count = static_cast<std::int64_t>(columns.size());
    return vectorView(rig.given(DType::I32, 1, count, columns.data()).data, DType::I32, count);
}

Call gatherColumns(BenchRig& rig, const Sizes& s)
{
    const TensorView columns = tenthOfColumns(rig, s);
    const GatherColumnsArgs args{rig.random(s.type, s.tokens, s.hidden), columns,
        rig.zeros(s.type, s.tokens, columns.count())};
    return {[&rig, args](int) { return rig.ops().gatherColumns(args, rig.stream()); },
        2.0 * static_cast<double>(args.out.bytes())};
}

Call scatterColumns(BenchRig& rig, const Sizes& s)
{
    const TensorView columns = tenthOfColumns(rig, s);
    const ScatterColumnsArgs args{rig.random(s.type, s.tokens, columns.count()), columns,
        rig.zeros(s.type, s.tokens, s.hidden)};
    return {[&rig, args](int) { return rig.ops().scatterColumns(args, rig.stream()); },
        2.0 * static_cast<double>(args.x.bytes())};
}

struct ElementBench {
    const char* name;
    Call (*prepare)(BenchRig&, const Sizes&);
};

constexpr ElementBench kElementBenches[] = {
    {"rmsNorm", rmsNorm},
    {"rmsNormBackward", rmsNormBackward},
    {"swiglu", swiglu},
    {"swigluBackward", swigluBackward},
    {"rope", rope},
    {"headNormRope", headNormRope},
    {"headNormRopeBackward", headNormRopeBackward},
    {"crossEntropy", crossEntropy},
    {"add", add},
    {"dropout", dropout},
    {"finishGradient", finishGradient},
    {"normBlocks", normBlocks},
    {"embed", embed},
    {"gatherColumns", gatherColumns},
    {"scatterColumns", scatterColumns},
    {"columnEnergy", columnEnergy},
};

} // namespace

Result<std::vector<BenchRow>> benchElements(Device& device)
{
    MR_ASSIGN(auto limit, memoryPeak(device));
    std::vector<BenchRow> rows;
    for (const DType type : benchTypes(device.info())) {
        for (const ElementBench& bench : kElementBenches) {
            BenchRig rig(device); // its memory is given back before the next
            const Sizes sizes = sizesOf(rig, type);
            const Call call = bench.prepare(rig, sizes);
            MR_TRY(rig.status());
            const BenchTime time = rig.time(call.enqueue);
            MR_TRY(rig.status());
            const std::string name = fmt::format("{} {} {} x {}", std::string(bench.name),
                benchName(type), sizes.tokens, sizes.hidden);
            rows.push_back(benchRow(name, call.bytes, time.median, limit, "GB/s"));
        }
    }
    return rows;
}

} // namespace mr
