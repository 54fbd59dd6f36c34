// benchMatmul and benchAttention: the rates of the matrix units.

#include "core/prove/bench.h"
#include "core/prove/bench_peaks.h"
#include "core/prove/bench_rig.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <span>

namespace mr {
namespace {

struct ProductShape {
    std::int64_t tokens, in, out;
};

// A tiny model, a small one, and a square that fills a processor.
constexpr ProductShape kHostShapes[] = {{256, 64, 192}, {1024, 512, 1536}, {1024, 1024, 1024}};

// q, k and v; attention's output; gate and up; down: of Llamas as wide as Qwen2.5 1.5B and 3B
// and Llama 2 7B, 2,048 tokens.
constexpr ProductShape kModelShapes[] = {
    {2048, 1536, 2048},
    {2048, 1536, 1536},
    {2048, 1536, 17920},
    {2048, 8960, 1536},
    {2048, 2048, 2560},
    {2048, 2048, 2048},
    {2048, 2048, 22016},
    {2048, 11008, 2048},
    {2048, 4096, 12288},
    {2048, 4096, 4096},
    {2048, 4096, 22016},
    {2048, 11008, 4096},
};
constexpr ProductShape kModelShapesF32[] = {{2048, 2048, 2048}};

// One set of operands; several take turns, so that weights come from memory as in a step.
struct ProductOperands {
    TensorView x, weight, y, gradX, gradWeight;

    ProductOperands(BenchRig& rig, DType type, const ProductShape& s)
        : x(rig.random(type, s.tokens, s.in))
        , weight(rig.random(type, s.out, s.in))
        , y(rig.random(type, s.tokens, s.out))
        , gradX(rig.zeros(type, s.tokens, s.in))
        , gradWeight(rig.zeros(DType::F32, s.out, s.in))
    {
    }

    static std::size_t bytes(DType type, const ProductShape& s)
    {
        const std::int64_t activations = s.tokens * (2 * s.in + s.out) + s.out * s.in;
        return static_cast<std::size_t>(activations) * sizeOf(type) +
               static_cast<std::size_t>(s.out * s.in) * sizeof(float);
    }
};

void addProducts(
    BenchRig& rig, DType type, const ProductShape& s, double limit, std::vector<BenchRow>& rows)
{
    std::vector<ProductOperands> sets;
    const int count = rig.setsOf(ProductOperands::bytes(type, s));
    for (int i = 0; i < count; ++i)
        sets.emplace_back(rig, type, s);
    const auto set = [&](int call) -> const ProductOperands& {
        return sets[static_cast<std::size_t>(call % count)];
    };
    const double flops = 2.0 * static_cast<double>(s.tokens * s.in * s.out);
    const std::string shape =
        fmt::format(" {} {} x {} x {}", benchName(type), s.tokens, s.in, s.out);
    const auto add = [&](const char* op, const BenchRig::Enqueue& enqueue) {
        const double seconds = rig.time(enqueue).median;
        rows.push_back(benchRow(op + shape, flops, seconds, limit, "GFLOP/s"));
    };
    Ops& ops = rig.ops();
    Stream& stream = rig.stream();
    add("linear", [&](int i) {
        const ProductOperands& o = set(i);
        return ops.linear({o.x, o.weight, {}, o.y}, stream);
    });
    add("gradX", [&](int i) {
        const ProductOperands& o = set(i);
        return ops.linearBackwardInput({o.y, o.weight, o.gradX}, stream);
    });
    add("gradWeight", [&](int i) {
        const ProductOperands& o = set(i);
        return ops.linearBackwardWeight({o.y, o.x, o.gradWeight, {}, {}, false}, stream);
    });
}

struct AttentionShape {
    std::int64_t tokens;
    int heads, kvHeads, headDim;

    std::int64_t columns() const { return std::int64_t{heads + 2 * kvHeads} * headDim; }
};

Status addAttention(
    Device& device, DType type, const AttentionShape& s, double limit, std::vector<BenchRow>& rows)
{
    BenchRig rig(device);
    const std::int64_t outColumns = std::int64_t{s.heads} * s.headDim;
    const TensorView qkv = rig.random(type, s.tokens, s.columns());
    const TensorView visibleRow = rig.zeros(DType::I32, 1, s.tokens); // one document
    const TensorView visible = vectorView(visibleRow.data, DType::I32, s.tokens);
    const TensorView out = rig.zeros(type, s.tokens, outColumns);
    const TensorView gradOut = rig.random(type, s.tokens, outColumns);
    const TensorView lse = rig.zeros(DType::F32, s.tokens, s.heads);
    const TensorView delta = rig.zeros(DType::F32, s.tokens, s.heads);
    const TensorView gradQkv = rig.zeros(type, s.tokens, s.columns());
    const std::int64_t partials = attentionPartials(s.tokens, s.heads, s.kvHeads, s.headDim);
    const TensorView partialRow = rig.zeros(DType::F32, 1, std::max<std::int64_t>(partials, 1));
    const TensorView partial = vectorView(partialRow.data, DType::F32, partials);
    const float scale = 1.0F / std::sqrt(static_cast<float>(s.headDim));
    const auto tokens = static_cast<double>(s.tokens);
    const double flops = 4.0 * s.heads * s.headDim * 0.5 * tokens * tokens;
    const double forward =
        rig.time([&](int) {
               return rig.ops().attention(
                   {qkv, visible, out, lse, s.heads, s.kvHeads, s.headDim, scale}, rig.stream());
           })
            .median;
    const double backward = rig.time([&](int) {
                                   return rig.ops().attentionBackward(
                                       {qkv, visible, out, lse, gradOut, delta, gradQkv, s.heads,
                                           s.kvHeads, s.headDim, scale, 0.0F, partial},
                                       rig.stream());
                               })
                                .median;
    MR_TRY(rig.status());
    const std::string shape = fmt::format(" {} {} tokens, {}/{} heads of {}", benchName(type),
        s.tokens, s.heads, s.kvHeads, s.headDim);
    rows.push_back(benchRow("attention" + shape, flops, forward, limit, "GFLOP/s"));
    rows.push_back(benchRow("attentionBackward" + shape, 2.5 * flops, backward, limit, "GFLOP/s"));
    return {};
}

} // namespace

Result<std::vector<BenchRow>> benchMatmul(Device& device)
{
    const bool onHost = device.info().threads > 0;
    std::vector<BenchRow> rows;
    for (const DType type : benchTypes(device.info())) {
        MR_ASSIGN(auto limit, matrixPeak(device, type));
        std::span<const ProductShape> shapes = kHostShapes;
        if (!onHost)
            shapes = type == DType::F32 ? std::span<const ProductShape>(kModelShapesF32)
                                        : std::span<const ProductShape>(kModelShapes);
        for (const ProductShape& s : shapes) {
            if (ProductOperands::bytes(type, s) > device.info().memoryBytes / 2)
                continue; // a small card
            BenchRig rig(device);
            addProducts(rig, type, s, limit, rows);
            MR_TRY(rig.status());
        }
    }
    return rows;
}

Result<std::vector<BenchRow>> benchAttention(Device& device)
{
    const bool onHost = device.info().threads > 0;
    std::vector<BenchRow> rows;
    for (const DType type : benchTypes(device.info())) {
        // The host forms scores and sums in F32 for both types.
        MR_ASSIGN(auto limit, matrixPeak(device, onHost ? DType::F32 : type));
        std::vector<AttentionShape> shapes = {
            {4096, 32, 8, 128}, {4096, 32, 8, 64}, {2048, 12, 2, 128}, {2048, 8, 4, 256}};
        if (onHost)
            shapes = {{1024, 8, 4, 64}};
        else if (type == DType::F32) // a path for tests, not for speed
            shapes = {{1024, 32, 8, 64}};
        for (const AttentionShape& s : shapes)
            MR_TRY(addAttention(device, type, s, limit, rows));
    }
    return rows;
}

} // namespace mr
