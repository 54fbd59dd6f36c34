#include "core/exchange/pre_tokenizers.h"

#include "core/base/shown_text.h"
#include "core/exchange/json_reads.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <span>
#include <vector>

namespace mr {

using nlohmann::json;

namespace {

constexpr std::string_view kLlama3 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen2 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kQwen35 =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+|\p{N}| ?[^\s\p{L}\p{M}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kTekken =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kGpt4o =
    R"([^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]*[\p{Ll}\p{Lm}\p{Lo}\p{M}]+(?i:'s|'t|'re|'ve|'m|'ll|'d)?|[^\r\n\p{L}\p{N}]?[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]+[\p{Ll}\p{Lm}\p{Lo}\p{M}]*(?i:'s|'t|'re|'ve|'m|'ll|'d)?|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kSeed =
    R"((?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}\r\n]+|\s*[\r\n]+|\s+(?!\S)|\s+)";
constexpr std::string_view kThreeDigits = R"(\p{N}{1,3})";
constexpr std::string_view kHan = "[一-龥぀-ゟ゠-ヿ]+";
constexpr std::string_view kDeepSeek =
    "[!\"#$%&'()*+,\\-./:;<=>?@\\[\\\\\\]^_`{|}~][A-Za-z]+|[^\r\n\\p{L}\\p{P}\\p{S}]?[\\p{L}\\p{M}]"
    "+| ?[\\p{P}\\p{S}]+[\r\n]*|\\s*[\r\n]+|\\s+(?!\\S)|\\s+";

// Stages before the bytes: expressions, or GPT-2's own, with digits one by one before it.
struct Splitter {
    std::string_view name;
    std::array<std::string_view, 3> patterns = {};
    bool isGpt2 = false;
    bool singleDigits = false;
    bool ignoresMerges = false;
    std::string_view architecture = {}; // that has this name for it; empty: any
};

// Rows with equal stages: the one of the architecture counts, else the first.
constexpr Splitter kSplitters[] = {
    {.name = "llama-bpe", .patterns = {kLlama3}, .ignoresMerges = true},
    {.name = "glm4", .patterns = {kLlama3}, .ignoresMerges = true, .architecture = "glm4"},
    {.name = "dbrx", .patterns = {kLlama3}},
    {.name = "qwen2", .patterns = {kQwen2}},
    {.name = "qwen35", .patterns = {kQwen35}},
    {.name = "tekken", .patterns = {kTekken}, .ignoresMerges = true},
    {.name = "gpt-4o", .patterns = {kGpt4o}},
    {.name = "seed-coder", .patterns = {kSeed}},
    {.name = "hunyuan-dense", .patterns = {kThreeDigits, kHan, kDeepSeek}},
    {.name = "gpt-2", .isGpt2 = true},
    {.name = "exaone4", .isGpt2 = true, .architecture = "exaone4"},
    {.name = "olmo", .isGpt2 = true, .architecture = "olmo"},
    {.name = "smollm", .isGpt2 = true, .singleDigits = true},
    {.name = "refact", .isGpt2 = true, .singleDigits = true, .architecture = "granite"},
};

struct Alias {
    std::string_view name;
    std::string_view splitter;
};

constexpr Alias kAliases[] = {{"llama3", "llama-bpe"}, {"llama-v3", "llama-bpe"},
    {"pixtral", "llama-bpe"}, {"falcon3", "llama-bpe"}, {"smaug-bpe", "dbrx"},
    {"chatglm-bpe", "dbrx"}, {"deepseek-r1-qwen", "qwen2"}, {"stablelm2", "qwen2"},
    {"hunyuan", "qwen2"}, {"llama4", "gpt-4o"}, {"phi-2", "gpt-2"}, {"starcoder", "smollm"},
    {"deepseek-v3", "hunyuan-dense"}};

const Splitter* findSplitter(std::string_view name) noexcept
{
    const auto* const alias = std::ranges::find(kAliases, name, &Alias::name);
    const std::string_view own = alias == std::end(kAliases) ? name : alias->splitter;
    const auto* const row = std::ranges::find(kSplitters, own, &Splitter::name);
    return row == std::end(kSplitters) ? nullptr : row;
}

Status refuse(const std::string& what)
{
    return Status::error(ErrorKind::InvalidArgument,
        "cannot be written as GGUF: the tokenizer " + what +
            ", and llama.cpp has no splitter that does; export the model as safetensors");
}

// A tokenizer.json's stages in the terms of the table.
struct Stages {
    std::vector<std::string> patterns;
    bool isGpt2 = false;
    bool singleDigits = false;
};

Status addSplit(const json& stage, Stages& out)
{
    const json pattern = fieldOf(stage, "pattern");
    const bool isolates =
        textOf(stage, "behavior") == "Isolated" && !flagOf(stage, "invert", false);
    const bool inverts = textOf(stage, "behavior") == "Removed" && flagOf(stage, "invert", false);
    if (!fieldOf(pattern, "Regex").is_string() || !(isolates || inverts))
        return refuse("cuts words at " + shownName(textOf(pattern, "String", "?")));
    out.patterns.push_back(textOf(pattern, "Regex"));
    return {};
}

Status addStage(const json& stage, Stages& out)
{
    const std::string type = textOf(stage, "type");
    if (type == "Sequence") {
        for (const json& part : fieldOf(stage, "pretokenizers"))
            MR_TRY(addStage(part, out));
        return {};
    }
    if (type == "Split")
        return addSplit(stage, out);
    if (type == "Digits" && flagOf(stage, "individual_digits", false)) {
        out.singleDigits = true;
        return {};
    }
    if (type != "ByteLevel")
        return refuse("has a stage " + shownName(type));
    if (flagOf(stage, "add_prefix_space", true))
        return refuse("puts a space before every text");
    out.isGpt2 = flagOf(stage, "use_regex", true);
    return {};
}

bool agree(const Splitter& row, const Stages& stages)
{
    const auto used = std::ranges::count_if(
        row.patterns, [](std::string_view pattern) { return !pattern.empty(); });
    return row.isGpt2 == stages.isGpt2 && row.singleDigits == stages.singleDigits &&
           std::ranges::equal(
               std::span(row.patterns).first(static_cast<std::size_t>(used)), stages.patterns);
}

json splitStage(std::string_view pattern)
{
    return {{"type", "Split"}, {"pattern", {{"Regex", pattern}}}, {"behavior", "Isolated"},
        {"invert", false}};
}

} // namespace

Result<std::string> preTokenizerName(const json& content, std::string_view architecture)
{
    Stages stages;
    MR_TRY(addStage(fieldOf(content, "pre_tokenizer"), stages));
    const bool ignores = flagOf(fieldOf(content, "model"), "ignore_merges", false);
    const Splitter* found = nullptr;
    for (const Splitter& row : kSplitters) {
        const bool isOthers = !row.architecture.empty() && row.architecture != architecture;
        if (isOthers || row.ignoresMerges != ignores || !agree(row, stages))
            continue;
        if (found == nullptr || !row.architecture.empty())
            found = &row;
    }
    if (found == nullptr)
        return refuse("cuts words by an expression of its own" +
                      (stages.patterns.empty() ? std::string() : ", " + stages.patterns.front()));
    return std::string(found->name);
}

Result<json> preTokenizerOf(std::string_view name)
{
    const Splitter* row = findSplitter(name);
    if (row == nullptr) {
        std::string known;
        for (const Splitter& each : kSplitters)
            known.append(known.empty() ? "" : ", ").append(each.name);
        return Status::error(ErrorKind::InvalidArgument,
            "tokenizer.ggml.pre is " + shownName(name) +
                ", a splitter that is not known here; take the model's folder of Hugging Face "
                "instead. Known: " +
                known);
    }
    json stages = json::array();
    if (row->singleDigits)
        stages.push_back({{"type", "Digits"}, {"individual_digits", true}});
    for (const std::string_view pattern : row->patterns)
        if (!pattern.empty())
            stages.push_back(splitStage(pattern));
    stages.push_back({{"type", "ByteLevel"}, {"add_prefix_space", false}, {"trim_offsets", true},
        {"use_regex", row->isGpt2}});
    return json{{"type", "Sequence"}, {"pretokenizers", std::move(stages)}};
}

bool ignoresMerges(std::string_view name) noexcept
{
    const Splitter* row = findSplitter(name);
    return row != nullptr && row->ignoresMerges;
}

} // namespace mr
