#include "core/device/cpu/ops/kernels.h"
#include "core/device/cpu/ops/norm_rows.h"

#include <algorithm>
#include <type_traits>

namespace mr::cpu {

namespace {

constexpr std::int64_t kConvStrip = 64; // channels of an item
constexpr std::int64_t kConvHalo = kMostTaps - 1;

using StripRow = float[kConvStrip];

// Rows of one strip of channels; row t lies at index t - first + kConvHalo. Channels past the last
// are zero.
struct StripRows {
    StripRow rows[kRecurrentRows + 2 * kConvHalo];
    std::int64_t first;

    float* at(std::int64_t t) noexcept { return rows[t - first + kConvHalo]; }
};

// Channels [begin, begin + count) of a call, for both directions.
template <typename T>
class ConvStrip
{
public:
    template <typename Args>
    ConvStrip(const Args& args, std::int64_t strip, std::int64_t first) noexcept
        : m_x(args.x.template as<const T>() + args.firstColumn + strip * kConvStrip)
        , m_from(args.documentFrom.template as<const std::int32_t>())
        , m_rows(args.x.dims[0])
        , m_cols(args.x.dims[1])
        , m_taps(args.weight.dims[1])
        , m_begin(strip * kConvStrip)
        , m_count(std::min(kConvStrip, args.weight.dims[0] - m_begin))
    {
        const T* weight = args.weight.template as<const T>() + m_begin * m_taps;
        for (std::int64_t j = 0; j < m_taps; ++j)
            for (std::int64_t c = 0; c < kConvStrip; ++c)
                m_weight[j][c] = c < m_count ? toFloat(weight[c * m_taps + j]) : 0.0F;
        m_window.first = first;
    }

    std::int64_t taps() const noexcept { return m_taps; }
    std::int64_t begin() const noexcept { return m_begin; }
    std::int64_t count() const noexcept { return m_count; }
    std::int64_t rows() const noexcept { return m_rows; }
    std::int64_t documentOf(std::int64_t t) const noexcept { return m_from[t]; }
    const float* weight(std::int64_t tap) const noexcept { return m_weight[tap]; }
    float* x(std::int64_t t) noexcept { return m_window.at(t); }

    void load(const T* from, float* to) const noexcept
    {
        if (m_count == kConvStrip) { // a loop of constant length
            for (std::int64_t c = 0; c < kConvStrip; ++c)
                to[c] = toFloat(from[c]);
            return;
        }
        for (std::int64_t c = 0; c < kConvStrip; ++c)
            to[c] = c < m_count ? toFloat(from[c]) : 0.0F;
    }

    void store(const float* sum, T* to) const noexcept
    {
        for (std::int64_t c = 0; c < m_count; ++c)
            to[c] = fromFloat<T>(sum[c]);
    }

    // Inputs of rows [from, end), those before row 0 from `history` (K - 1, channels) if there is.
    void loadInputs(std::int64_t from, std::int64_t end, const T* history) noexcept
    {
        for (std::int64_t t = from; t < end; ++t) {
            if (t >= 0)
                load(m_x + t * m_cols, m_window.at(t));
            else if (history)
                load(history + (m_taps - 1 + t) * m_historyColumns + m_begin, m_window.at(t));
        }
    }

    void setHistoryColumns(std::int64_t channels) noexcept { m_historyColumns = channels; }

    // First tap of row t that lies at or behind row `limit`.
    std::int64_t firstTap(std::int64_t t, std::int64_t limit) const noexcept
    {
        return std::max<std::int64_t>(0, m_taps - 1 - (t - limit));
    }

    // c[t], from rows at or behind `limit`.
    void convolve(std::int64_t t, std::int64_t limit, float* sum) noexcept
    {
        std::fill(sum, sum + kConvStrip, 0.0F);
        for (std::int64_t j = firstTap(t, limit); j < m_taps; ++j) {
            const float* x = m_window.at(t - m_taps + 1 + j);
            const float* weight = m_weight[j];
            for (std::int64_t c = 0; c < kConvStrip; ++c)
                sum[c] = std::fma(weight[c], x[c], sum[c]);
        }
    }

private:
    const T* m_x;
    const std::int32_t* m_from;
    std::int64_t m_rows, m_cols, m_taps, m_begin, m_count;
    std::int64_t m_historyColumns = 0;
    float m_weight[kMostTaps][kConvStrip];
    StripRows m_window;
};

template <typename T>
void forwardStrip(const CausalConvArgs& args, std::int64_t block, std::int64_t strip) noexcept
{
    const std::int64_t first = block * kRecurrentRows;
    ConvStrip<T> conv(args, strip, first);
    const std::int64_t end = std::min(conv.rows(), first + kRecurrentRows);
    const std::int64_t before = conv.taps() - 1;
    conv.setHistoryColumns(args.out.dims[1]);
    conv.loadInputs(first - before, end, args.continues ? args.history.as<const T>() : nullptr);
    for (std::int64_t t = first; t < end; ++t) {
        const std::int64_t document = conv.documentOf(t);
        float sum[kConvStrip];
        conv.convolve(t, args.continues && document == 0 ? -before : document, sum);
        if (args.silu)
            for (std::int64_t c = 0; c < kConvStrip; ++c)
                sum[c] = sum[c] * sigmoid(sum[c]);
        conv.store(sum, args.out.as<T>() + t * args.out.dims[1] + conv.begin());
    }
}

// The inputs before the row that follows the last; T > 0.
template <typename T>
void keepHistory(const CausalConvArgs& args) noexcept
{
    const std::int64_t rows = args.x.dims[0];
    const std::int64_t channels = args.out.dims[1];
    const std::int64_t before = args.weight.dims[1] - 1;
    const std::int64_t document = args.documentFrom.as<const std::int32_t>()[rows - 1];
    T* history = args.history.as<T>();
    for (std::int64_t i = 0; i < before; ++i) { // ascending: row i comes from a row behind it
        const std::int64_t t = rows - before + i;
        const T* x = args.x.as<const T>() + t * args.x.dims[1] + args.firstColumn;
        T* to = history + i * channels;
        if (t >= document)
            std::copy(x, x + channels, to);
        else if (t < 0 && document == 0 && args.continues)
            std::copy(history + (before + t) * channels, history + (before + t + 1) * channels, to);
        else
            std::fill(to, to + channels, fromFloat<T>(0.0F));
    }
}

// The gradient of c[t] in `grad`, which holds that of out[t].
void throughSilu(const float* sum, float* grad) noexcept
{
    for (std::int64_t c = 0; c < kConvStrip; ++c) {
        const float s = sigmoid(sum[c]);
        grad[c] = grad[c] * (s * (1.0F + sum[c] * (1.0F - s)));
    }
}

template <typename T>
class BackwardStrip
{
public:
    BackwardStrip(
        const CausalConvBackwardArgs& args, std::int64_t block, std::int64_t strip) noexcept
        : m_args(args)
        , m_first(block * kRecurrentRows)
        , m_conv(args, strip, m_first)
        , m_end(std::min(m_conv.rows(), m_first + kRecurrentRows))
    {
        m_grad.first = m_first;
    }

    void run(float* partial) noexcept
    {
        const std::int64_t halo = std::min(m_conv.rows(), m_end + m_conv.taps() - 1);
        m_conv.loadInputs(std::max<std::int64_t>(0, m_first - m_conv.taps() + 1), halo, nullptr);
        for (std::int64_t t = m_first; t < halo; ++t)
            makeGradient(t);
        for (std::int64_t t = m_first; t < m_end; ++t)
            storeInputGradient(t);
        for (std::int64_t j = 0; j < m_conv.taps(); ++j)
            sumTap(j, partial + m_conv.begin() * m_conv.taps() + j);
    }

private:
    // The gradient of the convolution's sum.
    void makeGradient(std::int64_t t) noexcept
    {
        const std::int64_t channels = m_args.gradOut.dims[1];
        float* grad = m_grad.at(t);
        m_conv.load(m_args.gradOut.as<const T>() + t * channels + m_conv.begin(), grad);
        if (!m_args.silu)
            return;
        float sum[kConvStrip];
        m_conv.convolve(t, m_conv.documentOf(t), sum);
        throughSilu(sum, grad);
    }

    void storeInputGradient(std::int64_t t) noexcept
    {
        float sum[kConvStrip] = {};
        for (std::int64_t j = 0; j < m_conv.taps(); ++j) {
            if (t + j >= m_conv.rows() || m_conv.documentOf(t + j) > t)
                break;
            const float* grad = m_grad.at(t + j);
            const float* weight = m_conv.weight(m_conv.taps() - 1 - j);
            for (std::int64_t c = 0; c < kConvStrip; ++c)
                sum[c] = std::fma(weight[c], grad[c], sum[c]);
        }
        T* to =
            m_args.gradX.as<T>() + t * m_args.gradX.dims[1] + m_args.firstColumn + m_conv.begin();
        m_conv.store(sum, to);
    }

    void sumTap(std::int64_t tap, float* to) noexcept
    {
        float sum[kConvStrip] = {};
        for (std::int64_t t = m_first; t < m_end; ++t) {
            if (tap < m_conv.firstTap(t, m_conv.documentOf(t)))
                continue;
            const float* grad = m_grad.at(t);
            const float* x = m_conv.x(t - m_conv.taps() + 1 + tap);
            for (std::int64_t c = 0; c < kConvStrip; ++c)
                sum[c] = std::fma(grad[c], x[c], sum[c]);
        }
        for (std::int64_t c = 0; c < m_conv.count(); ++c)
            to[c * m_conv.taps()] = sum[c];
    }

    const CausalConvBackwardArgs& m_args;
    std::int64_t m_first;
    ConvStrip<T> m_conv;
    std::int64_t m_end;
    StripRows m_grad;
};

// fn(tag, block, strip) over blocks of rows and strips of channels.
template <typename F>
void forStrips(const TensorView& x, std::int64_t channels, ThreadPool& pool, F&& fn)
{
    const std::int64_t strips = (channels + kConvStrip - 1) / kConvStrip;
    withType(x.dtype, [&](auto* tag) {
        pool.parallelFor(recurrentBlocks(x.dims[0]) * strips,
            [&](std::int64_t item) { fn(tag, item / strips, item % strips); });
    });
}

} // namespace

void causalConv(const CausalConvArgs& args, ThreadPool& pool)
{
    forStrips(
        args.x, args.out.dims[1], pool, [&](auto* tag, std::int64_t block, std::int64_t strip) {
            forwardStrip<std::remove_pointer_t<decltype(tag)>>(args, block, strip);
        });
    if (args.history.data && args.x.dims[0] > 0)
        withType(args.x.dtype,
            [&](auto* tag) { keepHistory<std::remove_pointer_t<decltype(tag)>>(args); });
}

void causalConvBackward(const CausalConvBackwardArgs& args, ThreadPool& pool)
{
    const std::int64_t cols = args.partial.dims[1];
    forStrips(
        args.x, args.gradOut.dims[1], pool, [&](auto* tag, std::int64_t block, std::int64_t strip) {
            using T = std::remove_pointer_t<decltype(tag)>;
            BackwardStrip<T>(args, block, strip).run(args.partial.as<float>() + block * cols);
        });
    TensorView flat = args.gradWeight;
    flat.rank = 1;
    flat.dims = {cols};
    forBlocks(pool, cols, 1024, [&](std::int64_t first, std::int64_t end) {
        joinNormPartials(args.partial, flat, args.accumulate, first, end);
    });
}

} // namespace mr::cpu
