#include "core/data/sequence_store.h"

#include "core/base/cache_folder.h"

#include <algorithm>
#include <cassert>
#include <system_error>

namespace mr {
namespace {

namespace fs = std::filesystem;

// A word is an id with the flag of its token in the bit that ids do not use.
constexpr std::uint32_t kTrained = 1U << 31;
constexpr std::size_t kBufferedWords = std::size_t{1} << 18; // 1 MiB a write

Result<fs::path> spillFolder(const fs::path& asked)
{
    if (asked.empty())
        return cacheFolder();
    std::error_code error;
    fs::create_directories(asked, error);
    if (error)
        return Status::error(ErrorKind::Io,
            "cannot make the folder " + asked.string() + " for the tokens of a large dataset: " +
                error.message() + "; name another one in XDG_CACHE_HOME");
    return asked;
}

} // namespace

Result<File> makeSpillFile(const fs::path& folder)
{
    MR_ASSIGN(auto found, spillFolder(folder));
    return File::createUnnamed(found);
}

struct SequenceStore::Bulk {
    SequenceSpill spill;
    std::vector<std::uint64_t> ends{0}; // sequence i: words [ends[i], ends[i + 1])
    File file;                          // the first `written` words, once there are too many
    std::uint64_t written = 0;
    std::vector<std::uint32_t> words; // words behind the written ones

    Status write()
    {
        if (!file.isOpen()) {
            MR_ASSIGN(file, makeSpillFile(spill.folder));
        }
        MR_TRY(file.write(std::as_bytes(std::span(words))));
        written += words.size();
        words = {};
        words.reserve(kBufferedWords);
        return {};
    }
};

SequenceStore::SequenceStore()
    : SequenceStore(SequenceSpill{})
{
}

SequenceStore::SequenceStore(SequenceSpill spill)
    : m_bulk(std::make_shared<Bulk>())
{
    m_bulk->spill = std::move(spill);
}

SequenceStore::SequenceStore(std::shared_ptr<Bulk> bulk, std::vector<std::uint32_t> picks)
    : m_bulk(std::move(bulk))
    , m_isPart(true)
    , m_picks(std::move(picks))
{
}

Status SequenceStore::add(std::span<const TokenId> tokens, std::span<const std::uint8_t> trained)
{
    assert(!m_isPart && m_bulk.use_count() == 1 && tokens.size() == trained.size());
    Bulk& bulk = *m_bulk;
    const std::size_t limit =
        bulk.file.isOpen() ? kBufferedWords : std::max(bulk.spill.memoryTokens, std::size_t{1});
    // Before and not after: a sequence lies in the file or in memory, never in both.
    if (!bulk.words.empty() && bulk.words.size() + tokens.size() > limit)
        MR_TRY(bulk.write());
    for (std::size_t t = 0; t < tokens.size(); ++t)
        bulk.words.push_back(
            static_cast<std::uint32_t>(tokens[t]) | (trained[t] != 0 ? kTrained : 0U));
    bulk.ends.push_back(bulk.ends.back() + tokens.size());
    return {};
}

std::int64_t SequenceStore::count() const noexcept
{
    return static_cast<std::int64_t>(m_isPart ? m_picks.size() : m_bulk->ends.size() - 1);
}

std::size_t SequenceStore::stored(std::int64_t index) const noexcept
{
    assert(index >= 0 && index < count());
    const auto i = static_cast<std::size_t>(index);
    return m_isPart ? m_picks[i] : i;
}

std::uint64_t SequenceStore::tokens() const noexcept
{
    if (!m_isPart)
        return m_bulk->ends.back();
    std::uint64_t sum = 0;
    for (std::int64_t i = 0; i < count(); ++i)
        sum += length(i);
    return sum;
}

std::size_t SequenceStore::length(std::int64_t index) const noexcept
{
    const std::size_t i = stored(index);
    return static_cast<std::size_t>(m_bulk->ends[i + 1] - m_bulk->ends[i]);
}

Status SequenceStore::read(std::int64_t index, TokenSequence& out) const
{
    const Bulk& bulk = *m_bulk;
    const std::uint64_t first = bulk.ends[stored(index)];
    const std::size_t count = length(index);
    out.tokens.resize(count);
    out.trained.resize(count);
    const std::span<std::byte> bytes = std::as_writable_bytes(std::span(out.tokens));
    if (first < bulk.written) {
        MR_TRY(bulk.file.readAt(first * sizeof(std::uint32_t), bytes));
    } else {
        const auto words = std::as_bytes(
            std::span(bulk.words).subspan(static_cast<std::size_t>(first - bulk.written), count));
        std::copy(words.begin(), words.end(), bytes.begin());
    }
    for (std::size_t t = 0; t < count; ++t) {
        const auto word = static_cast<std::uint32_t>(out.tokens[t]);
        out.trained[t] = static_cast<std::uint8_t>(word >> 31);
        out.tokens[t] = static_cast<TokenId>(word & ~kTrained);
    }
    return {};
}

std::pair<SequenceStore, SequenceStore> SequenceStore::split(
    std::span<const std::uint32_t> these) const
{
    std::vector<std::uint32_t> others;
    std::vector<std::uint32_t> picked;
    others.reserve(static_cast<std::size_t>(count()) - these.size());
    picked.reserve(these.size());
    std::size_t next = 0;
    for (std::int64_t i = 0; i < count(); ++i) {
        const bool isPicked = next < these.size() && these[next] == static_cast<std::uint32_t>(i);
        next += isPicked ? 1 : 0;
        (isPicked ? picked : others).push_back(static_cast<std::uint32_t>(stored(i)));
    }
    return {SequenceStore(m_bulk, std::move(others)), SequenceStore(m_bulk, std::move(picked))};
}

SequenceStore SequenceStore::firstOnes(std::int64_t count) const
{
    std::vector<std::uint32_t> picks(static_cast<std::size_t>(std::min(count, this->count())));
    for (std::size_t i = 0; i < picks.size(); ++i)
        picks[i] = static_cast<std::uint32_t>(stored(static_cast<std::int64_t>(i)));
    return {m_bulk, std::move(picks)};
}

} // namespace mr
