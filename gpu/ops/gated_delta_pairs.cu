// The gated delta rule, numbers of pairs of rows of a chunk (DeltaPairs): matrices that are alike
// for all value columns, so they are made once, for the forward and the backward pass.
//
// Dot products of normed q and k are made once for a key head, over pieces of keyDim in shared
// memory. Then each value head has its decays, L, P and, by forward substitution, X:
//     X[t][:] = L[t][:] - sum over s < t of L[t][s] beta[s] X[s][:]
// A column of X is a thread's. No number is divided by a decay or by beta, and entries are bounded:
// X[t][s] is k[t] times a product of decays and of matrices (I - beta k k^T) times k[s].
//
// Order    Sums over keyDim and over s ascend.

#include "gpu/ops/delta_rows.cuh"

namespace mr::gpu {
namespace {

constexpr int kC = kDeltaRows;
constexpr int kPiece = kWarp;              // elements of q and k that are staged at a time
constexpr int kPieceRow = kPiece + 4;      // 16 bytes of eight rows lie in all banks
constexpr int kPairRow = kC + 1;           // columns of one row apart lie in other banks
constexpr int kOwnRows = kC / kDeltaWarps; // of a warp: w, w + kDeltaWarps, ...
constexpr int kOwnColumns = kC / kWarp;    // of a lane: l, l + kWarp

struct PairPieces {
    float query[kC * kPieceRow];
    float key[kC * kPieceRow];
};

// beta[t] X[t][s] is at [s * kPairRow + t], above the diagonal; L below it.
struct PairShared {
    union {
        PairPieces pieces;
        float matrices[kC * kPairRow];
    };
    float dots[kC * kPairRow]; // s >= t: q[s] k[t]; s < t: k[t] k[s]
    float queryFactor[kC], keyFactor[kC];
    float decay[kC], beta[kC];
};

// A chunk and a key head.
template <typename T>
struct PairChunk {
    const DeltaTensors<T>& in;
    const DeltaPairs& pairs;
    PairShared& s;
    std::int64_t first; // row
    int count, keyHead;
};

template <typename T>
__device__ void makeFactors(const PairChunk<T>& chunk)
{
    const DeltaTensors<T>& in = chunk.in;
    const auto thread = static_cast<int>(threadIdx.x);
    const float scale = queryScale(in.shape);
    for (int t = thread / kWarp; t < chunk.count; t += kDeltaWarps) {
        const T* row = in.mixed + (chunk.first + t) * in.mixedColumns();
        const float query = normFactor(row + in.queryColumn(chunk.keyHead), in.shape.keyDim);
        const float key = normFactor(row + in.keyColumn(chunk.keyHead), in.shape.keyDim);
        if (thread % kWarp != 0)
            continue;
        const std::int64_t at = chunk.pairs.rowAt(chunk.first + t, chunk.keyHead);
        chunk.pairs.queryFactor[at] = query;
        chunk.pairs.keyFactor[at] = key;
        chunk.s.queryFactor[t] = query * scale;
        chunk.s.keyFactor[t] = key;
    }
}

// Elements [piece, piece + kPiece) of normed q and k; 0 behind the chunk and the head.
template <typename T>
__device__ void stagePieces(const PairChunk<T>& chunk, int piece)
{
    const DeltaTensors<T>& in = chunk.in;
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
#pragma unroll
    for (int r = 0; r < kOwnRows; ++r) {
        const int t = static_cast<int>(threadIdx.x) / kWarp + r * kDeltaWarps;
        float query = 0.0F;
        float key = 0.0F;
        if (t < chunk.count && piece + lane < in.shape.keyDim) {
            const T* row = in.mixed + (chunk.first + t) * in.mixedColumns() + piece + lane;
            query = toFloat(row[in.queryColumn(chunk.keyHead)]) * chunk.s.queryFactor[t];
            key = toFloat(row[in.keyColumn(chunk.keyHead)]) * chunk.s.keyFactor[t];
        }
        chunk.s.pieces.query[t * kPieceRow + lane] = query;
        chunk.s.pieces.key[t * kPieceRow + lane] = key;
    }
}

// Dot products of a thread's rows s and columns t. Of a half of the rows the second columns lie
// above the diagonal, and are left out.
struct PairDots {
    float scores[kOwnRows][kOwnColumns];   // q[s] k[t]
    float overlaps[kOwnRows][kOwnColumns]; // k[s] k[t]

    static __device__ constexpr bool isWanted(int r, int c) { return r * kDeltaWarps >= c * kWarp; }
};

__device__ void clearDots(PairDots& dots)
{
#pragma unroll
    for (int r = 0; r < kOwnRows; ++r)
#pragma unroll
        for (int c = 0; c < kOwnColumns; ++c) {
            dots.scores[r][c] = 0.0F;
            dots.overlaps[r][c] = 0.0F;
        }
}

// Adds the staged pieces; rows behind the chunk are left out.
__device__ void addPieces(PairDots& dots, const PairPieces& pieces, int count)
{
    using Four = Pack<float, 4>;
    const int lane = static_cast<int>(threadIdx.x) % kWarp;
    const int warp = static_cast<int>(threadIdx.x) / kWarp;
    for (int i = 0; i < kPiece; i += 4) {
        Four columns[kOwnColumns];
#pragma unroll
        for (int c = 0; c < kOwnColumns; ++c)
            columns[c] = loadPack<4>(pieces.key + (lane + c * kWarp) * kPieceRow + i);
#pragma unroll
        for (int r = 0; r < kOwnRows; ++r) {
            const int row = warp + r * kDeltaWarps;
            if (row >= count)
                break;
            const Four query = loadPack<4>(pieces.query + row * kPieceRow + i);
            const Four key = loadPack<4>(pieces.key + row * kPieceRow + i);
#pragma unroll
            for (int c = 0; c < kOwnColumns && PairDots::isWanted(r, c); ++c)
#pragma unroll
                for (int e = 0; e < 4; ++e) {
                    const float column = columns[c].at[e];
                    dots.scores[r][c] = __fmaf_rn(query.at[e], column, dots.scores[r][c]);
                    dots.overlaps[r][c] = __fmaf_rn(key.at[e], column, dots.overlaps[r][c]);
                }
        }
    }
}

__device__ void storeDots(const PairDots& dots, PairShared& shared)
{
#pragma unroll
    for (int r = 0; r < kOwnRows; ++r)
#pragma unroll
        for (int c = 0; c < kOwnColumns && PairDots::isWanted(r, c); ++c) {
            const int s = static_cast<int>(threadIdx.x) / kWarp + r * kDeltaWarps;
            const int t = static_cast<int>(threadIdx.x) % kWarp + c * kWarp;
            if (s >= t)
                shared.dots[s * kPairRow + t] = dots.scores[r][c];
            if (s > t)
                shared.dots[t * kPairRow + s] = dots.overlaps[r][c];
        }
}

template <typename T>
__device__ void makeDots(const PairChunk<T>& chunk)
{
    PairDots dots;
    clearDots(dots);
    for (int piece = 0; piece < chunk.in.shape.keyDim; piece += kPiece) {
        stagePieces(chunk, piece);
        __syncthreads();
        addPieces(dots, chunk.s.pieces, chunk.count);
        __syncthreads();
    }
    storeDots(dots, chunk.s);
}

template <typename T>
__device__ void loadGates(const PairChunk<T>& chunk, int head)
{
    const auto t = static_cast<int>(threadIdx.x);
    if (t >= chunk.count)
        return;
    const DeltaGate gate = deltaGate(chunk.in, chunk.first + t, head);
    chunk.s.decay[t] = exactExp(gate.g);
    chunk.s.beta[t] = gate.beta;
    chunk.pairs.beta[chunk.pairs.rowAt(chunk.first + t, head)] = gate.beta;
}

// Column t of L. All lanes are in one row, so their columns lie in different banks.
template <typename T>
__device__ void makeLower(const PairChunk<T>& chunk, int t)
{
    float ratio = 1.0F;
    for (int s = 1; s < chunk.count; ++s)
        if (s > t) {
            ratio = ratio * chunk.s.decay[s];
            chunk.s.matrices[s * kPairRow + t] = ratio * chunk.s.dots[t * kPairRow + s];
        }
}

// Column t of P.
template <typename T>
__device__ void storeScores(const PairChunk<T>& chunk, int head, int t)
{
    float ratio = 1.0F;
    for (int s = 0; s < chunk.count; ++s) {
        float score = 0.0F;
        if (s >= t) {
            ratio = s > t ? ratio * chunk.s.decay[s] : 1.0F;
            score = ratio * chunk.s.dots[s * kPairRow + t];
        }
        chunk.pairs.scores[chunk.pairs.pairsAt(chunk.first + s, head) + t] = score;
    }
}

template <typename T>
__device__ void storeDecays(const PairChunk<T>& chunk, int head, int t)
{
    if (t >= chunk.count)
        return;
    float start = 1.0F;
    for (int s = 0; s <= t; ++s)
        start = start * chunk.s.decay[s];
    float rest = 1.0F;
    for (int s = t + 1; s < chunk.count; ++s)
        rest = rest * chunk.s.decay[s];
    const std::int64_t at = chunk.pairs.rowAt(chunk.first + t, head);
    chunk.pairs.start[at] = start;
    chunk.pairs.rest[at] = rest;
}

// Column j of X, and of L where it is wanted. All lanes are in one row, as in makeLower().
template <typename T>
__device__ void solveColumn(const PairChunk<T>& chunk, int head, int j)
{
    float* const column = chunk.s.matrices + j * kPairRow;
    for (int t = 0; t < chunk.count; ++t) {
        const float* row = chunk.s.matrices + t * kPairRow;
        float sum = 0.0F;
#pragma unroll 4
        for (int s = j / kWarp * kWarp; s < t; ++s)
            if (s > j)
                sum = __fmaf_rn(row[s], column[s], sum);
        const float lower = t > j ? row[j] : 0.0F;
        const float inverse = lower - sum;
        if (t > j)
            column[t] = chunk.s.beta[t] * inverse;
        const std::int64_t at = chunk.pairs.pairsAt(chunk.first + t, head) + j;
        chunk.pairs.inverse[at] = inverse;
        if (chunk.pairs.lower)
            chunk.pairs.lower[at] = lower;
    }
}

// Two warps each for L, P and the decays.
template <typename T>
__device__ void makePairs(const PairChunk<T>& chunk, int head)
{
    const auto thread = static_cast<int>(threadIdx.x);
    loadGates(chunk, head);
    __syncthreads();
    if (thread < kC)
        makeLower(chunk, thread);
    else if (thread < 2 * kC)
        storeScores(chunk, head, thread - kC);
    else if (thread < 3 * kC)
        storeDecays(chunk, head, thread - 2 * kC);
    __syncthreads();
    if (thread < kC)
        solveColumn(chunk, head, thread);
    __syncthreads(); // matrices and gates were read
}

// Grid (blocks of kRecurrentRows rows, keyHeads): the chunks that start within.
template <typename T>
__global__ void __launch_bounds__(kDeltaThreads, 2)
    deltaPairsKernel(DeltaTensors<T> in, DeltaPairs pairs)
{
    const std::int64_t begin = std::int64_t{blockIdx.x} * kRecurrentRows;
    const std::int64_t end = min(in.rows, begin + kRecurrentRows);
    const auto keyHead = static_cast<int>(blockIdx.y);
    for (std::int64_t t = begin; t < end; ++t) {
        const std::int64_t document = in.documentFrom[t];
        if ((t - document) % kRecurrentRows != 0)
            continue;
        const auto count = static_cast<int>(min(documentEnd(in, document) - t, kRecurrentRows));
        const PairChunk<T> chunk{in, pairs, *dynamicShared<PairShared>(), t, count, keyHead};
        makeFactors(chunk);
        __syncthreads();
        makeDots(chunk);
        __syncthreads();
        for (int j = 0; j < in.group(); ++j)
            makePairs(chunk, keyHead * in.group() + j);
    }
}

} // namespace

template <typename T>
Status launchDeltaPairs(
    const DeltaTensors<T>& tensors, const DeltaPairs& pairs, cudaStream_t stream)
{
    LaunchShape shape;
    shape.grid = dim3(static_cast<unsigned>(recurrentBlocks(tensors.rows)),
        static_cast<unsigned>(tensors.shape.keyHeads));
    shape.block = dim3(kDeltaThreads);
    shape.sharedBytes = sizeof(PairShared);
    return launchKernel(
        "gatedDelta pairs", listed<deltaPairsKernel<T>>(), shape, stream, tensors, pairs);
}

template Status launchDeltaPairs<Bf16>(
    const DeltaTensors<Bf16>& tensors, const DeltaPairs& pairs, cudaStream_t stream);
template Status launchDeltaPairs<float>(
    const DeltaTensors<float>& tensors, const DeltaPairs& pairs, cudaStream_t stream);

} // namespace mr::gpu
