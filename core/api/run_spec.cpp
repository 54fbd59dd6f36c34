#include "core/api/json_fields.h"
#include "core/api/json_text.h"

#include <millrace/run_spec.h>
#include <millrace/spec_fields.h>

#include <array>
#include <limits>
#include <span>
#include <utility>

namespace mr {

using nlohmann::json;

namespace {

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr IntRange kAnyInteger{std::numeric_limits<std::int64_t>::min(), kMost};

// The words of an enumeration, in the order of its values.
constexpr std::array<std::string_view, 6> kFormats = {
    "auto", "text", "jsonl", "json", "csv", "parquet"};
constexpr std::array<std::string_view, 4> kPrecisions = {"auto", "bf16", "fp32", "fp8"};
constexpr std::array<std::string_view, 4> kRecomputes = {"auto", "none", "cheap", "block"};
constexpr std::array<std::string_view, 2> kKeepWords = {"bf16", "int8"};
constexpr std::array<std::string_view, 7> kOptimizerWords = {
    "adamw", "factored", "adalomo", "sgd-normalised", "apollo-mini", "grass", "mezo"};
constexpr std::array<std::string_view, 4> kWeightWords = {"auto", "fp32", "24bit", "bf16-random"};
constexpr std::array<std::string_view, 2> kTrainOrders = {"together", "blocks"};
constexpr std::array<std::string_view, 3> kSchedules = {"constant", "linear", "cosine"};
constexpr std::array<std::string_view, 3> kDevices = {"auto", "cpu", "cuda"};

template <typename E>
std::string_view word(std::span<const std::string_view> words, E v) noexcept
{
    const auto index = static_cast<std::size_t>(v);
    return index < words.size() ? words[index] : std::string_view("?");
}

template <typename E>
Result<E> parseWord(
    std::span<const std::string_view> words, std::string_view what, std::string_view text)
{
    std::string known;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == text)
            return static_cast<E>(i);
        known += (i == 0 ? "" : i + 1 == words.size() ? " or " : ", ") + std::string(words[i]);
    }
    return Status::error(ErrorKind::InvalidArgument,
        std::string(what) + " \"" + std::string(text) + "\" is not known; use " + known);
}

constexpr auto parserOf(DataFormat /*kind*/)
{
    return parseDataFormat;
}
constexpr auto parserOf(PrecisionChoice /*kind*/)
{
    return parsePrecision;
}
constexpr auto parserOf(RecomputeChoice /*kind*/)
{
    return parseRecompute;
}
constexpr auto parserOf(KeepInputs /*kind*/)
{
    return parseKeepInputs;
}
constexpr auto parserOf(Optimizer /*kind*/)
{
    return parseOptimizer;
}
constexpr auto parserOf(WeightFormat /*kind*/)
{
    return parseWeightFormat;
}
constexpr auto parserOf(TrainOrder /*kind*/)
{
    return parseTrainOrder;
}
constexpr auto parserOf(ScheduleKind /*kind*/)
{
    return parseSchedule;
}
constexpr auto parserOf(DeviceChoice /*kind*/)
{
    return parseDevice;
}

// A word of an enumeration; the value stays as it is if the field is missing.
template <typename E>
void readWord(JsonFields& fields, std::string_view key, E& out)
{
    const std::string text = fields.text(key, std::string(name(out)));
    Result<E> value = parserOf(out)(text);
    fields.take(value.status());
    if (value.ok())
        out = value.value();
}

json sourcesToJson(const std::vector<DataSource>& sources)
{
    json list = json::array();
    for (const DataSource& s : sources) {
        list.push_back(
            {{"path", s.path}, {"format", name(s.format)}, {"columns", json(s.columns)}});
        if (s.skipBadRows) // earlier programs do not know it
            list.back()["skip_bad_rows"] = true;
        if (!s.excluded.empty()) {
            list.back()["excluded_rows"] = s.excluded.text();
            list.back()["excluded_of_bytes"] = s.excludedOf;
        }
    }
    return list;
}

Status noUnknown(const JsonFields& fields, const std::string& source)
{
    const std::vector<std::string> unknown = fields.unknown();
    if (unknown.empty())
        return {};
    return Status::error(ErrorKind::InvalidArgument,
        source + ": field " + shown(unknown.front()) + " is not known to this program");
}

void readTexts(JsonFields& fields, std::string_view key, std::map<std::string, std::string>& out)
{
    const json* value = fields.find(key);
    if (value == nullptr)
        return;
    if (!value->is_object())
        return fields.fail(key, "must be an object of strings");
    for (const auto& item : value->items()) {
        if (!item.value().is_string())
            return fields.fail(key, "must be an object of strings");
        out[item.key()] = item.value().get<std::string>();
    }
}

void readTextList(JsonFields& fields, std::string_view key, std::vector<std::string>& out)
{
    const json* value = fields.find(key);
    if (value == nullptr)
        return;
    if (!value->is_array())
        return fields.fail(key, "must be a list of strings");
    out.clear();
    for (const json& item : *value) {
        if (!item.is_string())
            return fields.fail(key, "must be a list of strings");
        out.push_back(item.get<std::string>());
    }
}

void readExcluded(JsonFields& entry, DataSource& data)
{
    Result<RowList> rows = RowList::parse(entry.text("excluded_rows", ""));
    if (!rows.ok())
        return entry.fail("excluded_rows", rows.status().message());
    data.excluded = std::move(rows).value();
    data.excludedOf = entry.unsignedInteger("excluded_of_bytes", 0);
}

void readSources(JsonFields& fields, std::string_view key, std::vector<DataSource>& out)
{
    const json* list = fields.find(key);
    if (list == nullptr)
        return;
    if (!list->is_array())
        return fields.fail(key, "must be a list");
    for (const json& item : *list) {
        const std::string source = "run settings, " + std::string(key);
        JsonFields entry(item, source);
        DataSource data;
        data.path = entry.text("path", "");
        readWord(entry, "format", data.format);
        readTexts(entry, "columns", data.columns);
        data.skipBadRows = entry.boolean("skip_bad_rows", data.skipBadRows);
        readExcluded(entry, data);
        entry.take(noUnknown(entry, source));
        fields.take(entry.status());
        out.push_back(std::move(data));
    }
}

// Each overload leaves `out` as it is if the field is missing.

template <typename E>
void read(JsonFields& fields, std::string_view key, E& out)
{
    readWord(fields, key, out);
}

void read(JsonFields& fields, std::string_view key, std::string& out)
{
    out = fields.text(key, out);
}

void read(JsonFields& fields, std::string_view key, std::int64_t& out)
{
    out = fields.integer(key, kAnyInteger, out);
}

void read(JsonFields& fields, std::string_view key, std::uint64_t& out)
{
    out = fields.unsignedInteger(key, out);
}

void read(JsonFields& fields, std::string_view key, double& out)
{
    out = fields.number(key, out);
}

void read(JsonFields& fields, std::string_view key, bool& out)
{
    out = fields.boolean(key, out);
}

void read(JsonFields& fields, std::string_view key, std::vector<DataSource>& out)
{
    readSources(fields, key, out);
}

void read(JsonFields& fields, std::string_view key, std::vector<std::string>& out)
{
    readTextList(fields, key, out);
}

void read(JsonFields& fields, std::string_view key, std::map<std::string, std::string>& out)
{
    readTexts(fields, key, out);
}

template <typename Value>
json jsonOf(const Value& value)
{
    if constexpr (std::is_enum_v<Value>)
        return name(value);
    else
        return value;
}

json jsonOf(const std::vector<DataSource>& sources)
{
    return sourcesToJson(sources);
}

} // namespace

std::string_view name(DataFormat v) noexcept
{
    return word(kFormats, v);
}
std::string_view name(PrecisionChoice v) noexcept
{
    return word(kPrecisions, v);
}
std::string_view name(RecomputeChoice v) noexcept
{
    return word(kRecomputes, v);
}
std::string_view name(KeepInputs v) noexcept
{
    return word(kKeepWords, v);
}
std::string_view name(Optimizer v) noexcept
{
    return word(kOptimizerWords, v);
}
std::string_view name(WeightFormat v) noexcept
{
    return word(kWeightWords, v);
}
std::string_view name(TrainOrder v) noexcept
{
    return word(kTrainOrders, v);
}
std::string_view name(ScheduleKind v) noexcept
{
    return word(kSchedules, v);
}
std::string_view name(DeviceChoice v) noexcept
{
    return word(kDevices, v);
}

Result<DataFormat> parseDataFormat(std::string_view text)
{
    return parseWord<DataFormat>(kFormats, "data format", text);
}

Result<PrecisionChoice> parsePrecision(std::string_view text)
{
    return parseWord<PrecisionChoice>(kPrecisions, "precision", text);
}

Result<RecomputeChoice> parseRecompute(std::string_view text)
{
    return parseWord<RecomputeChoice>(kRecomputes, "recompute", text);
}

bool asksTwoPasses(const std::map<std::string, std::string>& policyOptions)
{
    const auto clip = policyOptions.find("clip-mode");
    return clip != policyOptions.end() && clip->second == "two-pass";
}

Result<KeepInputs> parseKeepInputs(std::string_view text)
{
    return parseWord<KeepInputs>(kKeepWords, "keep-inputs", text);
}

Result<Optimizer> parseOptimizer(std::string_view text)
{
    return parseWord<Optimizer>(kOptimizerWords, "optimizer", text);
}

Result<WeightFormat> parseWeightFormat(std::string_view text)
{
    if (text == "bf16")
        return Status::error(ErrorKind::InvalidArgument,
            "weights \"bf16\": rounding to the nearest BF16 loses small steps, so it is not "
            "offered; "
            "use bf16-random (2 bytes) or 24bit (3 bytes)");
    return parseWord<WeightFormat>(kWeightWords, "weights", text);
}

Result<TrainOrder> parseTrainOrder(std::string_view text)
{
    return parseWord<TrainOrder>(kTrainOrders, "train", text);
}

Result<ScheduleKind> parseSchedule(std::string_view text)
{
    return parseWord<ScheduleKind>(kSchedules, "schedule", text);
}

Result<DeviceChoice> parseDevice(std::string_view text)
{
    return parseWord<DeviceChoice>(kDevices, "device", text);
}

std::string toJson(const RunSpec& spec)
{
    json value = json::object();
    for (const SpecField& field : specFields())
        std::visit([&](auto member) { value[std::string(field.key)] = jsonOf(spec.*member); },
            field.member);
    return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

Result<RunSpec> runSpecFromJson(std::string_view text)
{
    const std::string source = "run settings";
    Result<json> value = parseJson(text, source);
    MR_TRY(value.status());
    JsonFields fields(value.value(), source);
    RunSpec spec;
    for (const SpecField& field : specFields())
        std::visit([&](auto member) { read(fields, field.key, spec.*member); }, field.member);
    if (fields.find("head_part") == nullptr) // from earlier programs
        spec.headPart = 0;
    if (const std::string one = fields.text("disk_path", {}); !one.empty()) // from earlier programs
        spec.diskPaths = {one};
    MR_TRY(fields.status());
    MR_TRY(noUnknown(fields, source));
    return spec;
}

} // namespace mr
