// Settings of a run as text of the command line, both ways.

#include <millrace/spec_fields.h>

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <utility>

namespace mr {

namespace {

using Texts = std::vector<std::string>;
using Pairs = std::map<std::string, std::string>;

Status refuse(const SpecField& field, std::string_view text, std::string_view want)
{
    return Status::error(ErrorKind::InvalidArgument,
        fmt::format("--{} is \"{}\"; it must be {}", field.option, text, want));
}

template <typename Number>
Status readNumber(const SpecField& field, std::string_view text, std::string_view want, Number& out)
{
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, out);
    return error == std::errc() && stop == end ? Status() : refuse(field, text, want);
}

template <typename T>
Status take(Result<T> parsed, T& out)
{
    MR_TRY(parsed.status());
    out = std::move(parsed).value();
    return {};
}

Status readInto(const SpecField& /*field*/, std::string_view text, std::string& out)
{
    out = text;
    return {};
}

Status readInto(const SpecField& field, std::string_view text, std::int64_t& out)
{
    return readNumber(field, text, "a whole number", out);
}

Status readInto(const SpecField& field, std::string_view text, std::uint64_t& out)
{
    return field.unit == SpecUnit::Bytes
               ? take(parseBytes(text), out)
               : readNumber(field, text, "a whole number that is not negative", out);
}

Status readInto(const SpecField& field, std::string_view text, double& out)
{
    return field.unit == SpecUnit::BytesPerSecond ? take(parseRate(text), out)
                                                  : readNumber(field, text, "a number", out);
}

Status readInto(const SpecField& field, std::string_view text, bool& out)
{
    if (text != field.words.on && text != field.words.off)
        return Status::error(
            ErrorKind::InvalidArgument, fmt::format("--{} '{}': want {} or {}", field.option, text,
                                            field.words.off, field.words.on));
    out = text == field.words.on;
    return {};
}

Status readInto(const SpecField& /*field*/, std::string_view text, PrecisionChoice& out)
{
    return take(parsePrecision(text), out);
}

Status readInto(const SpecField& /*field*/, std::string_view text, RecomputeChoice& out)
{
    return take(parseRecompute(text), out);
}

Status readInto(const SpecField& /*field*/, std::string_view text, KeepInputs& out)
{
    return take(parseKeepInputs(text), out);
}

Status readInto(const SpecField& /*field*/, std::string_view text, Optimizer& out)
{
    return take(parseOptimizer(text), out);
}

Status readInto(const SpecField& /*field*/, std::string_view text, WeightFormat& out)
{
    return take(parseWeightFormat(text), out);
}

Status readInto(const SpecField& /*field*/, std::string_view text, TrainOrder& out)
{
    return take(parseTrainOrder(text), out);
}

Status readInto(const SpecField& /*field*/, std::string_view text, ScheduleKind& out)
{
    return take(parseSchedule(text), out);
}

Status readInto(const SpecField& /*field*/, std::string_view text, DeviceChoice& out)
{
    return take(parseDevice(text), out);
}

Status readInto(const SpecField& /*field*/, std::string_view text, std::vector<DataSource>& out)
{
    out.push_back({std::string(text), DataFormat::Auto, {}});
    return {};
}

Status readInto(const SpecField& /*field*/, std::string_view text, Texts& out)
{
    out.emplace_back(text);
    return {};
}

Status readInto(const SpecField& field, std::string_view text, Pairs& out)
{
    return readPairs(text, fmt::format("--{}", field.option), out);
}

// fmt writes the shortest text that is read as the same number.
template <typename Value>
Texts textsOf(const SpecField& /*field*/, const Value& value)
{
    if constexpr (std::is_enum_v<Value>)
        return {std::string(name(value))};
    else
        return {fmt::format("{}", value)};
}

// Without an exponent, which amounts do not have.
std::string fixedText(double value)
{
    std::array<char, 512> text{};
    const auto end =
        std::to_chars(text.data(), text.data() + text.size(), value, std::chars_format::fixed).ptr;
    return {text.data(), end};
}

Texts textsOf(const SpecField& field, double value)
{
    if (field.unit != SpecUnit::BytesPerSecond)
        return {fmt::format("{}", value)};
    const double giga = value / 1e9;
    return {giga * 1e9 == value ? fixedText(giga) + "GB/s" : fixedText(value) + "B/s"};
}

Texts textsOf(const SpecField& field, bool value)
{
    return {std::string(value ? field.words.on : field.words.off)};
}

Texts textsOf(const SpecField& /*field*/, const std::vector<DataSource>& sources)
{
    Texts paths;
    for (const DataSource& source : sources)
        paths.push_back(source.path);
    return paths;
}

Texts textsOf(const SpecField& /*field*/, const Texts& values)
{
    return values;
}

Texts textsOf(const SpecField& /*field*/, const Pairs& pairs)
{
    Texts texts;
    for (const auto& [key, value] : pairs)
        texts.push_back(fmt::format("{}={}", key, value));
    return texts;
}

void add(Texts& words, std::string_view option, std::string text)
{
    words.push_back(fmt::format("--{}", option));
    words.push_back(std::move(text));
}

// How the rows of datasets are read, which is not a setting of its own.
void addReading(Texts& words, const std::vector<DataSource>& sources)
{
    if (sources.empty())
        return;
    if (sources.front().format != DataFormat::Auto)
        add(words, "format", std::string(name(sources.front().format)));
    std::string map;
    for (const auto& [role, column] : sources.front().columns) {
        if (role == "style")
            add(words, "pairs", column);
        else if (role == "chat_template")
            add(words, "chat-template", column);
        else
            map += fmt::format("{}{}={}", map.empty() ? "" : ",", role, column);
    }
    if (!map.empty())
        add(words, "map", std::move(map));
    const auto skips = [](const DataSource& source) { return source.skipBadRows; };
    if (std::any_of(sources.begin(), sources.end(), skips))
        words.emplace_back("--skip-bad-rows");
    if (!sources.front().excluded.empty())
        add(words, "exclude-rows", sources.front().excluded.text());
}

} // namespace

Status readPairs(std::string_view text, std::string_view option, Pairs& out)
{
    std::size_t begin = 0;
    while (begin < text.size()) {
        const std::size_t end = std::min(text.find(',', begin), text.size());
        const std::string_view pair = text.substr(begin, end - begin);
        const std::size_t equals = pair.find('=');
        if (equals == std::string_view::npos || equals == 0)
            return Status::error(ErrorKind::InvalidArgument,
                fmt::format("{} '{}': write it as key=value", option, pair));
        out[std::string(pair.substr(0, equals))] = pair.substr(equals + 1);
        begin = end + 1;
    }
    return {};
}

Status readOption(const SpecField& field, std::string_view text, RunSpec& spec)
{
    return std::visit(
        [&](auto member) { return readInto(field, text, spec.*member); }, field.member);
}

std::vector<std::string> optionTexts(const SpecField& field, const RunSpec& spec)
{
    static const RunSpec usual;
    return std::visit(
        [&](auto member) {
            return spec.*member == usual.*member ? Texts() : textsOf(field, spec.*member);
        },
        field.member);
}

std::vector<std::string> trainArguments(const RunSpec& spec)
{
    const auto epochs = SpecMember(&RunSpec::epochs);
    Texts words;
    for (const SpecField& field : specFields()) {
        if (field.option.empty() || (field.member == epochs && spec.steps != 0))
            continue;
        for (std::string& text : optionTexts(field, spec))
            if (text.empty() && std::holds_alternative<bool RunSpec::*>(field.member))
                words.push_back(fmt::format("--{}", field.option));
            else
                add(words, field.option, std::move(text));
        if (field.member == SpecMember(&RunSpec::data))
            addReading(words, spec.data);
    }
    return words;
}

} // namespace mr
