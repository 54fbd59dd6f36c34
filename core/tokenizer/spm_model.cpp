#include "core/tokenizer/spm_model.h"

#include "core/tokenizer/unicode_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

namespace mr {
namespace {

enum Wire : std::uint32_t { Varint = 0, Fixed64 = 1, Bytes = 2, Fixed32 = 5 };

constexpr std::uint32_t kPieceMessage = 1; // fields of ModelProto
constexpr std::uint32_t kTrainerMessage = 2;
constexpr std::uint32_t kNormalizerMessage = 3;
constexpr std::uint32_t kSelfTestMessage = 4;
constexpr std::uint32_t kDenormalizerMessage = 5;

struct ProtoField {
    std::uint32_t number = 0;
    std::uint32_t wire = 0;
    std::uint64_t value = 0;  // Varint, Fixed32, Fixed64
    std::string_view bytes;   // Bytes
    std::string_view encoded; // tag and all
};

class ProtoWalker
{
public:
    explicit ProtoWalker(std::string_view data)
        : m_rest(data)
    {
    }

    // False at the end or at the first broken field; broken() tells which.
    bool next(ProtoField& out)
    {
        if (m_rest.empty())
            return false;
        const std::string_view before = m_rest;
        m_broken = !parse(out);
        if (m_broken)
            return false;
        out.encoded = before.substr(0, before.size() - m_rest.size());
        return true;
    }
    bool broken() const noexcept { return m_broken; }

private:
    bool varint(std::uint64_t& out)
    {
        out = 0;
        for (unsigned shift = 0; shift < 64 && !m_rest.empty(); shift += 7) {
            const auto byte = static_cast<unsigned char>(m_rest.front());
            m_rest.remove_prefix(1);
            out |= std::uint64_t{byte & 0x7FU} << shift;
            if (byte < 0x80)
                return true;
        }
        return false;
    }

    bool fixed(std::size_t bytes, std::uint64_t& out)
    {
        if (m_rest.size() < bytes)
            return false;
        out = 0;
        std::memcpy(&out, m_rest.data(), bytes); // little-endian, like every machine we run on
        m_rest.remove_prefix(bytes);
        return true;
    }

    bool parse(ProtoField& out)
    {
        std::uint64_t tag = 0;
        if (!varint(tag) || tag >> 3 == 0 || tag >> 32 != 0)
            return false;
        out.number = static_cast<std::uint32_t>(tag >> 3);
        out.wire = static_cast<std::uint32_t>(tag & 7);
        out.bytes = {};
        switch (out.wire) {
        case Varint:
            return varint(out.value);
        case Fixed64:
            return fixed(8, out.value);
        case Fixed32:
            return fixed(4, out.value);
        case Bytes:
            if (!varint(out.value) || out.value > m_rest.size())
                return false;
            out.bytes = m_rest.substr(0, out.value);
            m_rest.remove_prefix(out.value);
            return true;
        default:
            return false; // groups are not used by any SentencePiece model
        }
    }

    std::string_view m_rest;
    bool m_broken = false;
};

Status bad(std::string message)
{
    return Status::error(ErrorKind::InvalidArgument, std::move(message));
}

constexpr std::int32_t kMark = 0x2581; // stands for a space in pieces

std::uint64_t joint(std::int32_t left, std::int32_t right)
{
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 |
           static_cast<std::uint32_t>(right);
}

bool isSpaceOrMark(std::int32_t code) noexcept
{
    return code == ' ' || code == kMark;
}

Status readPiece(std::string_view message, SpmModel& model)
{
    const std::string at = fmt::format("piece {}", model.pieces);
    ProtoWalker walker(message);
    std::string_view text;
    SpmModel::Piece piece;
    ProtoField field;
    while (walker.next(field)) {
        if (field.number == 1 && field.wire == Bytes)
            text = field.bytes;
        if (field.number == 2 && field.wire == Fixed32) {
            float score = 0;
            const auto word = static_cast<std::uint32_t>(field.value);
            std::memcpy(&score, &word, sizeof score);
            if (!std::isfinite(score))
                return bad(at + " has a score that is not a finite number");
            piece.score = score;
        }
        if (field.number == 3 && (field.wire != Varint || field.value < 1 || field.value > 6))
            return bad(at + " has an unknown type");
        if (field.number == 3)
            piece.type = static_cast<SpmModel::Type>(field.value);
    }
    if (walker.broken())
        return bad(at + " is damaged");
    if (text.empty() || text.find('\0') != std::string_view::npos)
        return bad(at + " has " + (text.empty() ? "no text" : "a NUL in its text"));
    Character before = characterAt(text, 0);
    for (std::size_t place = before.bytes; place < text.size();) {
        const Character next = characterAt(text, place);
        model.joints.push_back(joint(before.code, next.code));
        before = next;
        place += next.bytes;
    }
    ++model.pieces;
    piece.text = text;
    model.vocabulary.push_back(std::move(piece));
    return {};
}

Status readTrainer(std::string_view message, SpmModel& model)
{
    constexpr std::uint64_t kUnigram = 1;
    constexpr std::uint64_t kBpe = 2;
    ProtoWalker walker(message);
    ProtoField field;
    while (walker.next(field)) {
        if (field.wire != Varint)
            continue;
        if (field.number == 3) {
            model.isBpe = field.value == kBpe;
            model.isUnigram = field.value == kUnigram;
        }
        if (field.number == 24)
            model.suffixWhitespace = field.value != 0;
        if (field.number == 35)
            model.byteFallback = field.value != 0;
    }
    return walker.broken() ? bad("its trainer settings are damaged") : Status();
}

// `charsmap` becomes the normaliser's table.
Status readNormalizer(
    std::string_view message, bool denormalizer, SpmModel& model, std::string_view& charsmap)
{
    ProtoWalker walker(message);
    ProtoField field;
    while (walker.next(field)) {
        if (field.number == 2 && field.wire == Bytes) {
            MR_TRY(checkCharsmap(field.bytes));
            charsmap = denormalizer ? charsmap : field.bytes;
        }
        if (denormalizer || field.wire != Varint)
            continue;
        if (field.number == 3)
            model.addDummyPrefix = field.value != 0;
        if (field.number == 4)
            model.removeExtraWhitespaces = field.value != 0;
    }
    return walker.broken() ? bad("its normaliser settings are damaged") : Status();
}

void loadNormalizer(std::string_view charsmap, SpmModel& model)
{
    std::vector<std::string_view> symbols;
    for (const SpmModel::Piece& piece : model.vocabulary)
        if (piece.type == SpmModel::Type::UserDefined)
            symbols.push_back(piece.text);
    model.normalizes = !charsmap.empty();
    model.isNormalizerKnown =
        model.normalizer.load(charsmap, symbols, model.removeExtraWhitespaces);
}

} // namespace

Result<SpmModel> readSpmModel(std::string_view bytes, bool allPieces)
{
    SpmModel model;
    std::array<bool, 6> seen{};
    std::string_view charsmap;
    ProtoWalker walker(bytes);
    ProtoField field;
    while (walker.next(field)) {
        if (field.number >= seen.size())
            continue; // an extension
        if (field.wire != Bytes)
            return bad("it is not a SentencePiece model");
        seen.at(field.number) = true;
        if (field.number == kPieceMessage)
            MR_TRY(readPiece(field.bytes, model));
        if (field.number == kTrainerMessage)
            MR_TRY(readTrainer(field.bytes, model));
        if (field.number == kNormalizerMessage || field.number == kDenormalizerMessage)
            MR_TRY(
                readNormalizer(field.bytes, field.number == kDenormalizerMessage, model, charsmap));
    }
    if (model.pieces == 0)
        return bad("it is not a SentencePiece model");
    if (walker.broken() || !seen.at(kTrainerMessage) || !seen.at(kNormalizerMessage))
        return bad("it ends early or is damaged; fetch it again");
    std::sort(model.joints.begin(), model.joints.end());
    model.joints.erase(std::unique(model.joints.begin(), model.joints.end()), model.joints.end());
    model.joints.shrink_to_fit();
    loadNormalizer(charsmap, model);
    if (!allPieces && (model.isBpe || !model.isForParts()))
        model.vocabulary = {};
    return model;
}

bool SpmModel::areJoined(std::int32_t left, std::int32_t right) const noexcept
{
    return std::binary_search(joints.begin(), joints.end(), joint(left, right));
}

std::size_t SpmModel::cutBehind(std::string_view text, std::size_t from) const noexcept
{
    for (std::size_t at = from; at < text.size(); ++at) {
        const std::optional<SpmNormalizer::Border> border = normalizer.border(text, at);
        if (!border || isSpaceOrMark(border->left) || isSpaceOrMark(border->rawLeft) ||
            border->right == kMark)
            continue;
        if (border->right == ' ' && removeExtraWhitespaces && !addDummyPrefix)
            continue;
        const std::int32_t right = border->right == ' ' ? kMark : border->right;
        // A raw character may be the end of a user-defined symbol.
        if (!areJoined(border->left, right) && !areJoined(border->rawLeft, right) &&
            !areJoined(border->rawLeft, border->rawRight))
            return at;
    }
    return std::string_view::npos;
}

std::string withoutDummyPrefix(std::string_view bytes)
{
    std::string out;
    out.reserve(bytes.size() + 4);
    ProtoWalker walker(bytes);
    ProtoField field;
    while (walker.next(field))
        if (field.number != kSelfTestMessage)
            out.append(field.encoded);
    // A message met twice is merged, the last value winning: normalizer_spec { add_dummy_prefix:
    // false }.
    out.append({'\x1A', '\x02', '\x18', '\x00'});
    return out;
}

} // namespace mr
