#include "core/device/cpu/ops/delta_rows.h"
#include "core/device/cpu/ops/kernels.h"
#include "core/device/cpu/ops/pack.h"

#include <type_traits>

namespace mr::cpu {

namespace {

// Scratch of one thread, in floats.
struct DeltaBuffers {
    float* state; // strips
    float* query; // (kRecurrentRows, keyRow)
    float* key;
    float* value; // (kRecurrentRows, valueRow)
    float* out;
    float* decay; // (kRecurrentRows)
    float* beta;
    float* factors;

    static std::int64_t floats(const DeltaSizes& s) noexcept
    {
        return s.stateFloats() + kRecurrentRows * (2 * s.keyRow + 2 * s.valueRow + 3);
    }

    DeltaBuffers(const DeltaSizes& s, float* at) noexcept
        : state(at)
        , query(state + s.stateFloats())
        , key(query + kRecurrentRows * s.keyRow)
        , value(key + kRecurrentRows * s.keyRow)
        , out(value + kRecurrentRows * s.valueRow)
        , decay(out + kRecurrentRows * s.valueRow)
        , beta(decay + kRecurrentRows)
        , factors(beta + kRecurrentRows)
    {
    }
};

// Rows [begin, end) of one document and one value head.
template <typename T>
class DeltaUnit
{
public:
    DeltaUnit(const GatedDeltaArgs& args, float* scratch) noexcept
        : m_args(args)
        , m_reader(args)
        , m_s(m_reader.sizes())
        , m_b(m_s, scratch)
    {
    }

    void run(std::int64_t head, std::int64_t begin, std::int64_t end) noexcept
    {
        std::fill(m_b.state, m_b.state + m_s.stateFloats(), 0.0F);
        float* kept = m_args.state.as<float>();
        if (kept)
            kept += head * m_s.keyDim * m_s.valueDim;
        if (begin == 0 && m_args.continues)
            stateToStrips(m_s, kept, m_b.state);
        for (std::int64_t first = begin; first < end; first += kRecurrentRows)
            runChunk(head, first, std::min(kRecurrentRows, end - first));
        if (kept && end == m_args.mixed.dims[0])
            stateFromStrips(m_s, m_b.state, kept);
    }

private:
    void runChunk(std::int64_t head, std::int64_t first, std::int64_t count) noexcept
    {
        const std::int64_t keyHead = head / m_reader.group();
        m_reader.loadNormed(first, count, m_reader.queryColumn(keyHead), m_reader.queryScale(),
            m_b.query, m_b.factors);
        m_reader.loadNormed(first, count, m_reader.keyColumn(keyHead), 1.0F, m_b.key, m_b.factors);
        m_reader.loadGates(first, count, head, m_b.decay, m_b.beta);
        packRows(m_reader.mixed(first, m_reader.valueColumn(head)), m_reader.shape().columns(),
            count, m_s.valueDim, m_b.value, m_s.valueRow);
        deltaHead({m_b.query, m_b.key, m_b.decay, m_b.beta, m_b.value, m_b.out, nullptr, m_b.state,
                      count, m_s.keyDim, m_s.keyRow, m_s.valueRow},
            m_s);
        T* out = m_args.out.as<T>() + first * m_args.out.dims[1] + head * m_s.valueDim;
        for (std::int64_t t = 0; t < count; ++t, out += m_args.out.dims[1])
            for (std::int64_t c = 0; c < m_s.valueDim; ++c)
                out[c] = fromFloat<T>(m_b.out[t * m_s.valueRow + c]);
    }

    const GatedDeltaArgs& m_args;
    DeltaReader<T> m_reader;
    DeltaSizes m_s;
    DeltaBuffers m_b;
};

// Documents [first, end) of `starts`, by value head.
template <typename T>
void runDocuments(const GatedDeltaArgs& args, ThreadPool& pool, Scratch& scratch,
    const std::int64_t* starts, std::int64_t count)
{
    const std::int64_t heads = args.shape.valueHeads;
    pool.parallelFor(count * heads, [&](std::int64_t item, int worker) {
        const std::int64_t* document = starts + item / heads;
        DeltaUnit<T>(args, scratch.of(worker)).run(item % heads, document[0], document[1]);
    });
}

} // namespace

void gatedDelta(const GatedDeltaArgs& args, ThreadPool& pool, Scratch& scratch)
{
    if (args.mixed.dims[0] == 0)
        return;
    const auto hold = scratch.hold(DeltaBuffers::floats(DeltaSizes(args.shape)));
    std::vector<std::int64_t>& starts = scratch.numbers();
    listDocuments(args.documentFrom, starts);
    // The last document's units store `state`, which those of the first read.
    const auto documents = static_cast<std::int64_t>(starts.size()) - 1;
    const std::int64_t early = args.state.data ? documents - 1 : documents;
    withType(args.mixed.dtype, [&](auto* tag) {
        using T = std::remove_pointer_t<decltype(tag)>;
        runDocuments<T>(args, pool, scratch, starts.data(), early);
        runDocuments<T>(args, pool, scratch, starts.data() + early, documents - early);
    });
}

} // namespace mr::cpu
