#include "core/model/export_plan.h"

#include "core/base/file.h"
#include "core/device/adamw.h"
#include "core/model/safetensors.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <numeric>
#include <system_error>
#include <utility>

namespace mr {

namespace {

namespace fs = std::filesystem;

std::uint64_t elementBytes(ExportType type)
{
    return type == ExportType::F32 ? 4 : 2;
}

// One tensor of a saved model: a parameter, or one that is carried.
struct ExportItem {
    std::string_view name;
    const NamedTensor* parameter = nullptr;
    const CarriedTensor* carried = nullptr;

    std::uint64_t bytes(ExportType type) const
    {
        return parameter != nullptr
                   ? static_cast<std::uint64_t>(parameter->count()) * elementBytes(type)
                   : carried->bytes();
    }
};

// By name, cut so that no shard but one of a single tensor exceeds `limitBytes`.
std::vector<std::vector<ExportItem>> cutItems(
    const ParamTable& table, ExportType type, std::uint64_t limitBytes)
{
    std::vector<ExportItem> order;
    for (const NamedTensor& tensor : table.tensors)
        order.push_back({tensor.name, &tensor, nullptr});
    for (const CarriedTensor& tensor : table.carried)
        order.push_back({tensor.name, nullptr, &tensor});
    std::ranges::sort(order, {}, &ExportItem::name);
    std::vector<std::vector<ExportItem>> shards;
    std::uint64_t bytes = 0;
    for (const ExportItem& item : order) {
        if (shards.empty() || bytes + item.bytes(type) > limitBytes) {
            shards.emplace_back();
            bytes = 0;
        }
        shards.back().push_back(item);
        bytes += item.bytes(type);
    }
    return shards;
}

// `reader` outlives it.
SafetensorSource sourceOf(const CarriedTensor& tensor, CarriedReader& reader)
{
    return {tensor.name, tensor.entry.dtype, tensor.entry.shape, tensor.bytes(),
        [&tensor, &reader](std::uint64_t offset, std::span<std::byte> out) {
            return reader.read(tensor, offset, out);
        }};
}

// `master` and `piece` outlive it.
SafetensorSource sourceOf(
    const NamedTensor& tensor, MasterReader& master, MasterPiece& piece, ExportType type)
{
    const std::uint64_t width = elementBytes(type);
    SafetensorSource source{tensor.name, type == ExportType::F32 ? "F32" : "BF16", tensor.shape,
        static_cast<std::uint64_t>(tensor.count()) * width, {}};
    // The writer asks for pieces of 8 MiB, so every piece begins and ends with an element.
    source.fill = [group = tensor.group, first = tensor.first, width, &master, &piece](
                      std::uint64_t offset, std::span<std::byte> out) {
        const std::int64_t begin = first + static_cast<std::int64_t>(offset / width);
        const auto count = static_cast<std::int64_t>(out.size() / width);
        if (width == 2)
            return master.read(
                group, begin, {{reinterpret_cast<std::uint16_t*>(out.data()), out.size() / 2}, {}});
        auto* to = reinterpret_cast<float*>(out.data());
        return forPieces(
            master, {group, begin, count}, piece, [&to](std::int64_t, const MasterView& view) {
                to = std::transform(
                    view.high.begin(), view.high.end(), view.low.begin(), to, joinHalves);
                return Status();
            });
    };
    return source;
}

std::string shardName(std::size_t index, std::size_t count)
{
    if (count == 1)
        return std::string(kSafetensorsFile);
    const auto padded = [](std::size_t n) {
        const std::string digits = std::to_string(n);
        return std::string(5 - std::min<std::size_t>(5, digits.size()), '0') + digits;
    };
    return "model-" + padded(index + 1) + "-of-" + padded(count) + ".safetensors";
}

// The end of the JSON string that begins at `at`.
std::size_t endOfString(std::string_view text, std::size_t at)
{
    for (++at; at < text.size() && text[at] != '"'; ++at)
        if (text[at] == '\\')
            ++at;
    return at + 1;
}

// The value of the key that ends at `at`: begin and end in `text`. A string, or null.
std::pair<std::size_t, std::size_t> valueAfter(std::string_view text, std::size_t at)
{
    const std::size_t begin = text.find_first_not_of(" \t\r\n:", at);
    if (begin == std::string_view::npos)
        return {text.size(), text.size()};
    if (text[begin] == '"')
        return {begin, endOfString(text, begin)};
    return {begin, std::min(text.find_first_of(" \t\r\n,}", begin), text.size())};
}

} // namespace

Status writeShards(const fs::path& folder, const ParamTable& table, MasterReader& master,
    ExportType type, std::uint64_t limitBytes)
{
    const std::vector<std::vector<ExportItem>> shards = cutItems(table, type, limitBytes);
    nlohmann::ordered_json map = nlohmann::ordered_json::object();
    std::uint64_t total = 0;
    MasterPiece piece;
    CarriedReader carried;
    for (std::size_t s = 0; s < shards.size(); ++s) {
        std::vector<SafetensorSource> sources;
        for (const ExportItem& item : shards[s]) {
            sources.push_back(item.parameter != nullptr
                                  ? sourceOf(*item.parameter, master, piece, type)
                                  : sourceOf(*item.carried, carried));
            map[std::string(item.name)] = shardName(s, shards.size());
            total += sources.back().bytes;
        }
        MR_TRY(writeSafetensors(folder / shardName(s, shards.size()), sources));
    }
    std::error_code ignored; // usually there is none
    if (shards.size() == 1) {
        fs::remove(folder / kSafetensorsIndex, ignored);
        return {};
    }
    fs::remove(folder / kSafetensorsFile, ignored);
    const nlohmann::ordered_json index = {
        {"metadata", {{"total_size", total}}}, {"weight_map", std::move(map)}};
    return replaceFile(folder / kSafetensorsIndex, index.dump(2) + "\n");
}

Status writeTensors(
    const fs::path& file, const ParamTable& table, MasterReader& master, ExportType type)
{
    MasterPiece piece;
    std::vector<SafetensorSource> sources;
    const std::vector<std::vector<ExportItem>> whole = cutItems(table, type, UINT64_MAX);
    for (const ExportItem& item : whole.front())
        if (item.parameter != nullptr)
            sources.push_back(sourceOf(*item.parameter, master, piece, type));
    return writeSafetensors(file, sources);
}

std::string withDtype(std::string_view text, ExportType type)
{
    const std::string value = type == ExportType::F32 ? "\"float32\"" : "\"bfloat16\"";
    std::string out;
    std::size_t copied = 0;
    std::size_t at = text.find('{');
    bool found = false;
    int depth = 0;
    while (at < text.size()) {
        if (text[at] != '"') {
            depth += text[at] == '{' || text[at] == '[' ? 1 : 0;
            depth -= text[at] == '}' || text[at] == ']' ? 1 : 0;
            ++at;
            continue;
        }
        const std::size_t end = std::min(endOfString(text, at), text.size());
        const std::string_view word = text.substr(at, end - at);
        const std::size_t next = text.find_first_not_of(" \t\r\n", end);
        const bool isKey = next != std::string_view::npos && text[next] == ':';
        at = end;
        if (!isKey || depth != 1 || (word != "\"dtype\"" && word != "\"torch_dtype\""))
            continue;
        const auto [begin, stop] = valueAfter(text, end);
        out += std::string(text.substr(copied, begin - copied)) + value;
        copied = stop;
        at = stop;
        found = true;
    }
    if (!found) {
        const std::size_t open = text.find('{') + 1;
        out = std::string(text.substr(0, open)) + "\n  \"torch_dtype\": " + value + ",";
        copied = open;
    }
    return out + std::string(text.substr(copied));
}

std::string withoutQuantisation(std::string_view text)
{
    auto object = nlohmann::ordered_json::parse(text, nullptr, false);
    object.erase("quantization_config");
    if (object.contains("text_config") && object["text_config"].is_object())
        object["text_config"].erase("quantization_config");
    return object.dump(2) + "\n";
}

bool isCarried(const std::string& fileName)
{
    constexpr std::array<std::string_view, 6> kNames = {"special_tokens_map.json",
        "generation_config.json", "added_tokens.json", "vocab.json", "merges.txt", "tekken.json"};
    constexpr std::array<std::string_view, 3> kBegins = {"tokenizer", "chat_template", "LICENSE"};
    if (fileName.ends_with(".model") ||
        std::find(kNames.begin(), kNames.end(), fileName) != kNames.end())
        return true;
    return std::any_of(kBegins.begin(), kBegins.end(),
        [&](std::string_view begin) { return fileName.starts_with(begin); });
}

} // namespace mr
