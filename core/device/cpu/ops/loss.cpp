#include "core/device/cpu/ops/kernels.h"
#include "core/device/cpu/ops/lanes.h"

namespace mr::cpu {

namespace {

// Exponentials are summed by chunks of this many, then the chunks in order.
constexpr std::int64_t kChunk = 512;

float sumOfExponentials(const float* logits, std::int64_t n, float top) noexcept
{
    float chunk[kChunk];
    float total = 0.0F;
    for (std::int64_t first = 0; first < n; first += kChunk) {
        const std::int64_t count = std::min(kChunk, n - first);
        for (std::int64_t i = 0; i < count; ++i)
            chunk[i] = expOf(logits[first + i] - top);
        total += sumLanes(chunk, count);
    }
    return total;
}

// d(softcap(x)) / dx where the logit is softcap(x); 1 without a cap.
float slopeOf(float logit, float inverseCap) noexcept
{
    const float t = logit * inverseCap;
    return std::fma(-t, t, 1.0F);
}

float inverseOf(float cap) noexcept
{
    return cap > 0.0F ? 1.0F / cap : 0.0F;
}

// The softmax of a row, and how its gradient is formed.
struct RowSoftmax {
    float top = 0.0F;
    float total = 0.0F;
    float scale = 1.0F;
    float inverseCap = 0.0F;
};

template <typename T>
void gradientRow(const RowSoftmax& row, const float* logits, std::int64_t n, T* grad) noexcept
{
    const float top = row.top;
    const float inverseCap = row.inverseCap;
    const float factor = row.scale / row.total;
#pragma GCC ivdep // grad may be logits, element for element
    for (std::int64_t i = 0; i < n; ++i)
        grad[i] = fromFloat<T>(factor * expOf(logits[i] - top) * slopeOf(logits[i], inverseCap));
}

// softmax - 1 of the target would cancel if it were stored first: form it in one piece.
float gradientAtTarget(const RowSoftmax& row, float logit) noexcept
{
    return row.scale * (expOf(logit - row.top) / row.total - 1.0F) * slopeOf(logit, row.inverseCap);
}

template <typename T>
void lossRow(const CrossEntropyArgs& args, std::int64_t row) noexcept
{
    const std::int64_t n = args.logits.dims[1];
    const float* logits = args.logits.as<const float>() + row * n;
    const std::int32_t target = args.targets.as<const std::int32_t>()[row];
    T* grad = args.gradLogits.data ? args.gradLogits.as<T>() + row * n : nullptr;
    float& loss = args.losses.as<float>()[row];
    if (target < 0) {
        loss = 0.0F;
        if (grad)
            std::fill(grad, grad + n, fromFloat<T>(0.0F));
        return;
    }
    const float top = maxOf(logits, n);
    const float total = sumOfExponentials(logits, n, top);
    const float targetLogit = logits[target];
    loss = std::log(total) + (top - targetLogit);
    if (!grad)
        return;
    const RowSoftmax softmax{top, total, args.scale, inverseOf(args.softcap)};
    const float atTarget = gradientAtTarget(softmax, targetLogit);
    gradientRow(softmax, logits, n, grad);
    grad[target] = fromFloat<T>(atTarget);
}

void softmaxPartRow(const SoftmaxPartArgs& args, std::int64_t row) noexcept
{
    const std::int64_t n = args.logits.dims[1];
    const float* logits = args.logits.as<const float>() + row * n;
    const std::int64_t at = row * args.tops.dims[1] + args.part;
    const float top = maxOf(logits, n);
    args.tops.as<float>()[at] = top;
    args.sums.as<float>()[at] = sumOfExponentials(logits, n, top);
    const std::int64_t column = args.targets.as<const std::int32_t>()[row] - args.first;
    if (column >= 0 && column < n)
        args.targetLogits.as<float>()[row] = logits[column];
}

void joinSoftmaxRow(const JoinSoftmaxArgs& args, std::int64_t row) noexcept
{
    const std::int64_t parts = args.tops.dims[1];
    const float* tops = args.tops.as<const float>() + row * parts;
    const float* sums = args.sums.as<const float>() + row * parts;
    float top = tops[0];
    for (std::int64_t p = 1; p < parts; ++p)
        top = tops[p] > top ? tops[p] : top;
    float total = 0.0F;
    for (std::int64_t p = 0; p < parts; ++p)
        total = std::fma(sums[p], expOf(tops[p] - top), total);
    args.top.as<float>()[row] = top;
    args.total.as<float>()[row] = total;
    args.losses.as<float>()[row] =
        args.targets.as<const std::int32_t>()[row] < 0
            ? 0.0F
            : std::log(total) + (top - args.targetLogits.as<const float>()[row]);
}

template <typename T>
void softmaxGradientRow(const SoftmaxGradientArgs& args, std::int64_t row) noexcept
{
    const std::int64_t n = args.logits.dims[1];
    const float* logits = args.logits.as<const float>() + row * n;
    T* grad = args.gradLogits.as<T>() + row * n;
    const std::int32_t target = args.targets.as<const std::int32_t>()[row];
    if (target < 0) {
        std::fill(grad, grad + n, fromFloat<T>(0.0F));
        return;
    }
    const RowSoftmax softmax{args.top.as<const float>()[row], args.total.as<const float>()[row],
        args.scale, inverseOf(args.softcap)};
    const std::int64_t column = target - args.first;
    const bool isHere = column >= 0 && column < n;
    const float atTarget = isHere ? gradientAtTarget(softmax, logits[column]) : 0.0F;
    gradientRow(softmax, logits, n, grad);
    if (isHere)
        grad[column] = fromFloat<T>(atTarget);
}

// `row`(r) for all rows, each of so many columns.
template <typename Row>
void forRows(ThreadPool& pool, const TensorView& logits, Row row)
{
    forBlocks(
        pool, logits.dims[0], rowsPerItem(logits.dims[1]), [&](std::int64_t r, std::int64_t end) {
            for (; r < end; ++r)
                row(r);
        });
}

} // namespace

void softcap(const SoftcapArgs& args, ThreadPool& pool)
{
    auto* x = args.x.as<float>();
    const float cap = args.cap;
    forBlocks(pool, args.x.count(), kElementBlock, [&](std::int64_t first, std::int64_t end) {
        for (std::int64_t i = first; i < end; ++i)
            x[i] = cap * tanhOf(x[i] / cap);
    });
}

void crossEntropy(const CrossEntropyArgs& args, ThreadPool& pool)
{
    withType(args.gradLogits.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        forRows(pool, args.logits, [&](std::int64_t row) { lossRow<T>(args, row); });
    });
}

void softmaxPart(const SoftmaxPartArgs& args, ThreadPool& pool)
{
    forRows(pool, args.logits, [&](std::int64_t row) { softmaxPartRow(args, row); });
}

void joinSoftmax(const JoinSoftmaxArgs& args, ThreadPool& pool)
{
    forRows(pool, args.tops, [&](std::int64_t row) { joinSoftmaxRow(args, row); });
}

void softmaxGradient(const SoftmaxGradientArgs& args, ThreadPool& pool)
{
    withType(args.gradLogits.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        forRows(pool, args.logits, [&](std::int64_t row) { softmaxGradientRow<T>(args, row); });
    });
}

void sumValues(const SumArgs& args)
{
    double total = 0.0;
    for (std::int64_t i = 0; i < args.values.dims[0]; ++i)
        total += static_cast<double>(args.values.as<const float>()[i]);
    args.total.as<double>()[args.index] = total;
}

} // namespace mr::cpu
