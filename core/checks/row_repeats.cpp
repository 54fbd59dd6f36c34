#include "core/checks/row_repeats.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

namespace mr {
namespace {

constexpr std::size_t kBands = 16;
constexpr std::size_t kBandBytes = kRowHashes / kBands;
constexpr std::size_t kMostCompared = 64;

} // namespace

void RowRepeats::add(
    const RowHash& hash, const std::optional<RowSignature>& signature, bool isEvaluation)
{
    Row row;
    row.hash = hash;
    if (signature) {
        row.signature = static_cast<std::uint32_t>(m_signatures.size());
        m_signatures.push_back(*signature);
    }
    m_rows.push_back(row);
    m_evaluation += isEvaluation ? 1 : 0;
}

std::vector<std::uint32_t> RowRepeats::findSame(Found& out) const
{
    std::vector<std::uint32_t> order(m_rows.size());
    std::iota(order.begin(), order.end(), 0U);
    std::sort(order.begin(), order.end(), [this](std::uint32_t a, std::uint32_t b) {
        return m_rows[a].hash != m_rows[b].hash ? m_rows[a].hash < m_rows[b].hash : a < b;
    });
    std::vector<std::uint32_t> firsts;
    for (std::size_t begin = 0, end = 0; begin < order.size(); begin = end) {
        std::uint32_t evaluation = kNone;
        std::uint32_t training = kNone;
        for (end = begin;
             end < order.size() && m_rows[order[end]].hash == m_rows[order[begin]].hash; ++end) {
            const std::uint32_t row = order[end];
            std::uint32_t& first = isEvaluation(row) ? evaluation : training;
            if (first == kNone)
                firsts.push_back(row);
            out.same[row] = std::exchange(first, std::min(first, row));
            if (!isEvaluation(row))
                out.sameInEvaluation[row] = evaluation;
        }
    }
    return firsts;
}

void RowRepeats::compareBucket(const std::vector<std::uint32_t>& bucket, Found& out) const
{
    const auto firstAlike = [&](std::uint32_t row, std::size_t begin, std::size_t end) {
        const RowSignature& mine = m_signatures[m_rows[row].signature];
        end = std::min(end, begin + kMostCompared);
        for (std::size_t i = begin; i < end; ++i)
            if (areAlike(m_signatures[m_rows[bucket[i]].signature], mine))
                return bucket[i];
        return kNone;
    };
    const auto split =
        static_cast<std::size_t>(std::partition_point(bucket.begin(), bucket.end(),
                                     [this](std::uint32_t row) { return isEvaluation(row); }) -
                                 bucket.begin());
    for (std::size_t i = 0; i < bucket.size(); ++i) {
        const std::uint32_t row = bucket[i];
        const bool evaluation = i < split;
        const std::uint32_t earlier = firstAlike(row, evaluation ? 0 : split, i);
        out.alike[row] = std::min(out.alike[row], earlier);
        if (!evaluation)
            out.alikeInEvaluation[row] =
                std::min(out.alikeInEvaluation[row], firstAlike(row, 0, split));
    }
}

void RowRepeats::compareBand(
    std::size_t band, const std::vector<std::uint32_t>& rows, Found& out) const
{
    std::vector<std::pair<std::uint32_t, std::uint32_t>> keys; // {bytes of the band, row}
    keys.reserve(rows.size());
    for (const std::uint32_t row : rows) {
        std::uint32_t key = 0;
        std::memcpy(
            &key, m_signatures[m_rows[row].signature].row.data() + band * kBandBytes, sizeof key);
        keys.emplace_back(key, row);
    }
    std::sort(keys.begin(), keys.end());
    std::vector<std::uint32_t> bucket;
    for (std::size_t i = 0; i < keys.size(); ++i) {
        bucket.push_back(keys[i].second);
        if (i + 1 < keys.size() && keys[i + 1].first == keys[i].first)
            continue;
        if (bucket.size() > 1)
            compareBucket(bucket, out);
        bucket.clear();
    }
}

RowRepeats::Found RowRepeats::find() const
{
    Found out;
    for (auto* part : {&out.same, &out.alike, &out.sameInEvaluation, &out.alikeInEvaluation})
        part->assign(m_rows.size(), kNone);
    std::vector<std::uint32_t> rows = findSame(out);
    rows.erase(std::remove_if(rows.begin(), rows.end(),
                   [this](std::uint32_t row) { return m_rows[row].signature == kNone; }),
        rows.end());
    for (std::size_t band = 0; band < kBands; ++band)
        compareBand(band, rows, out);
    return out;
}

} // namespace mr
