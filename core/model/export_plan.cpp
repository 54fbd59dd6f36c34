#include "core/model/export_plan.h"

#include "core/base/file.h"
#include "core/base/half.h"
#include "core/device/adamw.h"
#include "core/model/joined_rows.h"
#include "core/model/safetensors_header.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
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

ExportType typeOf(const NamedTensor& tensor, ExportType type)
{
    return tensor.isWide ? ExportType::F32 : type;
}

const char* dtypeName(ExportType type)
{
    switch (type) {
    case ExportType::F32:
        return "F32";
    case ExportType::F16:
        return "F16";
    case ExportType::BF16:
        break;
    }
    return "BF16";
}

// The piece as a file of `type` holds it; returns where the next one begins.
std::byte* encode(const MasterView& view, ExportType type, std::byte* to)
{
    if (type == ExportType::BF16)
        std::memcpy(to, view.high.data(), view.high.size_bytes());
    else if (type == ExportType::F32)
        std::transform(view.high.begin(), view.high.end(), view.low.begin(),
            reinterpret_cast<float*>(to), joinHalves);
    else
        std::transform(view.high.begin(), view.high.end(), view.low.begin(),
            reinterpret_cast<std::uint16_t*>(to),
            [](std::uint16_t high, std::int16_t low) { return halfBits(joinHalves(high, low)); });
    return to + elementBytes(type) * view.high.size();
}

// One tensor of a saved model: a parameter, one in parts, or one that is carried.
struct ExportItem {
    std::string_view name;
    const NamedTensor* parameter = nullptr; // the first part
    const CarriedTensor* carried = nullptr;
    std::vector<const NamedTensor*> parts = {};

    std::uint64_t bytes(ExportType type) const
    {
        if (parameter == nullptr)
            return carried->bytes();
        std::uint64_t elements = 1;
        for (const std::int64_t size : parameter->fileShape())
            elements *= static_cast<std::uint64_t>(size);
        return elements * elementBytes(typeOf(*parameter, type));
    }

    int bits(ExportType type) const
    {
        return parameter != nullptr ? static_cast<int>(8 * elementBytes(typeOf(*parameter, type)))
                                    : safetensorBits(carried->entry.dtype);
    }
};

// Each tensor of the file once, by name.
std::vector<ExportItem> itemsOf(const ParamTable& table)
{
    std::vector<ExportItem> order;
    for (const CarriedTensor& tensor : table.carried)
        order.push_back({tensor.name, nullptr, &tensor});
    std::vector<const NamedTensor*> parts;
    for (const NamedTensor& tensor : table.tensors) {
        if (!tensor.isPart())
            order.push_back({tensor.name, &tensor, nullptr});
        else
            parts.push_back(&tensor);
    }
    if (!parts.empty())
        order.push_back({parts.front()->name, parts.front(), nullptr, parts});
    std::ranges::sort(order, {}, &ExportItem::name);
    return order;
}

// By name, cut so that no shard but one of a single tensor exceeds `limitBytes`. In a shard the
// widest elements come first, as safetensors writes them: all of them lie aligned.
std::vector<std::vector<ExportItem>> cutItems(
    const ParamTable& table, ExportType type, std::uint64_t limitBytes)
{
    std::vector<std::vector<ExportItem>> shards;
    std::uint64_t bytes = 0;
    for (const ExportItem& item : itemsOf(table)) {
        if (shards.empty() || bytes + item.bytes(type) > limitBytes) {
            shards.emplace_back();
            bytes = 0;
        }
        shards.back().push_back(item);
        bytes += item.bytes(type);
    }
    for (std::vector<ExportItem>& shard : shards)
        std::ranges::stable_sort(shard, std::ranges::greater(),
            [type](const ExportItem& item) { return item.bits(type); });
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
    const ExportType own = typeOf(tensor, type);
    const std::uint64_t width = elementBytes(own);
    SafetensorSource source{tensor.name, dtypeName(own), tensor.shape,
        static_cast<std::uint64_t>(tensor.count()) * width, {}};
    // The writer asks for pieces of 8 MiB, so every piece begins and ends with an element.
    source.fill = [group = tensor.group, first = tensor.first, own, width, &master, &piece](
                      std::uint64_t offset, std::span<std::byte> out) {
        const std::int64_t begin = first + static_cast<std::int64_t>(offset / width);
        const auto count = static_cast<std::int64_t>(out.size() / width);
        if (own == ExportType::BF16)
            return master.read(
                group, begin, {{reinterpret_cast<std::uint16_t*>(out.data()), out.size() / 2}, {}});
        std::byte* to = out.data();
        return forPieces(
            master, {group, begin, count}, piece, [&to, own](std::int64_t, const MasterView& view) {
                to = encode(view, own, to);
                return Status();
            });
    };
    return source;
}

// In parts. `master` outlives it.
SafetensorSource joinedSource(const ExportItem& item, MasterReader& master, ExportType type)
{
    const ExportType own = typeOf(*item.parameter, type);
    const std::uint64_t width = elementBytes(own);
    SafetensorSource source{
        std::string(item.name), dtypeName(own), item.parameter->fileShape(), item.bytes(type), {}};
    source.fill = [rows = std::make_shared<JoinedRows>(item.parts), own, width, &master](
                      std::uint64_t offset, std::span<std::byte> out) {
        std::byte* to = out.data();
        return rows->forPieces(master, static_cast<std::int64_t>(offset / width),
            static_cast<std::int64_t>(out.size() / width),
            [&to, own](std::int64_t, const MasterView& view) {
                to = encode(view, own, to);
                return Status();
            });
    };
    return source;
}

// The readers and the piece outlive it.
SafetensorSource sourceOf(const ExportItem& item, MasterReader& master, MasterPiece& piece,
    CarriedReader& carried, ExportType type)
{
    if (item.parameter == nullptr)
        return sourceOf(*item.carried, carried);
    return item.parts.empty() ? sourceOf(*item.parameter, master, piece, type)
                              : joinedSource(item, master, type);
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

// The places of the values of "dtype": of the config, and of the text part of a model that sees.
std::vector<std::pair<std::size_t, std::size_t>> dtypeValues(std::string_view text)
{
    std::vector<std::pair<std::size_t, std::size_t>> found;
    std::string_view section; // of the first level
    int depth = 0;
    for (std::size_t at = text.find('{'); at < text.size();) {
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
        if (isKey && depth == 1)
            section = word;
        const bool isOfModel = depth == 1 || (depth == 2 && section == "\"text_config\"");
        if (!isKey || !isOfModel || (word != "\"dtype\"" && word != "\"torch_dtype\""))
            continue;
        found.push_back(valueAfter(text, end));
        at = found.back().second;
    }
    return found;
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
            sources.push_back(sourceOf(item, master, piece, carried, type));
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
    CarriedReader carried;
    std::vector<SafetensorSource> sources;
    const std::vector<std::vector<ExportItem>> whole = cutItems(table, type, UINT64_MAX);
    for (const ExportItem& item : whole.front())
        if (item.parameter != nullptr)
            sources.push_back(sourceOf(item, master, piece, carried, type));
    return writeSafetensors(file, sources);
}

std::string withDtype(std::string_view text, ExportType type)
{
    const std::string value = type == ExportType::F32   ? "\"float32\""
                              : type == ExportType::F16 ? "\"float16\""
                                                        : "\"bfloat16\"";
    std::string out;
    std::size_t copied = 0;
    for (const auto& [begin, end] : dtypeValues(text)) {
        out += std::string(text.substr(copied, begin - copied)) + value;
        copied = end;
    }
    if (copied == 0) {
        copied = text.find('{') + 1;
        out = std::string(text.substr(0, copied)) + "\n  \"torch_dtype\": " + value + ",";
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
