// Depthwise causal convolution and its backward pass.
//
// A thread owns kConvPack adjacent channels and walks down rows, so that lanes read adjacent
// channels, inputs of the last taps and weights stay in registers, and weights are summed in order
// of rows without meeting another thread.

#include "core/device/recurrent_ops.h"
#include "gpu/ops/exact_functions.cuh"
#include "gpu/ops/launchers.h"
#include "gpu/ops/norm_rows.cuh"

namespace mr::gpu {
namespace {

constexpr int kConvThreads = 128;
constexpr int kConvRows = 64; // of a thread, forward: weights are loaded once for them
constexpr int kConvPack = 2;
constexpr auto kTaps = static_cast<int>(kMostTaps);

// x (rows, cols), weight (channels, taps), history (taps - 1, channels) or null.
template <typename T>
struct ConvTensors {
    const T* x; // at firstColumn
    const T* weight;
    const std::int32_t* documentFrom;
    const T* history; // null: nothing before row 0
    std::int64_t rows, cols, channels;
    int taps;
    bool silu;
};

// Channels of a thread: their weights, and inputs of the last kTaps rows, the newest last. Tap j of
// `taps` lies at index kTaps - taps + j of both.
template <typename T, int kPack>
struct ConvLane {
    float weight[kTaps][kPack];
    float x[kTaps][kPack];

    __device__ ConvLane(const ConvTensors<T>& a, std::int64_t channel)
    {
#pragma unroll
        for (int j = 0; j < kTaps; ++j)
            for (int k = 0; k < kPack; ++k) {
                const int tap = j - (kTaps - a.taps);
                weight[j][k] = tap >= 0 ? toFloat(a.weight[(channel + k) * a.taps + tap]) : 0.0F;
                x[j][k] = 0.0F;
            }
    }

    // Takes the input of row t, which may lie before row 0.
    __device__ void take(const ConvTensors<T>& a, std::int64_t t, std::int64_t channel)
    {
#pragma unroll
        for (int j = 0; j + 1 < kTaps; ++j)
            for (int k = 0; k < kPack; ++k)
                x[j][k] = x[j + 1][k];
        Pack<T, kPack> pack;
        const bool isThere = t >= 0 ? t < a.rows : a.history != nullptr;
        if (isThere)
            pack = loadPack<kPack>(t >= 0 ? a.x + t * a.cols + channel
                                          : a.history + (a.taps - 1 + t) * a.channels + channel);
        for (int k = 0; k < kPack; ++k)
            x[kTaps - 1][k] = isThere ? toFloat(pack.at[k]) : 0.0F;
    }

    // Whether tap index j of row t lies in its document, which starts at `document`.
    __device__ static bool isSeen(
        const ConvTensors<T>& a, std::int64_t t, std::int64_t document, int j)
    {
        return j >= kTaps - a.taps && t - (kTaps - 1) + j >= document;
    }

    __device__ void convolve(
        const ConvTensors<T>& a, std::int64_t t, std::int64_t document, float (&sum)[kPack]) const
    {
        for (int k = 0; k < kPack; ++k)
            sum[k] = 0.0F;
#pragma unroll
        for (int j = 0; j < kTaps; ++j)
            if (isSeen(a, t, document, j))
                for (int k = 0; k < kPack; ++k)
                    sum[k] = __fmaf_rn(weight[j][k], x[j][k], sum[k]);
    }
};

// Grid (channels by kConvThreads * kPack, rows by kConvRows). The first row whose inputs count is
// before row 0 where the call continues row 0's document.
template <typename T, int kPack>
__global__ void __launch_bounds__(kConvThreads) causalConvKernel(ConvTensors<T> a, T* out)
{
    const std::int64_t channel = (std::int64_t{blockIdx.y} * kConvThreads + threadIdx.x) * kPack;
    if (channel >= a.channels)
        return;
    const std::int64_t first = std::int64_t{blockIdx.x} * kConvRows;
    const std::int64_t end = min(a.rows, first + kConvRows);
    ConvLane<T, kPack> lane(a, channel);
    for (std::int64_t t = first - (a.taps - 1); t < first; ++t)
        lane.take(a, t, channel);
#pragma unroll 1
    for (std::int64_t t = first; t < end; ++t) {
        lane.take(a, t, channel);
        const std::int64_t document = a.documentFrom[t];
        float sum[kPack];
        lane.convolve(a, t, a.history && document == 0 ? -kMostTaps : document, sum);
        if (a.silu)
            for (int k = 0; k < kPack; ++k)
                sum[k] = sum[k] * exactSigmoid(sum[k]);
        storePack(out + t * a.channels + channel, roundPack<T>(sum));
    }
}

// The inputs before the row behind the last, into `history`. A thread a channel; `continues`: what
// it holds counts as rows before row 0.
template <typename T>
__global__ void __launch_bounds__(kConvThreads)
    convHistoryKernel(ConvTensors<T> a, T* history, bool continues)
{
    const std::int64_t channel = std::int64_t{blockIdx.x} * kConvThreads + threadIdx.x;
    if (channel >= a.channels)
        return;
    const std::int64_t document = a.documentFrom[a.rows - 1];
    for (int i = 0; i < a.taps - 1; ++i) { // ascending: a row comes from one behind it
        const std::int64_t t = a.rows - (a.taps - 1) + i;
        T value = fromFloat<T>(0.0F);
        if (t >= document)
            value = a.x[t * a.cols + channel];
        else if (t < 0 && document == 0 && continues)
            value = history[(a.taps - 1 + t) * a.channels + channel];
        history[i * a.channels + channel] = value;
    }
}

// gradOut (rows, channels), gradX (rows, cols) at firstColumn, partial (blocks, channels, taps).
template <typename T>
struct ConvGradients {
    ConvTensors<T> in;
    const T* gradOut;
    T* gradX;
    float* partial;
};

// The gradient of the sum at row t; zero behind the last row.
template <typename T, int kPack>
__device__ void sumGradient(const ConvGradients<T>& g, const ConvLane<T, kPack>& lane,
    std::int64_t t, std::int64_t document, std::int64_t channel, float (&grad)[kPack])
{
    const auto gradOut = loadPack<kPack>(g.gradOut + t * g.in.channels + channel);
    float sum[kPack];
    lane.convolve(g.in, t, document, sum);
    for (int k = 0; k < kPack; ++k) {
        const float s = exactSigmoid(sum[k]);
        const float slope = s * (1.0F + sum[k] * (1.0F - s));
        grad[k] = g.in.silu ? toFloat(gradOut.at[k]) * slope : toFloat(gradOut.at[k]);
    }
}

// Gradients of the inputs at the last kTaps rows, the newest first, and of the weights.
template <typename T, int kPack>
struct ConvSums {
    float x[kTaps][kPack] = {};
    float weight[kTaps][kPack] = {};

    __device__ void move()
    {
#pragma unroll
        for (int j = kTaps - 1; j > 0; --j)
            for (int k = 0; k < kPack; ++k)
                x[j][k] = x[j - 1][k];
        for (int k = 0; k < kPack; ++k)
            x[0][k] = 0.0F;
    }

    // Terms of the sum at row t; `counts`: for the weights too.
    __device__ void add(const ConvTensors<T>& a, const ConvLane<T, kPack>& lane, std::int64_t t,
        std::int64_t document, const float (&grad)[kPack], bool counts)
    {
#pragma unroll
        for (int j = 0; j < kTaps; ++j)
            if (ConvLane<T, kPack>::isSeen(a, t, document, j))
                for (int k = 0; k < kPack; ++k) {
                    float& sum = x[kTaps - 1 - j][k];
                    sum = __fmaf_rn(lane.weight[j][k], grad[k], sum);
                    if (counts)
                        weight[j][k] = __fmaf_rn(grad[k], lane.x[j][k], weight[j][k]);
                }
    }
};

// Grid (channels by kConvThreads * kPack, blocks of kRecurrentRows). A row's gradient is whole
// taps - 1 rows on, which a block reads beyond its own.
template <typename T, int kPack>
__global__ void __launch_bounds__(kConvThreads) causalConvBackwardKernel(ConvGradients<T> g)
{
    const ConvTensors<T>& a = g.in;
    const std::int64_t channel = (std::int64_t{blockIdx.y} * kConvThreads + threadIdx.x) * kPack;
    if (channel >= a.channels)
        return;
    const std::int64_t first = std::int64_t{blockIdx.x} * kRecurrentRows;
    const std::int64_t end = min(a.rows, first + kRecurrentRows);
    ConvLane<T, kPack> lane(a, channel);
    ConvSums<T, kPack> sums;
    for (std::int64_t t = first - (a.taps - 1); t < first; ++t)
        lane.take(a, t, channel);
#pragma unroll 1
    for (std::int64_t t = first; t < end + a.taps - 1; ++t) {
        lane.take(a, t, channel);
        sums.move();
        if (t < a.rows) {
            const std::int64_t document = a.documentFrom[t];
            float grad[kPack];
            sumGradient(g, lane, t, document, channel, grad);
            sums.add(a, lane, t, document, grad, t < end);
        }
        const std::int64_t done = t - (a.taps - 1);
#pragma unroll
        for (int j = 1; j < kTaps; ++j)
            if (j == a.taps - 1 && done >= first)
                storePack(g.gradX + done * a.cols + channel, roundPack<T>(sums.x[j]));
    }
    float* partial = g.partial + (std::int64_t{blockIdx.x} * a.channels + channel) * a.taps;
#pragma unroll
    for (int j = 0; j < kTaps; ++j)
        if (const int tap = j - (kTaps - a.taps); tap >= 0)
            for (int k = 0; k < kPack; ++k)
                partial[k * a.taps + tap] = sums.weight[j][k];
}

template <typename T, typename Args>
ConvTensors<T> convTensors(const Args& args, const T* history)
{
    return {args.x.template as<const T>() + args.firstColumn, args.weight.template as<const T>(),
        args.documentFrom.template as<const std::int32_t>(), history, args.x.dims[0],
        args.x.dims[1], args.weight.dims[0], static_cast<int>(args.weight.dims[1]), args.silu};
}

// Whether columns of all tensors start at multiples of a pack; `others` begin at their first.
template <typename T, typename Args, typename... Views>
bool convPacks(const Args& args, const Views&... others)
{
    const bool fits = args.x.dims[1] % kConvPack == 0 && args.firstColumn % kConvPack == 0 &&
                      args.weight.dims[0] % kConvPack == 0;
    return fits && fitsPacks(kConvPack, args.x, others...);
}

LaunchShape convShape(std::int64_t channels, int pack, std::int64_t rowBlocks)
{
    LaunchShape shape;
    shape.grid = dim3(
        static_cast<unsigned>(rowBlocks), blocksFor(channels, std::int64_t{kConvThreads} * pack));
    shape.block = dim3(kConvThreads);
    return shape;
}

template <typename T>
Status convForward(const CausalConvArgs& args, cudaStream_t stream)
{
    const auto a = convTensors<T>(args, args.continues ? args.history.as<const T>() : nullptr);
    const bool packed = convPacks<T>(args, args.out, args.history);
    const auto kernel =
        packed ? listed<causalConvKernel<T, kConvPack>>() : listed<causalConvKernel<T, 1>>();
    MR_TRY(launchKernel("causalConv", kernel,
        convShape(a.channels, packed ? kConvPack : 1, blocksFor(a.rows, kConvRows)), stream, a,
        args.out.as<T>()));
    if (!args.history.data)
        return {};
    LaunchShape shape;
    shape.grid = dim3(blocksFor(a.channels, kConvThreads));
    shape.block = dim3(kConvThreads);
    return launchKernel("causalConv history", listed<convHistoryKernel<T>>(), shape, stream, a,
        args.history.as<T>(), args.continues);
}

template <typename T>
Status convBackward(const CausalConvBackwardArgs& args, cudaStream_t stream)
{
    const ConvGradients<T> g{convTensors<T>(args, static_cast<const T*>(nullptr)),
        args.gradOut.as<const T>(), args.gradX.as<T>() + args.firstColumn,
        args.partial.as<float>()};
    const bool packed = convPacks<T>(args, args.gradOut, args.gradX);
    const auto kernel = packed ? listed<causalConvBackwardKernel<T, kConvPack>>()
                               : listed<causalConvBackwardKernel<T, 1>>();
    return launchKernel("causalConvBackward", kernel,
        convShape(g.in.channels, packed ? kConvPack : 1, recurrentBlocks(g.in.rows)), stream, g);
}

} // namespace

Status launchCausalConv(const CausalConvArgs& args, cudaStream_t stream)
{
    if (args.out.count() == 0)
        return {};
    return args.x.dtype == DType::BF16 ? convForward<Bf16>(args, stream)
                                       : convForward<float>(args, stream);
}

Status launchCausalConvBackward(const CausalConvBackwardArgs& args, cudaStream_t stream)
{
    if (args.weight.count() == 0)
        return {};
    MR_TRY(args.x.dtype == DType::BF16 ? convBackward<Bf16>(args, stream)
                                       : convBackward<float>(args, stream));
    TensorView flat = args.gradWeight;
    flat.rank = 1;
    flat.dims = {args.partial.dims[1]};
    return joinNormPartials(args.partial, flat, args.accumulate, stream);
}

} // namespace mr::gpu
