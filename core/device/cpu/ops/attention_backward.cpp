#include "core/device/cpu/ops/attention.h"
#include "core/device/cpu/ops/attention_blocks.h"
#include "core/device/cpu/ops/lanes.h"
#include "core/device/cpu/ops/pack.h"

namespace mr::cpu {

namespace {

// Scratch of one thread, in floats; every part a multiple of 16. `long` parts hold a segment.
struct BackwardBuffers {
    float* keyT;       // panels (headDim depth, segment)
    float* valueT;     // panels (headDim depth, segment)
    float* keys;       // panels (segment depth, headDim)
    float* gradKey;    // (segment, padded)
    float* gradValue;  // (segment, padded)
    float* query;      // (kQueryBlock, padded)
    float* gradOut;    // (kQueryBlock, padded)
    float* queryB;     // panels (kQueryBlock depth, headDim)
    float* gradOutB;   // panels (kQueryBlock depth, headDim)
    float* gradQuery;  // (kQueryBlock, padded)
    float* prob;       // (kQueryBlock, kKeyBlock)
    float* gradScores; // (kQueryBlock, kKeyBlock)

    static std::int64_t segmentFloats(const AttentionShape& s) noexcept
    {
        return paddedToPanel(s.tokens) * s.padded();
    }

    static std::int64_t floats(const AttentionShape& s) noexcept
    {
        return 5 * segmentFloats(s) + 5 * kQueryBlock * s.padded() + 2 * kQueryBlock * kKeyBlock;
    }

    BackwardBuffers(const AttentionShape& s, float* at) noexcept
    {
        for (float** part : {&keyT, &valueT, &keys, &gradKey, &gradValue}) {
            *part = at;
            at += segmentFloats(s);
        }
        for (float** part : {&query, &gradOut, &queryB, &gradOutB, &gradQuery}) {
            *part = at;
            at += kQueryBlock * s.padded();
        }
        prob = at;
        gradScores = at + kQueryBlock * kKeyBlock;
    }
};

// prob holds dot products and becomes exp(score - lse); gradScores holds dP and becomes
// slope P (dP - delta). Invisible keys become 0 in both.
template <bool kCapped>
void gradientRow(float* prob, float* gradScores, Visible visible, const ScoreRule& rule, float lse,
    float delta) noexcept
{
    std::fill(prob, prob + visible.from, 0.0F);
    std::fill(gradScores, gradScores + visible.from, 0.0F);
    for (std::int64_t j = visible.from; j < visible.to; ++j) {
        const float score = rule.score<kCapped>(prob[j]);
        const float p = expOf(score - lse);
        prob[j] = p;
        gradScores[j] = rule.slope<kCapped>(score) * (p * (gradScores[j] - delta));
    }
    std::fill(prob + visible.to, prob + kKeyBlock, 0.0F);
    std::fill(gradScores + visible.to, gradScores + kKeyBlock, 0.0F);
}

template <typename T>
class BackwardUnit
{
public:
    BackwardUnit(
        const AttentionBackwardArgs& args, const AttentionShape& shape, float* scratch) noexcept
        : m_args(args)
        , m_s(shape)
        , m_b(shape, scratch)
        , m_qkv(args.qkv.as<const T>())
        , m_visibleFrom(args.visibleFrom.as<const std::int32_t>())
    {
    }

    // Rows [segment, end): dK and dV of one head summed over query blocks ascending, then the
    // heads of its group.
    void run(std::int64_t kvHead, std::int64_t segment, std::int64_t end) noexcept
    {
        m_segment = segment;
        m_length = end - segment;
        packSegment(kvHead);
        std::fill(m_b.gradKey, m_b.gradKey + m_length * m_s.padded(), 0.0F);
        std::fill(m_b.gradValue, m_b.gradValue + m_length * m_s.padded(), 0.0F);
        for (std::int64_t first = segment; first < end; first += kQueryBlock)
            for (std::int64_t g = 0; g < m_s.group(); ++g)
                addQueries(kvHead * m_s.group() + g, first, std::min(kQueryBlock, end - first));
        store(m_b.gradKey, m_segment, m_length, m_s.keyColumn(kvHead));
        store(m_b.gradValue, m_segment, m_length, m_s.valueColumn(kvHead));
    }

private:
    void packSegment(std::int64_t kvHead) noexcept
    {
        const std::int64_t ld = m_s.rowLength();
        const T* key = m_qkv + m_segment * ld + m_s.keyColumn(kvHead);
        const T* value = m_qkv + m_segment * ld + m_s.valueColumn(kvHead);
        const std::int64_t stride = m_s.headDim * kPanel;
        packPanelsTransposed(key, ld, m_s.headDim, m_length, m_b.keyT, stride);
        packPanelsTransposed(value, ld, m_s.headDim, m_length, m_b.valueT, stride);
        packPanels(key, ld, m_length, m_s.headDim, m_b.keys, m_length * kPanel);
    }

    void packQueries(std::int64_t head, std::int64_t first, std::int64_t rows) noexcept
    {
        const std::int64_t d = m_s.headDim;
        const T* query = m_qkv + first * m_s.rowLength() + head * d;
        const T* gradOut = m_args.gradOut.as<const T>() + (first * m_s.heads + head) * d;
        packRows(query, m_s.rowLength(), rows, d, m_b.query, m_s.padded());
        packRows(gradOut, m_s.heads * d, rows, d, m_b.gradOut, m_s.padded());
        packPanels(query, m_s.rowLength(), rows, d, m_b.queryB, kQueryBlock * kPanel);
        packPanels(gradOut, m_s.heads * d, rows, d, m_b.gradOutB, kQueryBlock * kPanel);
    }

    void addQueries(std::int64_t head, std::int64_t first, std::int64_t rows) noexcept
    {
        packQueries(head, first, rows);
        std::fill(m_b.gradQuery, m_b.gradQuery + rows * m_s.padded(), 0.0F);
        const std::int64_t end = first + rows;
        const std::int64_t from = firstVisibleBlock(m_visibleFrom, m_segment, first, end);
        for (std::int64_t key = m_segment + from * kKeyBlock; key < end; key += kKeyBlock)
            addPair(head, first, rows, key);
        store(m_b.gradQuery, first, rows, head * m_s.headDim);
    }

    // Rows of the block before `key` see none of it.
    void addPair(
        std::int64_t head, std::int64_t first, std::int64_t rows, std::int64_t key) noexcept
    {
        const std::int64_t d = m_s.headDim;
        const std::int64_t ld = m_s.padded();
        const std::int64_t at = key - m_segment; // a multiple of kKeyBlock
        const std::int64_t keys = std::min(kKeyBlock, first + rows - key);
        const std::int64_t skipped = std::max<std::int64_t>(0, key - first);
        const std::int64_t used = rows - skipped;
        gemmBlock({m_b.query + skipped * ld, ld, 1, m_b.keyT + at * d, d * kPanel, m_b.prob,
            kKeyBlock, used, keys, d, false});
        gemmBlock({m_b.gradOut + skipped * ld, ld, 1, m_b.valueT + at * d, d * kPanel,
            m_b.gradScores, kKeyBlock, used, keys, d, false});
        const ScoreRule rule{m_args.scale, m_args.softcap};
        const auto gradient = rule.cap > 0.0F ? gradientRow<true> : gradientRow<false>;
        for (std::int64_t r = 0; r < used; ++r) {
            const std::int64_t row = first + skipped + r;
            const std::int64_t of = row * m_s.heads + head;
            gradient(m_b.prob + r * kKeyBlock, m_b.gradScores + r * kKeyBlock,
                visibleKeys(row, m_visibleFrom[row], key, keys), rule,
                m_args.lse.as<const float>()[of], m_args.delta.as<const float>()[of]);
        }
        const std::int64_t stride = kQueryBlock * kPanel;
        gemmBlock({m_b.prob, 1, kKeyBlock, m_b.gradOutB + skipped * kPanel, stride,
            m_b.gradValue + at * ld, ld, keys, d, used, true});
        gemmBlock({m_b.gradScores, 1, kKeyBlock, m_b.queryB + skipped * kPanel, stride,
            m_b.gradKey + at * ld, ld, keys, d, used, true});
        gemmBlock({m_b.gradScores, kKeyBlock, 1, m_b.keys + at * kPanel, m_length * kPanel,
            m_b.gradQuery + skipped * ld, ld, used, d, keys, true});
    }

    void store(
        const float* from, std::int64_t first, std::int64_t rows, std::int64_t column) noexcept
    {
        for (std::int64_t r = 0; r < rows; ++r) {
            T* out = m_args.gradQkv.as<T>() + (first + r) * m_s.rowLength() + column;
            for (std::int64_t c = 0; c < m_s.headDim; ++c)
                out[c] = fromFloat<T>(from[r * m_s.padded() + c]);
        }
    }

    const AttentionBackwardArgs& m_args;
    const AttentionShape& m_s;
    const BackwardBuffers m_b;
    const T* const m_qkv;
    const std::int32_t* const m_visibleFrom;
    std::int64_t m_segment = 0;
    std::int64_t m_length = 0;
};

// delta = row sums of out * gradOut, by head.
template <typename T>
void fillDelta(const AttentionBackwardArgs& args, ThreadPool& pool)
{
    const std::int64_t heads = args.heads;
    const std::int64_t d = args.headDim;
    constexpr std::int64_t kRows = 64;
    const std::int64_t tokens = args.qkv.dims[0];
    pool.parallelFor((tokens + kRows - 1) / kRows, [&](std::int64_t block) {
        const std::int64_t end = std::min(tokens, (block + 1) * kRows) * heads;
        for (std::int64_t i = block * kRows * heads; i < end; ++i)
            args.delta.as<float>()[i] =
                sumProducts(args.out.as<const T>() + i * d, args.gradOut.as<const T>() + i * d, d);
    });
}

} // namespace

void attentionBackward(const AttentionBackwardArgs& args, ThreadPool& pool, Scratch& scratch)
{
    const AttentionShape shape{args.qkv.dims[0], args.heads, args.kvHeads, args.headDim};
    const auto hold = scratch.hold(BackwardBuffers::floats(shape));
    std::vector<std::int64_t>& starts = scratch.numbers();
    starts.reserve(static_cast<std::size_t>(5 * shape.tokens)); // as forward: grown once
    findSegments(args.visibleFrom.as<const std::int32_t>(), shape.tokens, starts);
    const auto segments = static_cast<std::int64_t>(starts.size());
    withType(args.qkv.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        fillDelta<T>(args, pool);
        pool.parallelFor(segments * shape.kvHeads, [&](std::int64_t index, int worker) {
            const auto s = static_cast<std::size_t>(index / shape.kvHeads);
            const std::int64_t end = s == 0 ? shape.tokens : starts[s - 1];
            BackwardUnit<T>(args, shape, scratch.of(worker))
                .run(index % shape.kvHeads, starts[s], end);
        });
    });
}

} // namespace mr::cpu
