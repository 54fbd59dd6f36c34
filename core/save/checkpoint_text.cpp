#include "core/save/checkpoint_text.h"

#include "core/api/json_fields.h"
#include "core/api/json_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <charconv>
#include <cinttypes>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>
#include <type_traits>
#include <utility>

namespace mr {
namespace {

using Json = nlohmann::json;
constexpr IntRange kCounts{0, std::int64_t{1} << 53};
constexpr IntRange kInts{0, std::numeric_limits<std::int32_t>::max()};
constexpr IntRange kIdsOrNone{-1, std::numeric_limits<std::int32_t>::max()};
// No checkpoint lacks these, and files that are not listed are not verified.
constexpr std::array<const char*, 2> kStateFiles = {"state/state.json", "state/state.safetensors"};

// The values of a list in their order; the first that is wrong is kept by `fields`.
class ListCheck
{
public:
    ListCheck(JsonFields& fields, std::string key, const Json* list)
        : m_fields(fields)
        , m_key(std::move(key))
        , m_list(list)
    {
        if (m_list == nullptr || !m_list->is_array())
            wrong("must be a list");
    }

    std::size_t count() const { return m_list == nullptr ? 0 : m_list->size(); }

    // Null: there is no more, which is wrong.
    const Json* next()
    {
        if (m_list != nullptr && m_at < m_list->size())
            return &(*m_list)[m_at++];
        wrong("is too short");
        return nullptr;
    }

    void integer(IntRange range)
    {
        const Json* value = next();
        if (value == nullptr)
            return;
        const bool wide = value->is_number_unsigned() &&
                          value->get<std::uint64_t>() > static_cast<std::uint64_t>(range.most);
        if (!value->is_number_integer() || wide || value->get<std::int64_t>() < range.least ||
            value->get<std::int64_t>() > range.most)
            wrong(fmt::format("holds {}; it must be a whole number from {} to {}", shown(*value),
                range.least, range.most));
    }

    void unsignedInteger()
    {
        const Json* value = next();
        if (value != nullptr && !value->is_number_unsigned())
            wrong("must hold whole numbers that are not negative");
    }

    template <typename Number>
    void exact()
    {
        const Json* value = next();
        if (value != nullptr && !readExact<Number>(*value))
            wrong("must hold numbers, or the bits of what is none");
    }

    void single()
    {
        const Json* value = next();
        constexpr double kMost = std::numeric_limits<float>::max();
        if (value != nullptr && (!value->is_number() || std::abs(value->get<double>()) > kMost))
            wrong("must hold numbers of single precision");
    }

    void text()
    {
        const Json* value = next();
        if (value != nullptr && !value->is_string())
            wrong("must hold texts");
    }

    // The file is in a folder that is known, and its name leads nowhere else.
    void fileName()
    {
        const Json* value = next();
        if (value == nullptr)
            return;
        const std::string name = value->is_string() ? value->get<std::string>() : std::string();
        if (name.empty() || name == "." || name == ".." ||
            name.find_first_of(std::string_view("/\0", 2)) != std::string::npos)
            wrong("holds " + shown(*value) + ", which is no name of a file");
    }

    void boolean()
    {
        const Json* value = next();
        if (value != nullptr && !value->is_boolean())
            wrong("must hold true or false");
    }

private:
    void wrong(const std::string& what)
    {
        m_fields.fail(m_key, what);
        m_list = nullptr;
    }

    JsonFields& m_fields;
    std::string m_key;
    const Json* m_list;
    std::size_t m_at = 0;
};

void checkJob(JsonFields& fields, const Json* json)
{
    ListCheck job(fields, "job", json);
    job.integer(kCounts); // window
    job.integer(kCounts); // version
    job.integer(kCounts); // due step
    job.integer(kInts);   // tiles done
    job.boolean();        // the norm is joined
    if (job.count() > 5)  // older ones have no such place
        job.boolean();
}

Status checkWindow(const Json& json, const std::string& source)
{
    JsonFields fields(json, source + ": window");
    for (const char* name : {"window", "device_updates", "host_updates"})
        (void)fields.requiredInteger(name, kCounts);
    (void)fields.requiredInteger("steps_into_window", kInts);
    (void)fields.requiredInteger("ownership", kIdsOrNone);
    (void)fields.boolean("landed", false);
    ListCheck banks(fields, "banks", fields.find("banks"));
    for (int i = 0; i < 2; ++i) {
        ListCheck bank(fields, "banks", banks.next());
        bank.integer(kInts); // gradients
        bank.integer(kInts); // applied
        bank.single();       // scale
    }
    ListCheck scalars(fields, "scalars", fields.find("scalars"));
    for (int i = 0; i < 2; ++i) {
        ListCheck scalar(fields, "scalars", scalars.next());
        scalar.exact<double>(); // norm
        scalar.exact<float>();  // clip factor
        scalar.integer({0, 1}); // finite
    }
    if (const Json* job = fields.find("job"))
        checkJob(fields, job);
    return fields.status();
}

Status checkTurns(const Json& json, const std::string& source)
{
    JsonFields fields(json, source + ": turns");
    (void)fields.requiredInteger("turn", kCounts);
    const Json* groups = fields.find("groups");
    ListCheck list(fields, "groups", groups);
    for (std::size_t i = 0, count = list.count(); i < count; ++i) {
        ListCheck group(fields, "groups", list.next());
        group.integer(kInts);
        group.fileName();
        group.text(); // hash
    }
    return fields.status();
}

void checkCounts(JsonFields& fields)
{
    for (const char* name : {"step", "update_count", "tokens", "active_ms"})
        (void)fields.requiredInteger(name, kCounts);
    (void)fields.requiredInteger("bad_steps", kInts);
    for (const char* name : {"last_grad_norm", "last_loss", "eval_loss"})
        if (const Json* value = fields.find(name); value != nullptr && !readExact<double>(*value))
            fields.fail(name, "is " + shown(*value) + "; it must be a number");
    for (const char* name : {"instruction_set", "precision", "weights_hash", "data_hash"}) {
        if (fields.find(name) == nullptr)
            fields.fail(name, "is missing");
        (void)fields.text(name, {});
    }
    (void)fields.text("base_hash", {});
    const Json* sampler = fields.find("sampler");
    ListCheck list(fields, "sampler", sampler);
    for (int i = 0; i < 4; ++i)
        list.unsignedInteger(); // seed, epoch, position, count
    if (fields.status().ok() &&
        (*sampler)[2].get<std::uint64_t>() > (*sampler)[3].get<std::uint64_t>())
        fields.fail("sampler", "stands behind its last sequence");
}

template <typename Number>
using Bits = std::conditional_t<sizeof(Number) == 4, std::uint32_t, std::uint64_t>;

template <typename Number>
bool isUsualNan(Number value)
{
    return std::bit_cast<Bits<Number>>(value) ==
           std::bit_cast<Bits<Number>>(std::numeric_limits<Number>::quiet_NaN());
}

// A manifest speaks of files below its folder and of no others.
bool staysInside(const std::string& name)
{
    const std::filesystem::path path(name);
    return !name.empty() && name.find('\0') == std::string::npos && path.is_relative() &&
           std::none_of(path.begin(), path.end(), [](const auto& part) { return part == ".."; });
}

} // namespace

template <typename Number>
Json exactly(Number value)
{
    if (std::isfinite(value))
        return value;
    if (isUsualNan(value))
        return {};
    std::array<char, 2 + 2 * sizeof(Number) + 1> text{};
    (void)std::snprintf(text.data(), text.size(), "0x%0*" PRIx64,
        static_cast<int>(2 * sizeof(Number)),
        static_cast<std::uint64_t>(std::bit_cast<Bits<Number>>(value)));
    return text.data();
}

template <typename Number>
std::optional<Number> readExact(const Json& json)
{
    if (json.is_null())
        return std::numeric_limits<Number>::quiet_NaN();
    if (json.is_number()) {
        const double value = json.get<double>();
        const bool fits =
            std::abs(value) <= static_cast<double>(std::numeric_limits<Number>::max());
        return fits ? std::optional(static_cast<Number>(value)) : std::nullopt;
    }
    if (!json.is_string())
        return std::nullopt;
    const auto& text = json.get_ref<const std::string&>();
    Bits<Number> bits = 0;
    const char* end = text.data() + text.size();
    if (text.size() != 2 + 2 * sizeof(Number) || !text.starts_with("0x") ||
        std::from_chars(text.data() + 2, end, bits, 16).ptr != end)
        return std::nullopt;
    const auto value = std::bit_cast<Number>(bits);
    return std::isfinite(value) ? std::nullopt : std::optional(value);
}

template Json exactly(double value);
template Json exactly(float value);
template std::optional<double> readExact(const Json& json);
template std::optional<float> readExact(const Json& json);

Result<Json> parseStateText(std::string_view text, const std::string& source)
{
    Result<Json> json = parseJson(text, source);
    if (!json.ok())
        return json;
    JsonFields fields(json.value(), source);
    checkCounts(fields);
    if (const Json* window = fields.find("window"); window != nullptr && fields.status().ok())
        fields.take(checkWindow(*window, source));
    if (const Json* turns = fields.find("turns"); turns != nullptr && fields.status().ok())
        fields.take(checkTurns(*turns, source));
    if (!fields.status().ok())
        return Status::error(ErrorKind::DataCorrupt, fields.status().message());
    return json;
}

Result<Json> parseManifestText(std::string_view text, const std::string& source)
{
    const auto corrupt = [&](const std::string& what) {
        return Status::error(ErrorKind::DataCorrupt, source + ": " + what);
    };
    Result<Json> json = parseJson(text, source);
    if (!json.ok())
        return json;
    const Json& manifest = json.value();
    if (!manifest.is_object() || !manifest.contains("files") || !manifest["files"].is_object())
        return corrupt("is not a manifest: it has no object \"files\"");
    for (const char* name : kStateFiles)
        if (!manifest["files"].contains(name))
            return corrupt(std::string("does not list ") + name);
    for (const auto& [name, entry] : manifest["files"].items()) {
        if (!staysInside(name))
            return corrupt("lists " + shown(name) + ", which is no file of the checkpoint");
        if (!entry.is_object() || !entry.contains("xxh3") || !entry["xxh3"].is_string())
            return corrupt("file " + shown(name) + " has no hash (xxh3)");
    }
    return json;
}

} // namespace mr
