#include "core/tokenizer/tekken_file.h"

#include "core/tokenizer/base64.h"
#include "core/tokenizer/subword_model.h"
#include "core/tokenizer/text_regex.h"
#include "core/tokenizer/tokenizer_config.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <set>
#include <system_error>

namespace mr {
namespace {

namespace fs = std::filesystem;
using nlohmann::json;

// Published: 76. All ways to cut a token in two are tried.
constexpr std::size_t kMostTokenBytes = 256;

// Versions up to this one may leave the control tokens out. Source: mistral-common.
constexpr int kLastWithoutControls = 7;
constexpr std::array<const char*, 20> kOldControls{"<unk>", "<s>", "</s>", "[INST]", "[/INST]",
    "[AVAILABLE_TOOLS]", "[/AVAILABLE_TOOLS]", "[TOOL_RESULTS]", "[/TOOL_RESULTS]", "[TOOL_CALLS]",
    "[IMG]", "<pad>", "[IMG_BREAK]", "[IMG_END]", "[PREFIX]", "[MIDDLE]", "[SUFFIX]",
    "[SYSTEM_PROMPT]", "[/SYSTEM_PROMPT]", "[TOOL_CONTENT]"};

struct TekkenCounts {
    std::size_t all = 0;
    std::size_t controls = 0;
    int version = 0;
};

Result<std::size_t> readCount(const JsonNode& node, const char* name)
{
    if (!node.has(name))
        return node.fail(std::string(name) + " is missing");
    const JsonNode field = node.at(name);
    const bool isWhole = field.value().is_number_integer();
    const std::int64_t count = isWhole ? field.value().get<std::int64_t>() : -1;
    if (count < 0 || count > kMaxTokenId)
        return field.fail("must be a whole number from 0 to " + std::to_string(kMaxTokenId));
    return static_cast<std::size_t>(count);
}

// "v3" is 3.
Result<int> readVersion(const JsonNode& config)
{
    std::string text;
    MR_TRY(config.require("version", text));
    const bool isNumber =
        text.size() > 1 && text.size() < 6 && text[0] == 'v' &&
        std::all_of(text.begin() + 1, text.end(), [](char c) { return c >= '0' && c <= '9'; });
    return isNumber ? Result<int>(std::stoi(text.substr(1)))
                    : config.at("version").fail(inQuotes(text) + " is not a version such as v3");
}

Result<JsonNode> configOf(const JsonNode& root)
{
    if (!root.has("config") || !root.at("config").value().is_object())
        return root.fail("config is missing: this is no tekken.json");
    return root.at("config");
}

Result<TekkenCounts> readCounts(const JsonNode& root)
{
    constexpr std::array<std::string_view, 5> kKnown{"pattern", "num_vocab_tokens",
        "default_vocab_size", "default_num_special_tokens", "version"};
    MR_ASSIGN(JsonNode config, configOf(root));
    for (const auto& [name, value] : config.value().items())
        if (std::find(kKnown.begin(), kKnown.end(), name) == kKnown.end())
            return config.fail(inQuotes(name) + " is not known");
    TekkenCounts out;
    MR_ASSIGN(out.all, readCount(config, "default_vocab_size"));
    MR_ASSIGN(out.controls, readCount(config, "default_num_special_tokens"));
    MR_ASSIGN(out.version, readVersion(config));
    if (out.all < out.controls + 256)
        return config.fail(fmt::format("default_vocab_size {} has no room for {} control tokens "
                                       "and the 256 bytes",
            out.all, out.controls));
    return out;
}

// Names as "<SPECIAL_20>" stand for ids without a token, as upstream has it.
Status readControls(const JsonNode& root, const TekkenCounts& counts, TekkenFile& out)
{
    std::vector<JsonNode> list;
    const bool isListed = root.has("special_tokens");
    if (isListed)
        MR_TRY(root.elements("special_tokens", list));
    else if (counts.version > kLastWithoutControls)
        return root.fail("special_tokens is missing, which version v" +
                         std::to_string(counts.version) + " needs");
    else
        out.controls.assign(kOldControls.begin(), kOldControls.end());
    for (std::size_t i = 0; i < list.size(); ++i) {
        MR_ASSIGN(std::size_t rank, readCount(list[i], "rank"));
        if (rank != i)
            return list[i].at("rank").fail(
                fmt::format("is {}, but the token is at place {}", rank, i));
        MR_TRY(list[i].require("token_str", out.controls.emplace_back()));
        if (out.controls.back().empty())
            return list[i].at("token_str").fail("is empty");
    }
    if (out.controls.size() > counts.controls)
        return root.fail(fmt::format("special_tokens are {}, but default_num_special_tokens is {}",
            out.controls.size(), counts.controls));
    while (out.controls.size() < counts.controls)
        out.controls.push_back(fmt::format("<SPECIAL_{}>", out.controls.size()));
    std::set<std::string_view> seen;
    for (std::size_t i = 0; i < out.controls.size(); ++i)
        if (!seen.insert(out.controls[i]).second)
            return root.fail(
                fmt::format("special_tokens[{}]: {} is there twice", i, inQuotes(out.controls[i])));
    return {};
}

Result<std::string> readToken(const JsonNode& node, std::size_t place)
{
    MR_ASSIGN(std::size_t rank, readCount(node, "rank"));
    if (rank != place)
        return node.at("rank").fail(
            fmt::format("is {}, but the token is at place {}", rank, place));
    std::string text;
    std::string bytes;
    MR_TRY(node.require("token_bytes", text));
    const JsonNode field = node.at("token_bytes");
    if (text.size() > 2 * kMostTokenBytes || !decodeBase64(text, bytes))
        return field.fail(inQuotes(text) + " is no base64");
    if (bytes.empty() || bytes.size() > kMostTokenBytes)
        return field.fail(
            fmt::format("is {} bytes long; 1 to {} are supported", bytes.size(), kMostTokenBytes));
    if (place < 256 && bytes != std::string(1, static_cast<char>(place)))
        return field.fail(fmt::format("must be the byte {}", place));
    return bytes;
}

// Published files list more tokens than the model has.
Status readTokens(const JsonNode& root, const TekkenCounts& counts, TekkenFile& out)
{
    if (!root.has("vocab") || !root.at("vocab").value().is_array())
        return root.fail("vocab must be a list");
    const JsonNode vocab = root.at("vocab");
    const std::size_t count = counts.all - counts.controls;
    std::size_t least = count;
    if (root.at("config").has("num_vocab_tokens")) {
        MR_ASSIGN(std::size_t named, readCount(root.at("config"), "num_vocab_tokens"));
        least = std::max(least, named);
    }
    if (vocab.value().size() < least)
        return vocab.fail(
            fmt::format("has {} tokens, but config names {}", vocab.value().size(), least));
    for (std::size_t i = 0; i < count; ++i) {
        MR_ASSIGN(std::string token, readToken(vocab.at(i), i));
        out.tokens.push_back(std::move(token));
    }
    return {};
}

Result<std::string> readTekkenRegex(const JsonNode& root)
{
    MR_ASSIGN(JsonNode config, configOf(root));
    std::string pattern;
    MR_TRY(config.require("pattern", pattern));
    return pattern.empty() ? Result<std::string>(config.at("pattern").fail("is empty")) : pattern;
}

Result<std::string> readPatternOf(const fs::path& file)
{
    MR_ASSIGN(const json content, readJsonObject(file));
    Result<std::string> found = readTekkenRegex(JsonNode(content, ""));
    return found.ok() ? std::move(found) : badTokenizer(file, found.status().message());
}

Status readAll(const JsonNode& root, TekkenFile& out)
{
    MR_ASSIGN(out.pattern, readTekkenRegex(root));
    if (const Status sound = TextRegex::compile(out.pattern).status(); !sound.ok())
        return root.at("config").at("pattern").fail(sound.message());
    MR_ASSIGN(TekkenCounts counts, readCounts(root));
    MR_TRY(readControls(root, counts, out));
    return readTokens(root, counts, out);
}

// The stages of a pre-tokenizer, one level deep, as published files have them.
std::vector<const json*> stagesOf(const json& preTokenizer)
{
    std::vector<const json*> out;
    const auto list =
        preTokenizer.is_object() ? preTokenizer.find("pretokenizers") : preTokenizer.end();
    if (!preTokenizer.is_object() || list == preTokenizer.end() || !list->is_array())
        return {&preTokenizer};
    for (const json& stage : *list)
        out.push_back(&stage);
    return out;
}

bool hasType(const json& stage, std::string_view type)
{
    return stage.is_object() && stage.contains("type") && stage["type"] == type;
}

bool cutsAt(const json& stage, const std::string& pattern)
{
    const json::json_pointer place("/pattern/Regex");
    return hasType(stage, "Split") && stage.contains(place) && stage[place] == pattern;
}

} // namespace

Result<TekkenFile> readTekken(const fs::path& file)
{
    MR_ASSIGN(json content, readJsonObject(file));
    TekkenFile out;
    if (const Status read = readAll(JsonNode(content, ""), out); !read.ok())
        return badTokenizer(file, read.message());
    return out;
}

json tekkenPreTokenizer(const std::string& pattern)
{
    json out = json::parse(R"({"type": "Sequence", "pretokenizers": [
        {"type": "Split", "pattern": {}, "behavior": "Isolated"},
        {"type": "ByteLevel", "add_prefix_space": false, "use_regex": false}]})");
    out["pretokenizers"][0]["pattern"]["Regex"] = pattern;
    return out;
}

std::string takeTekkenPattern(const fs::path& folder, json& content)
{
    const fs::path file = folder / "tekken.json";
    std::error_code ignored;
    if (!fs::exists(file, ignored))
        return {};
    Result<std::string> found = readPatternOf(file);
    if (!found.ok())
        return "tokenizer.json could not be compared with the tekken.json beside it: " +
               found.status().message();
    const std::string& pattern = found.value();
    const std::vector<const json*> stages = stagesOf(content["pre_tokenizer"]);
    const auto splits = std::count_if(
        stages.begin(), stages.end(), [](const json* stage) { return hasType(*stage, "Split"); });
    const auto isRight = [&](const json* stage) { return cutsAt(*stage, pattern); };
    if (splits == 1 && std::any_of(stages.begin(), stages.end(), isRight))
        return {};
    if (std::none_of(stages.begin(), stages.end(),
            [](const json* stage) { return hasType(*stage, "ByteLevel"); }))
        return "the tokenizer.json of this model is not of the kind of the tekken.json beside it, "
               "and is used as it is";
    content["pre_tokenizer"] = tekkenPreTokenizer(pattern);
    return "tokenizer.json cuts words in another way than the tekken.json beside it, with which "
           "the model was trained; the words of tekken.json are used. Programs that read "
           "tokenizer.json alone give this model other tokens";
}

} // namespace mr
