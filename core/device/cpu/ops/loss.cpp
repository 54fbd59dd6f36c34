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

template <typename T>
void gradientRow(
    const CrossEntropyArgs& args, const float* logits, T* grad, float top, float factor) noexcept
{
    const std::int64_t n = args.logits.dims[1];
    const float inverseCap = args.softcap > 0.0F ? 1.0F / args.softcap : 0.0F;
#pragma GCC ivdep // grad may be logits, element for element
    for (std::int64_t i = 0; i < n; ++i)
        grad[i] = fromFloat<T>(factor * expOf(logits[i] - top) * slopeOf(logits[i], inverseCap));
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
    // softmax - 1 of the target would cancel if it were stored first: form it in one piece.
    const float inverseCap = args.softcap > 0.0F ? 1.0F / args.softcap : 0.0F;
    const float atTarget =
        args.scale * (expOf(targetLogit - top) / total - 1.0F) * slopeOf(targetLogit, inverseCap);
    gradientRow(args, logits, grad, top, args.scale / total);
    grad[target] = fromFloat<T>(atTarget);
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
    const std::int64_t rows = args.logits.dims[0];
    const std::int64_t perItem = rowsPerItem(args.logits.dims[1]);
    withType(args.gradLogits.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        forBlocks(pool, rows, perItem, [&](std::int64_t r, std::int64_t end) {
            for (; r < end; ++r)
                lossRow<T>(args, r);
        });
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
