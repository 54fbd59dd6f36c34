#include "core/choose/trained_part.h"

#include "core/model/gguf_weights.h"
#include "core/model/peft_folder.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>
#include <utility>

namespace mr {
namespace {

Status refuse(std::string message)
{
    return Status::error(ErrorKind::InvalidArgument, std::move(message));
}

template <typename Number>
std::optional<Number> numberIn(std::string_view text)
{
    Number value{};
    const char* end = text.data() + text.size();
    const auto [stop, error] = std::from_chars(text.data(), end, value);
    return error == std::errc() && stop == end ? std::optional(value) : std::nullopt;
}

std::vector<std::string> partsOf(std::string_view text)
{
    std::vector<std::string> parts;
    while (!text.empty()) {
        const std::size_t end = std::min(text.find(','), text.size());
        std::string_view part = text.substr(0, end);
        text.remove_prefix(std::min(end + 1, text.size()));
        while (part.starts_with(' '))
            part.remove_prefix(1);
        while (part.ends_with(' '))
            part.remove_suffix(1);
        if (!part.empty())
            parts.emplace_back(part);
    }
    return parts;
}

// "7-9" as 7 and 9, "7" as 7 and 7. Nothing where it is neither.
std::optional<std::pair<std::int64_t, std::int64_t>> rangeIn(std::string_view part)
{
    const std::size_t dash = part.find('-');
    const auto first = numberIn<std::int64_t>(part.substr(0, dash));
    const auto last =
        dash == std::string_view::npos ? first : numberIn<std::int64_t>(part.substr(dash + 1));
    if (!first || !last || *first < 0 || *first > *last)
        return {};
    return std::pair(*first, *last);
}

Result<std::vector<std::int64_t>> tokensOf(std::string_view text)
{
    constexpr std::int64_t kMostTokens = 1 << 20; // that a range may name
    std::vector<std::int64_t> tokens;
    for (const std::string& part : partsOf(text)) {
        const auto range = rangeIn(part);
        if (!range || range->second - range->first >= kMostTokens)
            return refuse(fmt::format(
                "trainable-tokens: '{}' is no id of a token, nor a range of ids as 310-319", part));
        for (std::int64_t token = range->first; token <= range->second; ++token)
            tokens.push_back(token);
    }
    return tokens;
}

// Layers by their names: "embedding", "head", numbers of blocks.
class LayerNames
{
public:
    explicit LayerNames(std::int64_t blocks)
        : m_blocks(blocks)
    {
    }

    // Groups of the table, ascending.
    Result<std::vector<GroupId>> read(const std::string& text) const
    {
        std::set<std::int64_t> groups;
        for (const std::string& part : partsOf(text))
            MR_TRY(add(part, groups));
        std::vector<GroupId> ids;
        for (const std::int64_t group : groups)
            ids.push_back(GroupId{static_cast<std::int32_t>(group)});
        if (ids.empty())
            return refuse("train-layers names no layer; " + known());
        return ids;
    }

private:
    Status add(const std::string& part, std::set<std::int64_t>& groups) const
    {
        if (part == "embedding" || part == "head") {
            groups.insert(part == "head" ? m_blocks + 1 : 0);
            return {};
        }
        const auto range = rangeIn(part);
        if (!range || range->second >= m_blocks)
            return refuse("train-layers: '" + part + "' is no layer of this model; " + known());
        for (std::int64_t block = range->first; block <= range->second; ++block)
            groups.insert(block + 1);
        return {};
    }

    std::string known() const
    {
        return fmt::format("it has embedding, blocks 0 to {} and head, as in 0-{},head",
            m_blocks - 1, m_blocks - 1);
    }

    std::int64_t m_blocks;
};

Result<std::vector<AdapterRule>> rulesOf(
    const std::map<std::string, std::string>& texts, std::string_view option)
{
    std::vector<AdapterRule> rules;
    for (const auto& [key, text] : texts) {
        const auto value = numberIn<double>(text);
        if (!value)
            return refuse(fmt::format("{}: '{}' of {} is no number", option, text, key));
        rules.push_back({key, *value});
    }
    return rules;
}

std::map<std::string, std::string> textsOf(const std::vector<AdapterRule>& rules)
{
    std::map<std::string, std::string> texts;
    for (const AdapterRule& rule : rules)
        texts.emplace(rule.key, fmt::format("{}", rule.value)); // of equal keys the first counts
    return texts;
}

bool isExpression(std::string_view targets)
{
    return targets.size() > 1 && targets.starts_with('/') && targets.ends_with('/');
}

Result<AdapterSettings> adapterSettings(const RunSpec& spec, std::int64_t blocks)
{
    AdapterSettings settings;
    settings.rank = spec.rank;
    settings.alpha = spec.alpha > 0.0 ? spec.alpha : static_cast<double>(spec.rank);
    settings.rankStabilised = spec.rankStabilised;
    settings.nf4Base = spec.method == "qlora";
    settings.dora = spec.dora;
    if (isExpression(spec.targets))
        settings.targetPattern = spec.targets.substr(1, spec.targets.size() - 2);
    else
        settings.targets = partsOf(spec.targets);
    settings.excluded = partsOf(spec.excludedTargets);
    settings.saved = partsOf(spec.savedModules);
    MR_ASSIGN(settings.tokens, tokensOf(spec.trainedTokens));
    MR_ASSIGN(settings.ranks, rulesOf(spec.rankPattern, "rank-pattern"));
    MR_ASSIGN(settings.alphas, rulesOf(spec.alphaPattern, "alpha-pattern"));
    if (spec.trainLayers.empty())
        return settings;
    MR_ASSIGN(const auto groups, LayerNames(blocks).read(spec.trainLayers));
    for (const GroupId group : groups) {
        if (group.value == 0 || group.value > blocks)
            return refuse("train-layers: adapters are in the blocks; leave embedding and head out");
        settings.layers.push_back(group.value - 1);
    }
    return settings;
}

// Members of a spec that a PEFT folder gives.
struct AdapterMembers {
    explicit AdapterMembers(const RunSpec& spec)
        : rank(spec.rank)
        , alpha(spec.alpha)
        , rankStabilised(spec.rankStabilised)
        , dora(spec.dora)
        , targets(spec.targets)
        , excluded(spec.excludedTargets)
        , layers(spec.trainLayers)
        , ranks(spec.rankPattern)
        , alphas(spec.alphaPattern)
        , saved(spec.savedModules)
        , tokens(spec.trainedTokens)
    {
    }

    bool operator==(const AdapterMembers&) const = default;

    std::int64_t rank;
    double alpha;
    bool rankStabilised;
    bool dora;
    std::string targets;
    std::string excluded;
    std::string layers;
    std::map<std::string, std::string> ranks;
    std::map<std::string, std::string> alphas;
    std::string saved;
    std::string tokens;
};

void take(const AdapterSettings& settings, RunSpec& spec)
{
    spec.rank = settings.rank;
    spec.alpha = settings.alpha;
    spec.rankStabilised = settings.rankStabilised;
    spec.dora = settings.dora;
    spec.targets = settings.targetPattern.empty()
                       ? fmt::format("{}", fmt::join(settings.targets, ","))
                       : "/" + settings.targetPattern + "/";
    spec.excludedTargets = fmt::format("{}", fmt::join(settings.excluded, ","));
    spec.trainLayers = fmt::format("{}", fmt::join(settings.layers, ","));
    spec.rankPattern = textsOf(settings.ranks);
    spec.alphaPattern = textsOf(settings.alphas);
    spec.savedModules = fmt::format("{}", fmt::join(settings.saved, ","));
    spec.trainedTokens = fmt::format("{}", fmt::join(settings.tokens, ","));
}

Result<std::vector<GroupId>> namedGroups(const RunSpec& spec, const ModelConfig& config)
{
    MR_ASSIGN(auto groups, LayerNames(config.layers).read(spec.trainLayers));
    const bool hasHead = groups.back().value > config.layers;
    if (config.tiedEmbedding && hasHead && groups.front().value != 0)
        return refuse("train-layers: the head of this model is its embedding; name both, as in "
                      "embedding,head");
    return groups;
}

} // namespace

std::string methodWord(const RunSpec& spec)
{
    if (trainsInTurns(spec))
        return "blocks";
    return spec.method == "full" && !spec.trainLayers.empty() ? "layers" : spec.method;
}

Status takeAdapterSettings(RunSpec& spec)
{
    std::error_code error;
    if (!isAdapterRun(spec) || spec.adapterDir.empty())
        return {};
    const bool isRecorded = !(AdapterMembers(spec) == AdapterMembers(RunSpec()));
    if (isRecorded && !std::filesystem::exists(spec.adapterDir, error))
        return {};
    MR_ASSIGN(const PeftConfig config, readPeftConfig(spec.adapterDir));
    if (config.settings.nf4Base && spec.method == "lora")
        return refuse(spec.adapterDir + ": was trained beside the model in 4 bits; go on with "
                                        "--method qlora");
    RunSpec own = spec;
    take(config.settings, own);
    if (!isRecorded && own.dropout < 0.0)
        own.dropout = config.dropout;
    if (isRecorded && !(AdapterMembers(spec) == AdapterMembers(own)))
        return refuse(fmt::format("{}: rank, alpha and modules come with this adapter (rank {}, "
                                  "alpha {}); leave those options out",
            spec.adapterDir, own.rank, own.alpha));
    spec = std::move(own);
    return {};
}

bool trainsWholeModel(const RunSpec& spec)
{
    return !isAdapterRun(spec) && !trainsInTurns(spec) && spec.trainLayers.empty();
}

Result<ParamTable> trainedTable(const RunSpec& spec, const ModelConfig& config)
{
    ParamTable model = buildParamTable(config);
    if (isAdapterRun(spec)) {
        MR_ASSIGN(const auto settings, adapterSettings(spec, config.layers));
        return adapterTable(model, settings);
    }
    if (config.isNf4)
        return refuse(
            "the weights of this model are quantised (NF4) and cannot be trained; train an "
            "adapter beside them (--method lora), or take the unquantised model");
    if (const auto file = ggufOf(spec.modelDir); !file.empty())
        return refuse(file.string() +
                      ": the weights of a GGUF file are not trained; train an adapter beside them "
                      "(--method lora), or take the model folder that it was made of");
    if (trainsInTurns(spec)) {
        MR_ASSIGN(const auto groups, groupsOfTurns(spec, config));
        return turnTable(model, groups.front());
    }
    if (spec.trainLayers.empty())
        return model;
    MR_ASSIGN(const auto groups, namedGroups(spec, config));
    return trainedLayers(model, groups);
}

Result<std::vector<GroupId>> groupsOfTurns(const RunSpec& spec, const ModelConfig& config)
{
    if (!spec.trainLayers.empty())
        return namedGroups(spec, config);
    std::vector<GroupId> blocks;
    for (std::int64_t block = 1; block <= config.layers; ++block)
        blocks.push_back(GroupId{static_cast<std::int32_t>(block)});
    return blocks;
}

std::string trainedWords(const RunSpec& spec)
{
    if (isAdapterRun(spec))
        return fmt::format("{}{}{} {} {} {} {}", spec.dora ? "dora " : "",
            spec.dora && spec.dropout > 0.0 ? "dropout " : "", spec.method, spec.rank, spec.targets,
            spec.trainLayers, spec.savedModules);
    if (trainsInTurns(spec))
        return "blocks " + spec.trainLayers;
    return spec.trainLayers.empty() ? std::string() : "layers " + spec.trainLayers;
}

} // namespace mr
