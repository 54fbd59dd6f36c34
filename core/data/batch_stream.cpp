#include "core/data/batch_stream.h"

#include "core/base/thread.h"

#include <algorithm>
#include <array>
#include <cassert>
#include <condition_variable>
#include <mutex>
#include <numeric>
#include <thread>

namespace mr {
namespace {

void padRows(std::size_t begin, std::size_t end, MicroBatchData& out)
{
    for (std::size_t t = begin; t < end; ++t) {
        out.ids[t] = 0;
        out.targets[t] = -1;
        out.positions[t] = 0;
        out.visibleFrom[t] = static_cast<std::int32_t>(t);
    }
}

// Lays one sequence down from place `begin` on; returns the first place it does not use. The one
// shift of the program is here: place t gets token t as input and token t + 1 as target. So the
// last token is only a target, and the first one of the sequence behind it is none of this one.
std::size_t placeSequence(
    const TokenSequence& sequence, std::size_t begin, std::size_t end, MicroBatchData& out)
{
    assert(!sequence.tokens.empty() && sequence.tokens.size() <= end - begin + 1);
    const std::size_t count = std::min(sequence.tokens.size() - 1, end - begin);
    for (std::size_t i = 0; i < count; ++i) {
        const std::size_t t = begin + i;
        out.ids[t] = sequence.tokens[i];
        out.targets[t] = sequence.trained[i + 1] != 0 ? sequence.tokens[i + 1] : -1;
        out.positions[t] = static_cast<std::int32_t>(i);
        out.visibleFrom[t] = static_cast<std::int32_t>(begin);
    }
    return begin + count;
}

std::size_t resizeMicroBatch(const BatchShape& shape, MicroBatchData& out)
{
    const auto total = static_cast<std::size_t>(shape.seqLen * shape.microBatch);
    for (auto* column : {&out.ids, &out.targets, &out.positions, &out.visibleFrom, &out.order})
        column->resize(total);
    return total;
}

void sortByIds(MicroBatchData& out)
{
    std::iota(out.order.begin(), out.order.end(), 0);
    // The index decides ties, which makes std::sort stable without std::stable_sort's memory.
    std::sort(out.order.begin(), out.order.end(), [&](std::int32_t a, std::int32_t b) {
        const std::int32_t idA = out.ids[static_cast<std::size_t>(a)];
        const std::int32_t idB = out.ids[static_cast<std::size_t>(b)];
        return idA != idB ? idA < idB : a < b;
    });
}

std::span<const std::uint32_t> sequencesOfRow(const TokenSet& set, const std::uint32_t& row)
{
    return set.packing.count() > 0 ? set.packing.row(row) : std::span(&row, 1);
}

std::int64_t inputsOfRow(const TokenSet& set, std::uint32_t row)
{
    std::int64_t inputs = 0;
    for (const std::uint32_t sequence : sequencesOfRow(set, row))
        inputs += static_cast<std::int64_t>(set.sequences.length(sequence)) - 1;
    return inputs;
}

// The sequences of a row of `set` from place `begin` on; the rest up to `end` is padding.
Status readRow(const TokenSet& set, std::uint32_t row, std::size_t begin, std::size_t end,
    TokenSequence& scratch, MicroBatchData& out)
{
    for (const std::uint32_t sequence : sequencesOfRow(set, row)) {
        MR_TRY(set.sequences.read(sequence, scratch));
        if (!scratch.tokens.empty())
            begin = placeSequence(scratch, begin, end, out);
    }
    padRows(begin, end, out);
    return {};
}

// Draws whole steps from a sampler.
class StepMaker
{
public:
    StepMaker(const TokenSet& set, const BatchShape& shape, SamplerState state)
        : m_set(set)
        , m_shape(shape)
        , m_sampler(state)
        , m_rows(static_cast<std::size_t>(shape.microBatch))
    {
        // The longest sequence may come at any step.
        m_read.tokens.reserve(static_cast<std::size_t>(shape.seqLen) + 1);
        m_read.trained.reserve(static_cast<std::size_t>(shape.seqLen) + 1);
    }

    Status fill(StepBatch& step)
    {
        step.micros.resize(static_cast<std::size_t>(m_shape.accumulate));
        step.tokens = 0;
        step.trainedTokens = 0;
        for (MicroBatchData& micro : step.micros) {
            for (std::int64_t& row : m_rows) {
                row = m_sampler.next();
                step.tokens += inputsOfRow(m_set, static_cast<std::uint32_t>(row));
            }
            MR_TRY(readMicroBatch(m_set, m_rows, m_shape, m_read, micro));
            step.trainedTokens += std::count_if(
                micro.targets.begin(), micro.targets.end(), [](std::int32_t t) { return t >= 0; });
        }
        step.after = m_sampler.state();
        return {};
    }

private:
    const TokenSet& m_set;
    const BatchShape m_shape;
    Sampler m_sampler;
    std::vector<std::int64_t> m_rows;
    TokenSequence m_read;
};

class ThreadedStream final : public BatchStream
{
public:
    ThreadedStream(const TokenSet& set, const BatchShape& shape, SamplerState state)
        : m_maker(set, shape, state)
        , m_empty(set.count() == 0)
    {
    }

    // Apart from the constructor: the thread uses every member.
    void run()
    {
        m_thread = startThread(
            {"data", -1}, [this](const std::stop_token&) { return produce(); },
            [this](const Status& status) { fail(status); });
    }

    ~ThreadedStream() override
    {
        close();
        if (m_thread.joinable())
            m_thread.join();
    }

    Status next(StepBatch& out) override
    {
        std::unique_lock lock(m_mutex);
        m_changed.wait(lock, [this] { return m_closed || m_ready > 0 || !m_error.ok(); });
        if (m_closed)
            return Status::error(ErrorKind::Cancelled, "the batch stream is closed");
        if (m_ready == 0)
            return m_error;
        std::swap(out, m_slots.at(m_head));
        m_head = (m_head + 1) % kSteps;
        --m_ready;
        m_changed.notify_all();
        return {};
    }

    void close() noexcept override
    {
        const std::scoped_lock lock(m_mutex);
        m_closed = true;
        m_changed.notify_all();
    }

private:
    static constexpr std::size_t kSteps = 2;

    Status produce()
    {
        if (m_empty)
            return Status::error(
                ErrorKind::InvalidArgument, "the dataset has no sequence to train on");
        for (std::size_t tail = 0;; tail = (tail + 1) % kSteps) {
            {
                std::unique_lock lock(m_mutex);
                m_changed.wait(lock, [this] { return m_closed || m_ready < kSteps; });
                if (m_closed)
                    return {};
            }
            // The slot at the tail is this thread's until it is counted as ready.
            MR_TRY(m_maker.fill(m_slots.at(tail)));
            const std::scoped_lock lock(m_mutex);
            ++m_ready;
            m_changed.notify_all();
        }
    }

    void fail(const Status& status)
    {
        const std::scoped_lock lock(m_mutex);
        m_error = status;
        m_changed.notify_all();
    }

    // Data thread only.
    StepMaker m_maker;
    const bool m_empty;

    std::mutex m_mutex;
    std::condition_variable m_changed;
    // Guarded by m_mutex; slots [head, head + ready) belong to next(), the others to the data
    // thread.
    std::array<StepBatch, kSteps> m_slots;
    std::size_t m_head = 0;
    std::size_t m_ready = 0;
    bool m_closed = false;
    Status m_error;

    std::jthread m_thread; // last: joined before the members it uses are gone
};

} // namespace

void fillMicroBatch(
    std::span<const TokenSequence> sequences, const BatchShape& shape, MicroBatchData& out)
{
    const auto places = static_cast<std::size_t>(shape.seqLen);
    const std::size_t total = resizeMicroBatch(shape, out);
    for (std::size_t begin = 0, b = 0; begin < total; begin += places, ++b) {
        const bool have = b < sequences.size() && !sequences[b].tokens.empty();
        const std::size_t end = begin + places;
        padRows(have ? placeSequence(sequences[b], begin, end, out) : begin, end, out);
    }
    sortByIds(out);
}

Status readMicroBatch(const TokenSet& set, std::span<const std::int64_t> rows,
    const BatchShape& shape, TokenSequence& scratch, MicroBatchData& out)
{
    const auto places = static_cast<std::size_t>(shape.seqLen);
    const std::size_t total = resizeMicroBatch(shape, out);
    for (std::size_t begin = 0, b = 0; begin < total; begin += places, ++b) {
        const std::size_t end = begin + places;
        if (b < rows.size() && rows[b] >= 0)
            MR_TRY(readRow(set, static_cast<std::uint32_t>(rows[b]), begin, end, scratch, out));
        else
            padRows(begin, end, out);
    }
    sortByIds(out);
    return {};
}

std::unique_ptr<BatchStream> BatchStream::start(
    const TokenSet& set, const BatchShape& shape, SamplerState state)
{
    state.count = static_cast<std::uint64_t>(set.batchRows());
    auto stream = std::make_unique<ThreadedStream>(set, shape, state);
    stream->run();
    return stream;
}

} // namespace mr
