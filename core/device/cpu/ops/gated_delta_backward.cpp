#include "core/device/cpu/ops/delta_chunk.h"
#include "core/device/cpu/ops/kernels.h"

#include <array>
#include <type_traits>

// Chunks from a document's last to its first. States before chunks are made forward first; within a
// chunk the gradients are products of matrices, so no other state is held. With D[s][t] the product
// of decays after row t up to row s, S the state before the chunk, G the gradient of the state
// after it, and c = v - u, d = beta c:
//     e[t] = D[C-1][t] G^T k[t] + sum over s >= t of D[s][t] (q[s] k[t]) gradOut[s]
//                               + sum over s > t of D[s][t] (k[s] k[t]) m[s],   m = -beta e
// from the last row on. All other gradients are sums over pairs of rows, and over S and G. Products
// of decays, instead of exponentials of differences, keep their relative error small and divide by
// nothing.

namespace mr::cpu {

namespace {

constexpr std::int64_t kC = kRecurrentRows;

// One document and one key head with its value heads.
template <typename T>
class DeltaBackwardUnit
{
public:
    DeltaBackwardUnit(const GatedDeltaBackwardArgs& args, float* scratch) noexcept
        : m_args(args)
        , m_reader(args)
        , m_s(m_reader.sizes())
        , m_b(m_s, m_reader.group(), scratch)
    {
    }

    void run(std::int64_t keyHead, std::int64_t begin, std::int64_t end) noexcept
    {
        m_begin = begin;
        m_end = end;
        m_keyHead = keyHead;
        for (std::int64_t j = 0; j < m_reader.group(); ++j)
            makeBorders(keyHead * m_reader.group() + j);
        const std::int64_t chunks = recurrentBlocks(end - begin);
        for (std::int64_t chunk = chunks - 1; chunk >= 0; --chunk) {
            m_first = begin + chunk * kC;
            m_rows = std::min(kC, end - m_first);
            loadChunk();
            for (std::int64_t j = 0; j < m_reader.group(); ++j)
                addHead(keyHead * m_reader.group() + j, m_b.stateGradients + j * m_s.stateFloats());
            storeKeys();
        }
    }

private:
    bool hasBefore() const noexcept { return m_first > m_begin; }
    bool hasAfter() const noexcept { return m_first + m_rows < m_end; }

    float* border(std::int64_t first, std::int64_t head) const noexcept
    {
        const std::int64_t at = first / kC * m_reader.shape().valueHeads + head;
        return m_args.borders.as<float>() + at * m_s.keyDim * m_s.valueDim;
    }

    void loadValues(std::int64_t head) noexcept
    {
        m_reader.loadGates(m_first, m_rows, head, m_b.decay, m_b.beta);
        packRows(m_reader.mixed(m_first, m_reader.valueColumn(head)), m_reader.shape().columns(),
            m_rows, m_s.valueDim, m_b.value, m_s.valueRow);
    }

    void runRows(float* change) noexcept
    {
        deltaHead({nullptr, m_b.key, m_b.decay, m_b.beta, m_b.value, nullptr, change, m_b.state,
                      m_rows, m_s.keyDim, m_s.keyRow, m_s.valueRow},
            m_s);
    }

    void makeBorders(std::int64_t head) noexcept
    {
        std::fill(m_b.state, m_b.state + m_s.stateFloats(), 0.0F);
        m_rows = kC;
        for (m_first = m_begin; m_first + kC < m_end; m_first += kC) {
            m_reader.loadNormed(
                m_first, kC, m_reader.keyColumn(m_keyHead), 1.0F, m_b.key, m_b.keyFactors);
            loadValues(head);
            runRows(nullptr);
            stateFromStrips(m_s, m_b.state, border(m_first + kC, head));
        }
    }

    // The value heads of a chunk share these.
    void loadChunk() noexcept
    {
        m_reader.loadNormed(m_first, m_rows, m_reader.queryColumn(m_keyHead), m_reader.queryScale(),
            m_b.query, m_b.queryFactors);
        m_reader.loadNormed(
            m_first, m_rows, m_reader.keyColumn(m_keyHead), 1.0F, m_b.key, m_b.keyFactors);
        packPanels(m_b.query, m_s.keyRow, m_rows, m_s.keyDim, m_b.queryB, kC * kPanel);
        packPanels(m_b.key, m_s.keyRow, m_rows, m_s.keyDim, m_b.keyB, kC * kPanel);
        packPanelsTransposed(
            m_b.key, m_s.keyRow, m_s.keyDim, m_rows, m_b.keyT, m_s.keyDim * kPanel);
        const RightPanels keyT{m_b.keyT, m_s.keyDim, m_s.keyDim};
        multiply({m_b.query, m_s.keyRow, 1}, keyT, {m_b.scores, kC, m_rows, m_rows}, false);
        multiply({m_b.key, m_s.keyRow, 1}, keyT, {m_b.overlaps, kC, m_rows, m_rows}, false);
        std::fill(m_b.gradQuery, m_b.gradQuery + kC * m_s.keyRow, 0.0F);
        std::fill(m_b.gradKey, m_b.gradKey + kC * m_s.keyRow, 0.0F);
    }

    void addHead(std::int64_t head, float* stateGradient) noexcept
    {
        loadHead(head);
        makeErrors(stateGradient);
        storeValues(head);
        addPairs();
        std::fill(m_b.terms, m_b.terms + kC, 0.0F);
        std::fill(m_b.ends, m_b.ends + kC, 0.0F);
        float whole = 0.0F;
        if (hasBefore())
            addBefore(border(m_first, head));
        if (hasAfter())
            addAfter(stateGradient);
        if (hasBefore() && hasAfter())
            for (std::int64_t i = 0; i < m_s.keyDim; ++i)
                whole += sumProducts(stateGradient + i * m_s.valueRow,
                    border(m_first, head) + i * m_s.valueDim, m_s.valueDim);
        storeGates(head, static_cast<double>(m_b.start[m_rows - 1] * whole));
        passStateGradient(stateGradient);
    }

    void loadHead(std::int64_t head) noexcept
    {
        loadValues(head);
        const std::int64_t ld = m_args.gradOut.dims[1];
        const T* gradOut = m_args.gradOut.as<const T>() + m_first * ld + head * m_s.valueDim;
        packRows(gradOut, ld, m_rows, m_s.valueDim, m_b.gradOut, m_s.valueRow);
        packPanels(gradOut, ld, m_rows, m_s.valueDim, m_b.gradOutB, kC * kPanel);
        std::fill(m_b.state, m_b.state + m_s.stateFloats(), 0.0F);
        if (hasBefore())
            stateToStrips(m_s, border(m_first, head), m_b.state);
        runRows(m_b.change);
        for (std::int64_t t = 0; t < m_rows; ++t)
            for (std::int64_t c = 0; c < m_s.valueRow; ++c)
                m_b.delta[t * m_s.valueRow + c] = m_b.beta[t] * m_b.change[t * m_s.valueRow + c];
        makeRatios();
    }

    // D, and the products of decays from the chunk's start.
    void makeRatios() noexcept
    {
        for (std::int64_t s = 0; s < m_rows; ++s) {
            float* row = m_b.ratios + s * kC;
            for (std::int64_t t = 0; t < s; ++t)
                row[t] = row[t - kC] * m_b.decay[s];
            row[s] = 1.0F;
            std::fill(row + s + 1, row + kC, 0.0F);
            m_b.start[s] = s == 0 ? m_b.decay[0] : m_b.start[s - 1] * m_b.decay[s];
        }
    }

    // D times `matrix`, with or without its diagonal.
    void decayed(const float* matrix, float* out, bool diagonal) noexcept
    {
        for (std::int64_t s = 0; s < m_rows; ++s) {
            for (std::int64_t t = 0; t <= s; ++t)
                out[s * kC + t] = m_b.ratios[s * kC + t] * matrix[s * kC + t];
            std::fill(out + s * kC + s + (diagonal ? 1 : 0), out + (s + 1) * kC, 0.0F);
        }
    }

    // e and m.
    void makeErrors(const float* stateGradient) noexcept
    {
        decayed(m_b.scores, m_b.first, true);
        decayed(m_b.overlaps, m_b.second, false);
        const ProductOut errors{m_b.errors, m_s.valueRow, m_rows, m_s.valueDim};
        if (hasAfter()) {
            for (std::int64_t t = 0; t < m_rows; ++t)
                for (std::int64_t i = 0; i < m_s.keyDim; ++i)
                    m_b.keyTemp[t * m_s.keyRow + i] = rest(t) * m_b.key[t * m_s.keyRow + i];
            packPanels(stateGradient, m_s.valueRow, m_s.keyDim, m_s.valueDim, m_b.panels,
                m_s.keyDim * kPanel);
            multiply(
                {m_b.keyTemp, m_s.keyRow, 1}, {m_b.panels, m_s.keyDim, m_s.keyDim}, errors, false);
        }
        multiply({m_b.first, 1, kC}, {m_b.gradOutB, m_rows, kC}, errors, hasAfter());
        for (std::int64_t t = m_rows - 1; t >= 0; --t)
            solveRow(t);
    }

    // Decay from row t to the chunk's end.
    float rest(std::int64_t t) const noexcept { return m_b.ratios[(m_rows - 1) * kC + t]; }

    void solveRow(std::int64_t t) noexcept
    {
        float* error = m_b.errors + t * m_s.valueRow;
        if (const std::int64_t after = m_rows - 1 - t; after > 0)
            gemmBlock({m_b.second + (t + 1) * kC + t, 1, kC, m_b.movesB + (t + 1) * kPanel,
                kC * kPanel, error, m_s.valueRow, 1, m_s.valueDim, after, true});
        float* move = m_b.moves + t * m_s.valueRow;
        for (std::int64_t c = 0; c < m_s.valueDim; ++c)
            move[c] = -(m_b.beta[t] * error[c]);
        std::fill(move + m_s.valueDim, move + m_s.valueRow, 0.0F);
        for (std::int64_t c = 0; c < paddedToPanel(m_s.valueDim); ++c)
            m_b.movesB[c / kPanel * kC * kPanel + t * kPanel + c % kPanel] = move[c];
    }

    // Gradients of v and of b.
    void storeValues(std::int64_t head) noexcept
    {
        const std::int64_t ld = m_args.gradMixed.dims[1];
        const std::int64_t gates = m_args.gradGates.dims[1];
        T* to = m_args.gradMixed.as<T>() + m_first * ld + m_reader.valueColumn(head);
        T* gradBeta = m_args.gradGates.as<T>() + m_first * gates + m_args.firstGate + head;
        for (std::int64_t t = 0; t < m_rows; ++t, to += ld, gradBeta += gates) {
            const float* error = m_b.errors + t * m_s.valueRow;
            const float beta = m_b.beta[t];
            for (std::int64_t c = 0; c < m_s.valueDim; ++c)
                to[c] = fromFloat<T>(beta * error[c]);
            const float dot = sumProducts(error, m_b.change + t * m_s.valueRow, m_s.valueDim);
            *gradBeta = fromFloat<T>(dot * (beta * (1.0F - beta)));
        }
    }

    // Pairs of rows of the chunk: gradients of q and k, and in `scorePairs` the terms that pass
    // through the decays between t and s.
    void addPairs() noexcept
    {
        packPanelsTransposed(
            m_b.delta, m_s.valueRow, m_s.valueDim, m_rows, m_b.deltaT, m_s.valueDim * kPanel);
        const RightPanels deltaT{m_b.deltaT, m_s.valueDim, m_s.valueDim};
        multiply({m_b.gradOut, m_s.valueRow, 1}, deltaT, {m_b.first, kC, m_rows, m_rows}, false);
        multiply({m_b.moves, m_s.valueRow, 1}, deltaT, {m_b.second, kC, m_rows, m_rows}, false);
        decayed(m_b.first, m_b.scorePairs, true);
        decayed(m_b.second, m_b.keyPairs, false);
        const ProductOut gradQuery{m_b.gradQuery, m_s.keyRow, m_rows, m_s.keyDim};
        const ProductOut gradKey{m_b.gradKey, m_s.keyRow, m_rows, m_s.keyDim};
        const RightPanels keys{m_b.keyB, m_rows, kC};
        multiply({m_b.scorePairs, kC, 1}, keys, gradQuery, true);
        multiply({m_b.scorePairs, 1, kC}, {m_b.queryB, m_rows, kC}, gradKey, true);
        for (std::int64_t s = 0; s < m_rows; ++s)
            for (std::int64_t t = 0; t < m_rows; ++t)
                m_b.first[s * kC + t] = m_b.keyPairs[s * kC + t] + m_b.keyPairs[t * kC + s];
        multiply({m_b.first, kC, 1}, keys, gradKey, true);
        for (std::int64_t at = 0; at < m_rows * kC; ++at)
            m_b.scorePairs[at] =
                std::fma(m_b.scorePairs[at], m_b.scores[at], m_b.keyPairs[at] * m_b.overlaps[at]);
    }

    // The state before the chunk.
    void addBefore(const float* state) noexcept
    {
        packPanelsTransposed(
            state, m_s.valueDim, m_s.valueDim, m_s.keyDim, m_b.panels, m_s.valueDim * kPanel);
        const RightPanels turned{m_b.panels, m_s.valueDim, m_s.valueDim};
        const ProductOut temp{m_b.keyTemp, m_s.keyRow, m_rows, m_s.keyDim};
        multiply({m_b.gradOut, m_s.valueRow, 1}, turned, temp, false);
        addScaledRows(m_s, m_rows, m_b.start, m_b.keyTemp, m_b.query, m_b.gradQuery, m_b.terms);
        multiply({m_b.moves, m_s.valueRow, 1}, turned, temp, false);
        addScaledRows(m_s, m_rows, m_b.start, m_b.keyTemp, m_b.key, m_b.gradKey, m_b.terms);
    }

    // The gradient of the state after the chunk.
    void addAfter(const float* stateGradient) noexcept
    {
        packPanelsTransposed(stateGradient, m_s.valueRow, m_s.valueDim, m_s.keyDim, m_b.panels,
            m_s.valueDim * kPanel);
        multiply({m_b.delta, m_s.valueRow, 1}, {m_b.panels, m_s.valueDim, m_s.valueDim},
            {m_b.keyTemp, m_s.keyRow, m_rows, m_s.keyDim}, false);
        addScaledRows(m_s, m_rows, m_b.ratios + (m_rows - 1) * kC, m_b.keyTemp, m_b.key,
            m_b.gradKey, m_b.ends);
    }

    // The gradient of g at row t: all terms that pass through the decay of row t, from rows before
    // it (or the state) to it and those behind (or the state after). They cancel to a small part of
    // their size, so they are added in double.
    void storeGates(std::int64_t head, double whole) noexcept
    {
        std::array<double, kC> columns{};
        double tail = 0.0;
        for (std::int64_t t = m_rows - 1; t >= 0; --t) {
            const float* pairs = m_b.scorePairs + t * kC;
            tail += static_cast<double>(m_b.terms[t]);
            double sum = whole + tail;
            for (std::int64_t i = 0; i < t; ++i)
                columns[static_cast<std::size_t>(i)] += static_cast<double>(pairs[i]);
            for (std::int64_t i = 0; i < t; ++i)
                sum += columns[static_cast<std::size_t>(i)] + static_cast<double>(m_b.ends[i]);
            storeGate(m_first + t, head, static_cast<float>(sum));
        }
    }

    void storeGate(std::int64_t row, std::int64_t head, float grad) noexcept
    {
        const std::int64_t heads = m_reader.shape().valueHeads;
        const DeltaGate gate = m_reader.gate(row, head);
        const float gradTime = -(gate.rate * gate.slope) * grad;
        const std::int64_t column = m_args.firstGate + heads + head;
        m_args.gradGates.as<T>()[row * m_args.gradGates.dims[1] + column] = fromFloat<T>(gradTime);
        float* planes = m_args.partial.as<float>() + row * heads + head;
        planes[0] = gate.g * grad;
        planes[m_args.mixed.dims[0] * heads] = gradTime;
    }

    // G of the chunk before: decay of the chunk times G, and the terms of its rows.
    void passStateGradient(float* stateGradient) noexcept
    {
        if (!hasBefore())
            return;
        const float decay = m_b.start[m_rows - 1];
        for (std::int64_t at = 0; hasAfter() && at < m_s.keyDim * m_s.valueRow; ++at)
            stateGradient[at] *= decay;
        const ProductOut out{stateGradient, m_s.valueRow, m_s.keyDim, m_s.valueDim};
        addStateTerms(m_b.query, m_b.gradOutB, out, hasAfter());
        addStateTerms(m_b.key, m_b.movesB, out, true);
    }

    void addStateTerms(
        const float* rows, const float* panels, const ProductOut& out, bool accumulate) noexcept
    {
        for (std::int64_t t = 0; t < m_rows; ++t)
            for (std::int64_t i = 0; i < m_s.keyDim; ++i)
                m_b.keyTemp[t * m_s.keyRow + i] = m_b.start[t] * rows[t * m_s.keyRow + i];
        multiply({m_b.keyTemp, 1, m_s.keyRow}, {panels, m_rows, kC}, out, accumulate);
    }

    void storeKeys() noexcept
    {
        const std::int64_t ld = m_args.gradMixed.dims[1];
        for (std::int64_t t = 0; t < m_rows; ++t) {
            const std::int64_t row = m_first + t;
            T* to = m_args.gradMixed.as<T>() + row * ld;
            const std::int64_t query = m_reader.queryColumn(m_keyHead);
            const std::int64_t key = m_reader.keyColumn(m_keyHead);
            storeNormGradient(m_reader.mixed(row, query), m_b.queryFactors[t],
                m_reader.queryScale(), m_b.gradQuery + t * m_s.keyRow, to + query, m_s.keyDim);
            storeNormGradient(m_reader.mixed(row, key), m_b.keyFactors[t], 1.0F,
                m_b.gradKey + t * m_s.keyRow, to + key, m_s.keyDim);
        }
    }

    const GatedDeltaBackwardArgs& m_args;
    DeltaReader<T> m_reader;
    DeltaSizes m_s;
    DeltaChunkBuffers m_b;
    std::int64_t m_begin = 0, m_end = 0, m_keyHead = 0; // of the document
    std::int64_t m_first = 0, m_rows = 0;               // of the chunk
};

// out[head] (+)= the column of `plane` (T, heads): blocks of rows in order, then the blocks.
void sumPlane(const float* plane, std::int64_t rows, const TensorView& out, bool accumulate)
{
    if (out.data == nullptr)
        return;
    const std::int64_t heads = out.dims[0];
    withType(out.dtype, [&](auto* tag) {
        using Out = std::remove_pointer_t<decltype(tag)>;
        for (std::int64_t head = 0; head < heads; ++head) {
            float sum = 0.0F;
            for (std::int64_t first = 0; first < rows; first += kC) {
                float block = 0.0F;
                for (std::int64_t t = first; t < std::min(rows, first + kC); ++t)
                    block += plane[t * heads + head];
                sum += block;
            }
            Out& to = out.as<Out>()[head];
            to = fromFloat<Out>(accumulate ? toFloat(to) + sum : sum);
        }
    });
}

} // namespace

void gatedDeltaBackward(const GatedDeltaBackwardArgs& args, ThreadPool& pool, Scratch& scratch)
{
    const DeltaShape& shape = args.shape;
    const auto hold = scratch.hold(
        DeltaChunkBuffers::floats(DeltaSizes(shape), shape.valueHeads / shape.keyHeads));
    std::vector<std::int64_t>& starts = scratch.numbers();
    listDocuments(args.documentFrom, starts);
    const std::int64_t heads = shape.keyHeads;
    const auto documents = static_cast<std::int64_t>(starts.size()) - 1;
    withType(args.mixed.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        pool.parallelFor(documents * heads, [&](std::int64_t item, int worker) {
            const std::int64_t* document = starts.data() + item / heads;
            DeltaBackwardUnit<T>(args, scratch.of(worker))
                .run(item % heads, document[0], document[1]);
        });
    });
    const std::int64_t rows = args.mixed.dims[0];
    const auto* planes = args.partial.as<const float>();
    sumPlane(planes, rows, args.gradLogDecay, args.accumulate);
    sumPlane(planes + rows * shape.valueHeads, rows, args.gradTimeBias, args.accumulate);
}

} // namespace mr::cpu
