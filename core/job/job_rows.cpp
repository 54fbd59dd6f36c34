#include "core/job/job_rows.h"

#include "core/model/safetensors.h"

#include <algorithm>
#include <memory>
#include <numeric>
#include <span>
#include <string>
#include <unordered_map>
#include <utility>

namespace mr {
namespace fs = std::filesystem;
namespace {

using Column = std::vector<std::int32_t> MicroBatchData::*;

// One row after the other; the last one is kept.
class RowReader
{
public:
    RowReader(const TokenSet& set, std::int64_t seqLen)
        : m_set(set)
        , m_shape{seqLen, 1, 1}
    {
    }

    Result<const MicroBatchData*> read(std::int64_t row)
    {
        if (row != m_row) {
            MR_TRY(readMicroBatch(m_set, std::span(&row, 1), m_shape, m_scratch, m_data));
            m_row = row;
        }
        return &m_data;
    }

    // Values [first, first + out.size()) of a column of these rows, laid end to end.
    Status copy(std::span<const std::int64_t> rows, Column column, std::uint64_t first,
        std::span<std::int32_t> out)
    {
        const auto places = static_cast<std::uint64_t>(m_shape.seqLen);
        for (std::size_t done = 0; done < out.size();) {
            const std::uint64_t at = first + done;
            MR_ASSIGN(const MicroBatchData* data, read(rows[at / places]));
            const auto values = std::span(data->*column).subspan(at % places);
            const auto part = values.first(std::min(values.size(), out.size() - done));
            std::ranges::copy(part, out.subspan(done).begin());
            done += part.size();
        }
        return {};
    }

private:
    const TokenSet& m_set;
    BatchShape m_shape;
    TokenSequence m_scratch;
    MicroBatchData m_data;
    std::int64_t m_row = -1;
};

std::int64_t inputsOf(const TokenSet& set, std::int64_t row)
{
    const auto only = static_cast<std::uint32_t>(row);
    const auto sequences =
        set.packing.count() > 0 ? set.packing.row(row) : std::span<const std::uint32_t>(&only, 1);
    return std::accumulate(sequences.begin(), sequences.end(), std::int64_t{0},
        [&](std::int64_t sum, std::uint32_t sequence) {
            return sum + static_cast<std::int64_t>(set.sequences.length(sequence)) - 1;
        });
}

// One row, as it is known once it was drawn.
struct DrawnRow {
    std::int32_t number = 0;
    std::int64_t trained = 0;
    std::int64_t tokens = 0;
};

class OrderMaker
{
public:
    OrderMaker(const TokenSet& set, const BatchShape& shape, SamplerState state)
        : m_set(set)
        , m_rowsOfStep(shape.microBatch * shape.accumulate)
        , m_sampler(state)
        , m_reader(set, shape.seqLen)
    {
    }

    Status addStep(JobOrder& order)
    {
        std::int64_t trained = 0;
        std::int64_t tokens = 0;
        for (std::int64_t i = 0; i < m_rowsOfStep; ++i) {
            MR_ASSIGN(const DrawnRow row, draw(order));
            order.numbers.push_back(row.number);
            trained += row.trained;
            tokens += row.tokens;
        }
        order.trained.push_back(trained);
        order.tokens.push_back(tokens);
        return {};
    }

private:
    Result<DrawnRow> draw(JobOrder& order)
    {
        const std::int64_t row = m_sampler.next();
        const auto known = m_known.find(row);
        if (known != m_known.end())
            return known->second;
        MR_ASSIGN(const MicroBatchData* data, m_reader.read(row));
        const auto trained =
            std::ranges::count_if(data->targets, [](std::int32_t target) { return target >= 0; });
        const DrawnRow drawn{
            static_cast<std::int32_t>(order.rows.size()), trained, inputsOf(m_set, row)};
        m_known.emplace(row, drawn);
        order.rows.push_back(row);
        return drawn;
    }

    const TokenSet& m_set;
    std::int64_t m_rowsOfStep;
    Sampler m_sampler;
    RowReader m_reader;
    std::unordered_map<std::int64_t, DrawnRow> m_known;
};

SafetensorSource columnOf(const char* name, Column column, std::span<const std::int64_t> rows,
    std::int64_t seqLen, const std::shared_ptr<RowReader>& reader)
{
    SafetensorSource source;
    source.name = name;
    source.dtype = "I32";
    source.shape = {std::ssize(rows), seqLen};
    source.bytes = sizeof(std::int32_t) * rows.size() * static_cast<std::uint64_t>(seqLen);
    source.fill = [=](std::uint64_t offset, std::span<std::byte> out) {
        std::vector<std::int32_t> values(out.size() / sizeof(std::int32_t));
        MR_TRY(reader->copy(rows, column, offset / sizeof(std::int32_t), values));
        std::ranges::copy(std::as_bytes(std::span(values)), out.begin());
        return Status();
    };
    return source;
}

Status writeRows(const fs::path& file, const TokenSet& set, std::span<const std::int64_t> rows,
    std::int64_t seqLen)
{
    const auto reader = std::make_shared<RowReader>(set, seqLen);
    return writeSafetensors(
        file, {columnOf("ids", &MicroBatchData::ids, rows, seqLen, reader),
                  columnOf("targets", &MicroBatchData::targets, rows, seqLen, reader),
                  columnOf("positions", &MicroBatchData::positions, rows, seqLen, reader)});
}

template <typename T>
SafetensorSource listOf(const char* name, const char* dtype, std::vector<std::int64_t> shape,
    const std::vector<T>& values)
{
    SafetensorSource source;
    source.name = name;
    source.dtype = dtype;
    source.shape = std::move(shape);
    source.bytes = sizeof(T) * values.size();
    source.fill = [bytes = std::as_bytes(std::span(values))](
                      std::uint64_t offset, std::span<std::byte> out) {
        std::ranges::copy(bytes.subspan(offset, out.size()), out.begin());
        return Status();
    };
    return source;
}

} // namespace

Result<JobOrder> drawOrder(
    const TokenSet& set, const BatchShape& shape, SamplerState sampler, std::int64_t steps)
{
    JobOrder order;
    OrderMaker maker(set, shape, sampler);
    for (std::int64_t step = 0; step < steps; ++step)
        MR_TRY(maker.addStep(order));
    return order;
}

Status writeJobRows(const fs::path& folder, const TokenSet& train, const JobOrder& order,
    const TokenSet& eval, const BatchShape& shape)
{
    MR_TRY(writeRows(folder / "train.safetensors", train, order.rows, shape.seqLen));
    const std::int64_t steps = std::ssize(order.trained);
    MR_TRY(writeSafetensors(folder / "index.safetensors",
        {listOf("rows", "I32", {steps, shape.accumulate, shape.microBatch}, order.numbers),
            listOf("trained", "I64", {steps}, order.trained),
            listOf("tokens", "I64", {steps}, order.tokens)}));
    if (eval.count() == 0)
        return {};
    std::vector<std::int64_t> rows(static_cast<std::size_t>(eval.count()));
    std::iota(rows.begin(), rows.end(), std::int64_t{0});
    return writeRows(folder / "eval.safetensors", eval, rows, shape.seqLen);
}

} // namespace mr
