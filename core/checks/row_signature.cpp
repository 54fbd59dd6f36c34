#include "core/checks/row_signature.h"

#include "core/base/utf8.h"

#include <algorithm>
#include <limits>

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace mr {
namespace {

constexpr std::size_t kWordsOfAShingle = 5;
constexpr std::size_t kLeastShingles = 10;
// Agreeing bytes that are expected at the likeness asked for: one byte of two different values
// agrees by chance once in 256.
constexpr int kAlikeRow = 52;     // of 64: 0.8
constexpr int kAlikeAnswers = 12; // of 16: 0.75

std::uint64_t hashOf(const void* bytes, std::size_t size) noexcept
{
    return XXH3_64bits(bytes, size);
}

// Odd multipliers and increments of the random functions, from the splitmix64 sequence.
struct Functions {
    std::array<std::uint32_t, kRowHashes> multiply{};
    std::array<std::uint32_t, kRowHashes> add{};
};

constexpr std::uint64_t mixed(std::uint64_t x) noexcept
{
    x = (x ^ (x >> 30)) * 0xBF58476D1CE4E5B9ULL;
    x = (x ^ (x >> 27)) * 0x94D049BB133111EBULL;
    return x ^ (x >> 31);
}

constexpr Functions makeFunctions() noexcept
{
    Functions out;
    std::uint64_t state = 0;
    for (std::size_t i = 0; i < kRowHashes; ++i) {
        state += 0x9E3779B97F4A7C15ULL;
        const std::uint64_t bits = mixed(state);
        out.multiply[i] = static_cast<std::uint32_t>(bits) | 1U;
        out.add[i] = static_cast<std::uint32_t>(bits >> 32);
    }
    return out;
}

constexpr Functions kFunctions = makeFunctions();

template <std::size_t N>
class LeastValues
{
public:
    LeastValues() { m_least.fill(std::numeric_limits<std::uint32_t>::max()); }

    void add(std::uint64_t element) noexcept
    {
        const auto x = static_cast<std::uint32_t>(element ^ (element >> 32));
        for (std::size_t i = 0; i < N; ++i)
            m_least[i] = std::min(m_least[i], kFunctions.multiply[i] * x + kFunctions.add[i]);
    }

    std::array<std::uint8_t, N> bytes() const noexcept
    {
        std::array<std::uint8_t, N> out{};
        for (std::size_t i = 0; i < N; ++i)
            out[i] = static_cast<std::uint8_t>((m_least[i] * 0x9E3779B1U) >> 24);
        return out;
    }

private:
    std::array<std::uint32_t, N> m_least{};
};

bool isAsciiWord(std::int32_t code) noexcept
{
    return (code >= '0' && code <= '9') || (code >= 'a' && code <= 'z') ||
           (code >= 'A' && code <= 'Z');
}

// Scripts that part no words: ideographs, kana and what is in the planes behind.
bool isWordByItself(std::int32_t code) noexcept
{
    return (code >= 0x3040 && code <= 0x30FF) || (code >= 0x3400 && code <= 0x9FFF) ||
           (code >= 0xF900 && code <= 0xFAFF) || code >= 0x20000;
}

// Letters beyond ASCII, and no punctuation of Latin-1, of the general block or of ideographs.
bool isOtherWord(std::int32_t code) noexcept
{
    return code >= 0xC0 && !(code >= 0x2000 && code <= 0x206F) &&
           !(code >= 0x3000 && code <= 0x303F) && !(code >= 0xFF00 && code <= 0xFF0F);
}

// Calls `take` with the hash of each word.
template <typename Take>
void forEachWord(std::string_view text, Take&& take)
{
    std::string word;
    const auto end = [&] {
        if (!word.empty())
            take(hashOf(word.data(), word.size()));
        word.clear();
    };
    for (std::size_t at = 0; at < text.size();) {
        const Character c = characterAt(text, at);
        if (isWordByItself(c.code)) {
            end();
            take(hashOf(text.data() + at, c.bytes));
        } else if (isAsciiWord(c.code)) {
            word.push_back(
                static_cast<char>(c.code >= 'A' && c.code <= 'Z' ? c.code + 32 : c.code));
        } else if (isOtherWord(c.code)) {
            word.append(text, at, c.bytes);
        } else {
            end();
        }
        at += c.bytes;
    }
    end();
}

// Hashes of the last words, in a ring.
class Shingles
{
public:
    template <typename Take>
    void add(std::uint64_t word, Take&& take)
    {
        std::copy(m_words.begin() + 1, m_words.end(), m_words.begin());
        m_words.back() = word;
        if (++m_count >= kWordsOfAShingle)
            take(hashOf(m_words.data(), sizeof m_words));
    }

private:
    std::array<std::uint64_t, kWordsOfAShingle> m_words{};
    std::size_t m_count = 0;
};

template <std::size_t N>
int agreeing(const std::array<std::uint8_t, N>& a, const std::array<std::uint8_t, N>& b) noexcept
{
    int same = 0;
    for (std::size_t i = 0; i < N; ++i)
        same += a[i] == b[i] ? 1 : 0;
    return same;
}

} // namespace

std::optional<RowSignature> signatureOf(const std::vector<RowTurn>& turns)
{
    LeastValues<kRowHashes> row;
    LeastValues<kAnswerHashes> answers;
    Shingles shingles;
    std::size_t count = 0;
    bool hasAnswers = false;
    for (const RowTurn& turn : turns) {
        const bool isAnswer = turn.role == TurnRole::Assistant;
        hasAnswers |= isAnswer;
        forEachWord(turn.text, [&](std::uint64_t word) {
            if (isAnswer)
                answers.add(word);
            shingles.add(word, [&](std::uint64_t shingle) {
                row.add(shingle);
                ++count;
            });
        });
    }
    if (count < kLeastShingles)
        return std::nullopt;
    RowSignature out;
    out.row = row.bytes();
    if (hasAnswers)
        out.answers = answers.bytes();
    return out;
}

bool areAlike(const RowSignature& a, const RowSignature& b) noexcept
{
    return agreeing(a.row, b.row) >= kAlikeRow && agreeing(a.answers, b.answers) >= kAlikeAnswers;
}

} // namespace mr
