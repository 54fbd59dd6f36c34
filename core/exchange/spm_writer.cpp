#include "core/exchange/spm_writer.h"

#include <algorithm>
#include <cstring>
#include <string_view>

namespace mr {
namespace {

enum Wire : std::uint32_t { Varint = 0, Bytes = 2, Fixed32 = 5 };

class Message
{
public:
    void number(std::uint32_t field, std::uint64_t value)
    {
        tag(field, Varint);
        varint(value);
    }
    void bytes(std::uint32_t field, std::string_view value)
    {
        tag(field, Bytes);
        varint(value.size());
        text.append(value);
    }
    void real(std::uint32_t field, float value)
    {
        tag(field, Fixed32);
        char raw[sizeof value];
        std::memcpy(raw, &value, sizeof value);
        text.append(raw, sizeof value);
    }

    std::string text;

private:
    void tag(std::uint32_t field, Wire wire) { varint(std::uint64_t{field} << 3 | wire); }
    void varint(std::uint64_t value)
    {
        for (; value >= 0x80; value >>= 7)
            text.push_back(static_cast<char>(value | 0x80));
        text.push_back(static_cast<char>(value));
    }
};

} // namespace

std::string writeSpmModel(std::span<const SpmModel::Piece> pieces, const SpmSettings& settings)
{
    constexpr std::uint64_t kBpe = 2;
    Message model;
    for (const SpmModel::Piece& piece : pieces) {
        Message one;
        one.bytes(1, piece.text);
        one.real(2, piece.score);
        one.number(3, static_cast<std::uint64_t>(piece.type));
        model.bytes(1, one.text);
    }
    const bool hasBytes =
        std::ranges::count(pieces, SpmModel::Type::Byte, &SpmModel::Piece::type) > 0;
    Message trainer;
    trainer.number(3, kBpe);
    trainer.number(35, hasBytes ? 1 : 0); // byte_fallback
    if (!settings.bos.empty())
        trainer.bytes(46, settings.bos);
    if (!settings.eos.empty())
        trainer.bytes(47, settings.eos);
    model.bytes(2, trainer.text);
    Message normalizer;
    normalizer.bytes(1, "identity");
    normalizer.number(3, settings.addDummyPrefix ? 1 : 0);
    normalizer.number(4, 0); // remove_extra_whitespaces
    normalizer.number(5, 1); // escape_whitespaces
    model.bytes(3, normalizer.text);
    return std::move(model.text);
}

} // namespace mr
