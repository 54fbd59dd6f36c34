#include "core/model/safetensors_header.h"

#include "core/api/json_text.h"
#include "core/base/shown_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <limits>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

namespace mr {

namespace {

using nlohmann::json;

struct DtypeBits {
    std::string_view name;
    int bits;
};

constexpr std::array<DtypeBits, 20> kDtypes = {{{"BOOL", 8}, {"F4", 4}, {"F6_E2M3", 6},
    {"F6_E3M2", 6}, {"U8", 8}, {"I8", 8}, {"F8_E5M2", 8}, {"F8_E4M3", 8}, {"F8_E8M0", 8},
    {"F8_E5M2FNUZ", 8}, {"F8_E4M3FNUZ", 8}, {"I16", 16}, {"U16", 16}, {"F16", 16}, {"BF16", 16},
    {"I32", 32}, {"U32", 32}, {"F32", 32}, {"F64", 64}, {"I64", 64}}};
constexpr std::array<DtypeBits, 2> kWideDtypes = {{{"U64", 64}, {"C64", 64}}};

// No tensor has so many dimensions; bounds the cost of a hostile shape.
constexpr std::size_t kMostRank = 64;

// Walks the JSON by events. Depth 1: tensor names; 2: their fields; 3: lists of numbers.
class HeaderReader : public nlohmann::json_sax<json>
{
public:
    std::map<std::string, SafetensorEntry> entries;
    std::string why;
    std::size_t position = 0;

    bool null() override { return unexpected("null"); }
    bool boolean(bool) override { return unexpected("a boolean"); }
    bool number_float(number_float_t, const string_t& text) override
    {
        return unexpected("the number " + text.substr(0, 40));
    }
    bool binary(binary_t&) override { return unexpected("binary data"); }

    bool number_integer(number_integer_t value) override
    {
        return unexpected(fmt::format("the number {}", value));
    }

    bool number_unsigned(number_unsigned_t value) override
    {
        if (m_depth != 3)
            return unexpected("a number");
        if (m_numbers.size() == kMostRank)
            return fail(fmt::format("has more than {} numbers in a list", kMostRank));
        m_numbers.push_back(value);
        return true;
    }

    bool string(string_t& value) override
    {
        if (m_metadata && m_depth == 2)
            return true;
        if (m_depth != 2 || m_field != "dtype")
            return unexpected("a string");
        if (safetensorBits(value) == 0)
            return fail("has the unknown dtype " + shownName(value));
        m_entry.dtype = value;
        return true;
    }

    bool key(string_t& name) override
    {
        if (m_depth == 1) {
            m_name = name;
            m_metadata = name == "__metadata__";
            if (!m_names.insert(name).second)
                return fail("appears twice");
            return true;
        }
        m_field = name;
        if (!m_fields.insert(name).second)
            return fail("has the field " + shownName(name) + " twice");
        if (m_metadata || name == "dtype" || name == "shape" || name == "data_offsets")
            return true;
        return fail("has the unknown field " + shownName(name));
    }

    bool start_object(std::size_t) override
    {
        if (m_depth > 1)
            return unexpected("an object");
        ++m_depth;
        m_entry = {};
        m_fields.clear();
        return true;
    }

    bool start_array(std::size_t) override
    {
        if (m_depth != 2 || m_metadata || m_field == "dtype")
            return unexpected("a list");
        ++m_depth;
        m_numbers.clear();
        return true;
    }

    bool end_array() override
    {
        --m_depth;
        if (m_field == "shape")
            return takeShape();
        if (m_numbers.size() != 2)
            return fail("has data_offsets that are not two numbers");
        m_entry.begin = m_numbers[0];
        m_entry.end = m_numbers[1];
        return true;
    }

    bool end_object() override
    {
        if (--m_depth == 0 || m_metadata)
            return true;
        for (const char* field : {"dtype", "shape", "data_offsets"})
            if (!m_fields.contains(field))
                return fail(std::string("has no ") + field);
        if (m_entry.begin > m_entry.end)
            return fail("ends before it begins");
        return sizesAgree() && entries.emplace(m_name, std::move(m_entry)).second;
    }

    bool parse_error(
        std::size_t at, const std::string&, const nlohmann::detail::exception&) override
    {
        position = at;
        return false;
    }

private:
    bool fail(const std::string& what)
    {
        why = (m_metadata ? "__metadata__ " : "tensor " + shownName(m_name) + " ") + what;
        return false;
    }

    bool unexpected(const std::string& what)
    {
        return fail("holds " + what + " where the format allows none");
    }

    bool takeShape()
    {
        for (const std::uint64_t n : m_numbers) {
            if (n > static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max()))
                return fail(fmt::format("has the impossible dimension {} (overflow)", n));
            m_entry.shape.push_back(static_cast<std::int64_t>(n));
        }
        return true;
    }

    // shape times size of an element = span, without overflow.
    bool sizesAgree()
    {
        auto bits = static_cast<std::uint64_t>(safetensorBits(m_entry.dtype));
        for (const std::int64_t n : m_entry.shape)
            if (__builtin_mul_overflow(bits, static_cast<std::uint64_t>(n), &bits))
                return fail("has a shape whose size overflows");
        const std::uint64_t span = m_entry.end - m_entry.begin;
        if (bits % 8 == 0 && bits / 8 == span)
            return true;
        return fail(fmt::format("has a shape of {} bytes, but {} bytes of data", bits / 8, span));
    }

    int m_depth = 0;
    bool m_metadata = false;
    std::string m_name;
    std::string m_field;
    std::set<std::string, std::less<>> m_names;
    std::set<std::string, std::less<>> m_fields;
    std::vector<std::uint64_t> m_numbers;
    SafetensorEntry m_entry;
};

Status checkTiling(const std::map<std::string, SafetensorEntry>& entries, const std::string& source)
{
    std::vector<std::pair<const std::string*, const SafetensorEntry*>> order;
    order.reserve(entries.size());
    for (const auto& [name, entry] : entries)
        order.emplace_back(&name, &entry);
    std::sort(order.begin(), order.end(), [](const auto& a, const auto& b) {
        return std::pair(a.second->begin, a.second->end) <
               std::pair(b.second->begin, b.second->end);
    });
    std::uint64_t at = 0;
    for (const auto& [name, entry] : order) {
        if (entry->begin != at)
            return Status::error(ErrorKind::DataCorrupt,
                fmt::format("{}: tensor {} begins at byte {} of the data, but the one before it "
                            "ends at {}{}",
                    source, shownName(*name), entry->begin, at,
                    entry->begin < at ? " (overlap)" : " (hole)"));
        at = entry->end;
    }
    return {};
}

} // namespace

int safetensorBits(std::string_view dtype) noexcept
{
    for (const DtypeBits& d : kDtypes)
        if (d.name == dtype)
            return d.bits;
    for (const DtypeBits& d : kWideDtypes)
        if (d.name == dtype)
            return d.bits;
    return 0;
}

Result<std::map<std::string, SafetensorEntry>> parseSafetensorsHeader(
    std::string_view text, const std::string& source)
{
    const auto corrupt = [&](const std::string& why) {
        return Status::error(ErrorKind::DataCorrupt, source + ": " + why);
    };
    if (!text.starts_with('{'))
        return corrupt("the header does not begin with {");
    // The JSON library takes a raw NUL for the end of the text.
    if (text.find('\0') != std::string_view::npos)
        return corrupt("the header is not JSON: it holds a NUL byte");
    HeaderReader reader;
    if (!json::sax_parse(text.begin(), text.end(), &reader))
        return corrupt(reader.why.empty() ? "the header is not JSON: an error at " +
                                                jsonPlace(text, reader.position)
                                          : reader.why);
    MR_TRY(checkTiling(reader.entries, source));
    return std::move(reader.entries);
}

std::string describeForeignFile(std::string_view head)
{
    if (head.empty())
        return "the file is empty; fetch it again";
    if (head.starts_with("version https://git-lfs"))
        return "git-lfs pointer: run `git lfs pull` in the folder to fetch the file itself";
    const std::string_view start =
        head.substr(std::min(head.find_first_not_of(" \t\r\n"), head.size()));
    if (head.starts_with("PK\x03\x04") ||
        (head.size() > 1 && head[0] == '\x80' && head[1] > 0 && head[1] <= 5))
        return "a PyTorch pickle, which can run code and is not read; convert it to safetensors";
    if (head.starts_with("GGUF"))
        return "a GGUF file; training needs the model in safetensors";
    // A header may be '<' bytes long.
    const char second = start.size() > 1 ? start[1] : '\0';
    const bool isMarkup = second == '!' || second == '?' || (second >= 'A' && second <= 'Z') ||
                          (second >= 'a' && second <= 'z');
    if (start.starts_with("<") && isMarkup)
        return "a web page or XML, not a model; the download went wrong, fetch it again";
    if (start.starts_with("{"))
        return "JSON text, not a safetensors file; the download may have gone wrong";
    return "";
}

} // namespace mr
