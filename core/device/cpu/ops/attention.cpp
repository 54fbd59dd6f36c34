#include "core/device/cpu/ops/attention.h"

#include "core/device/cpu/ops/attention_blocks.h"
#include "core/device/cpu/ops/lanes.h"
#include "core/device/cpu/ops/pack.h"

#include <limits>
#include <span>

namespace mr::cpu {

namespace {

// Scratch of one thread, in floats; every part a multiple of 16.
struct ForwardBuffers {
    float* query;  // (group, kQueryBlock, padded)
    float* keyT;   // panels (padded depth, kKeyBlock)
    float* value;  // panels (kKeyBlock depth, padded)
    float* scores; // (kQueryBlock, kKeyBlock)
    float* out;    // (group, kQueryBlock, padded): running sums
    float* top;    // (group, kQueryBlock): running maximum
    float* total;  // (group, kQueryBlock): running sum of exponentials

    static std::int64_t floats(const AttentionShape& s) noexcept
    {
        return 2 * kKeyBlock * s.padded() + kQueryBlock * kKeyBlock +
               s.group() * kQueryBlock * (2 * s.padded() + 2);
    }

    ForwardBuffers(const AttentionShape& s, float* at) noexcept
        : query(at)
        , keyT(query + s.group() * kQueryBlock * s.padded())
        , value(keyT + kKeyBlock * s.padded())
        , scores(value + kKeyBlock * s.padded())
        , out(scores + kQueryBlock * kKeyBlock)
        , top(out + s.group() * kQueryBlock * s.padded())
        , total(top + s.group() * kQueryBlock)
    {
    }
};

// Scores of one row become exp(score - new maximum), invisible ones 0; the running sums of the
// row are brought to the new maximum.
void softmaxRow(float* scores, Visible visible, const ScoreRule& rule, std::span<float> out,
    float& top, float& total) noexcept
{
    if (visible.from == visible.to) {
        std::fill(scores, scores + kKeyBlock, 0.0F);
        return;
    }
    if (rule.cap > 0.0F)
        for (std::int64_t j = visible.from; j < visible.to; ++j)
            scores[j] = rule.score<true>(scores[j]);
    else
        for (std::int64_t j = visible.from; j < visible.to; ++j)
            scores[j] = rule.score<false>(scores[j]);
    const float newTop = std::max(top, maxOf(scores + visible.from, visible.to - visible.from));
    std::fill(scores, scores + visible.from, 0.0F);
    for (std::int64_t j = visible.from; j < visible.to; ++j)
        scores[j] = expOf(scores[j] - newTop);
    std::fill(scores + visible.to, scores + kKeyBlock, 0.0F);
    const float sum = sumLanes(scores, kKeyBlock);
    if (newTop != top) {
        const float factor = expOf(top - newTop); // 0 the first time: top is -infinity
        total *= factor;
        for (float& value : out)
            value *= factor;
        top = newTop;
    }
    total += sum;
}

template <typename T>
class ForwardUnit
{
public:
    ForwardUnit(const AttentionArgs& args, const AttentionShape& shape, float* scratch) noexcept
        : m_args(args)
        , m_s(shape)
        , m_b(shape, scratch)
        , m_qkv(args.qkv.as<const T>())
        , m_visibleFrom(args.visibleFrom.as<const std::int32_t>())
    {
    }

    void run(std::int64_t kvHead, const QueryBlock& block) noexcept
    {
        const std::int64_t rows = block.end - block.first;
        const std::int64_t sums = m_s.group() * kQueryBlock;
        std::fill(m_b.out, m_b.out + sums * m_s.padded(), 0.0F);
        std::fill(m_b.top, m_b.top + sums, -std::numeric_limits<float>::infinity());
        std::fill(m_b.total, m_b.total + sums, 0.0F);
        packQueries(kvHead, block.first, rows);
        const std::int64_t from =
            firstVisibleBlock(m_visibleFrom, block.segment, block.first, block.end);
        for (std::int64_t key = block.segment + from * kKeyBlock; key < block.end;
             key += kKeyBlock) {
            const std::int64_t keys = std::min(kKeyBlock, block.end - key);
            packKeys(kvHead, key, keys);
            for (std::int64_t g = 0; g < m_s.group(); ++g)
                addKeys(g, block.first, rows, key, keys);
        }
        for (std::int64_t g = 0; g < m_s.group(); ++g)
            store(kvHead * m_s.group() + g, g, block.first, rows);
    }

private:
    void packKeys(std::int64_t kvHead, std::int64_t key, std::int64_t keys) noexcept
    {
        const T* row = m_qkv + key * m_s.rowLength();
        packPanelsTransposed(row + m_s.keyColumn(kvHead), m_s.rowLength(), m_s.headDim, keys,
            m_b.keyT, m_s.headDim * kPanel);
        packPanels(row + m_s.valueColumn(kvHead), m_s.rowLength(), keys, m_s.headDim, m_b.value,
            kKeyBlock * kPanel);
    }

    void packQueries(std::int64_t kvHead, std::int64_t first, std::int64_t rows) noexcept
    {
        const T* query = m_qkv + first * m_s.rowLength() + kvHead * m_s.group() * m_s.headDim;
        for (std::int64_t g = 0; g < m_s.group(); ++g)
            packRows(query + g * m_s.headDim, m_s.rowLength(), rows, m_s.headDim,
                m_b.query + g * kQueryBlock * m_s.padded(), m_s.padded());
    }

    // Rows of the block before `key` see none of it.
    void addKeys(std::int64_t g, std::int64_t first, std::int64_t rows, std::int64_t key,
        std::int64_t keys) noexcept
    {
        const std::int64_t ld = m_s.padded();
        const std::int64_t skipped = std::max<std::int64_t>(0, key - first);
        const std::int64_t used = rows - skipped;
        const std::int64_t at = g * kQueryBlock + skipped;
        float* out = m_b.out + at * ld;
        gemmBlock({m_b.query + at * ld, ld, 1, m_b.keyT, m_s.headDim * kPanel, m_b.scores,
            kKeyBlock, used, keys, m_s.headDim, false});
        for (std::int64_t r = 0; r < used; ++r) {
            const std::int64_t row = first + skipped + r;
            softmaxRow(m_b.scores + r * kKeyBlock, visibleKeys(row, m_visibleFrom[row], key, keys),
                {m_args.scale, m_args.softcap}, {out + r * ld, static_cast<std::size_t>(ld)},
                m_b.top[at + r], m_b.total[at + r]);
        }
        gemmBlock({m_b.scores, kKeyBlock, 1, m_b.value, kKeyBlock * kPanel, out, ld, used,
            m_s.headDim, keys, true});
    }

    void store(std::int64_t head, std::int64_t g, std::int64_t first, std::int64_t rows) noexcept
    {
        for (std::int64_t r = 0; r < rows; ++r) {
            const std::int64_t row = first + r - m_args.firstQuery;
            const float total = m_b.total[g * kQueryBlock + r];
            const float* sums = m_b.out + (g * kQueryBlock + r) * m_s.padded();
            T* out = m_args.out.as<T>() + row * m_s.heads * m_s.headDim + head * m_s.headDim;
            for (std::int64_t d = 0; d < m_s.headDim; ++d)
                out[d] = fromFloat<T>(sums[d] / total);
            m_args.lse.as<float>()[row * m_s.heads + head] =
                m_b.top[g * kQueryBlock + r] + std::log(total);
        }
    }

    const AttentionArgs& m_args;
    const AttentionShape& m_s;
    const ForwardBuffers m_b;
    const T* const m_qkv;
    const std::int32_t* const m_visibleFrom;
};

// Three numbers for each query block: segment, first row, end. Later rows first: they see the
// most keys, and long items at the end would leave threads idle.
void listQueryBlocks(const AttentionArgs& args, std::vector<std::int64_t>& list)
{
    const std::int64_t tokens = args.qkv.dims[0];
    list.reserve(static_cast<std::size_t>(5 * tokens)); // enough for any segments, also next time
    findSegments(args.visibleFrom.as<const std::int32_t>(), tokens, list);
    // In place: the starts move to the back, the blocks are written from the front.
    const auto segments = static_cast<std::int64_t>(list.size());
    const std::int64_t most = 3 * (segments + tokens / kQueryBlock);
    list.resize(static_cast<std::size_t>(most + segments));
    std::copy_backward(list.begin(), list.begin() + segments, list.end());
    std::int64_t count = 0;
    std::int64_t end = tokens;
    for (std::int64_t s = 0; s < segments; ++s) {
        const std::int64_t start = list[static_cast<std::size_t>(most + s)];
        const std::int64_t first = std::max(start, args.firstQuery);
        const std::int64_t blocks = (end - first + kQueryBlock - 1) / kQueryBlock;
        for (std::int64_t b = blocks; b-- > 0;) {
            const std::int64_t at = first + b * kQueryBlock;
            for (const std::int64_t number : {start, at, std::min(end, at + kQueryBlock)})
                list[static_cast<std::size_t>(count++)] = number;
        }
        end = start;
    }
    list.resize(static_cast<std::size_t>(count));
}

} // namespace

void attention(const AttentionArgs& args, ThreadPool& pool, Scratch& scratch)
{
    const AttentionShape shape{args.qkv.dims[0], args.heads, args.kvHeads, args.headDim};
    const auto hold = scratch.hold(ForwardBuffers::floats(shape));
    std::vector<std::int64_t>& list = scratch.numbers();
    listQueryBlocks(args, list);
    const auto blocks = static_cast<std::int64_t>(list.size()) / 3;
    pool.parallelFor(blocks * shape.kvHeads, [&](std::int64_t index, int worker) {
        const std::int64_t* at = list.data() + 3 * (index / shape.kvHeads);
        const QueryBlock block{at[0], at[1], at[2]};
        withType(args.qkv.dtype, [&](auto* tag) {
            using T = std::remove_pointer_t<decltype(tag)>;
            ForwardUnit<T>(args, shape, scratch.of(worker)).run(index % shape.kvHeads, block);
        });
    });
}

} // namespace mr::cpu
