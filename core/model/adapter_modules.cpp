#include "core/model/adapter_modules.h"

#include "core/tokenizer/text_regex.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <utility>

namespace mr {

namespace {

constexpr std::string_view kWeight = ".weight";

// The slot of the model that holds the tensor, if it is a matrix of a block.
const ParamSlot* linearSlot(const ParamTable& model, const NamedTensor& tensor)
{
    if (tensor.shape.size() != 2 || !std::string_view(tensor.name).ends_with(kWeight))
        return nullptr;
    const ParamSlot& slot = model.slotOf(tensor);
    constexpr SlotKind kLinear[] = {
        SlotKind::Qkv, SlotKind::AttnOut, SlotKind::GateUp, SlotKind::Down};
    return std::ranges::count(kLinear, slot.kind) > 0 ? &slot : nullptr;
}

// First letter of "12.mlp.up_proj" in "model.layers.12.mlp.up_proj".
std::size_t beginOfBlock(const std::string& module)
{
    constexpr std::string_view kBefore = "layers.";
    return module.find(kBefore) + kBefore.size();
}

// "q_proj" of "model.layers.0.self_attn.q_proj".
std::string lastName(const std::string& module)
{
    return module.substr(module.rfind('.') + 1);
}

// A rule or pattern of the settings, compiled.
class ModulePattern
{
public:
    static Result<ModulePattern> compile(const std::string& expression)
    {
        auto regex = TextRegex::compile(expression);
        if (!regex.ok())
            return Status::error(ErrorKind::InvalidArgument,
                "adapter: pattern '" + expression + "': " + regex.status().message());
        return ModulePattern(std::move(regex).value());
    }

    Result<bool> matches(const std::string& module) const
    {
        RegexMatcher matcher(*m_regex);
        RegexMatcher::Cursor at;
        TextRange found;
        MR_ASSIGN(const bool isFound, matcher.next(module, at, found));
        return isFound && found.begin == 0 && found.end == module.size();
    }

private:
    explicit ModulePattern(TextRegex regex)
        : m_regex(std::make_shared<TextRegex>(std::move(regex)))
    {
    }

    std::shared_ptr<const TextRegex> m_regex;
};

// Sets the rank and alpha of modules by rules.
class AdapterRules
{
public:
    static Result<AdapterRules> compile(const std::vector<AdapterRule>& rules)
    {
        AdapterRules all;
        for (const AdapterRule& rule : rules) {
            MR_ASSIGN(
                ModulePattern pattern, ModulePattern::compile("^(?:.*\\.)?(?:" + rule.key + ")$"));
            all.m_rules.emplace_back(std::move(pattern), rule.value);
        }
        return all;
    }

    Result<double> valueFor(const std::string& module, double otherwise) const
    {
        std::optional<double> found;
        for (const auto& [pattern, value] : m_rules) {
            MR_ASSIGN(const bool holds, pattern.matches(module));
            if (holds && found && *found != value)
                return Status::error(ErrorKind::InvalidArgument,
                    fmt::format(
                        "adapter: patterns give {} both {} and {}; let one of them match it",
                        module, *found, value));
            if (holds)
                found = value;
        }
        return found.value_or(otherwise);
    }

private:
    std::vector<std::pair<ModulePattern, double>> m_rules;
};

Status setRank(AdapterModule& module, double rank)
{
    const std::int64_t most = std::min(module.rows, module.in);
    const bool fits = rank >= 1.0 && rank <= static_cast<double>(most) && rank == std::floor(rank);
    if (!fits)
        return Status::error(ErrorKind::InvalidArgument,
            fmt::format("adapter: rank {} does not fit {}, whose matrix is {} x {}; give 1 to {}",
                rank, module.name, module.rows, module.in, most));
    module.rank = std::llround(rank);
    return {};
}

Status setRanks(std::vector<AdapterModule>& modules, const AdapterSettings& settings)
{
    MR_ASSIGN(const AdapterRules ranks, AdapterRules::compile(settings.ranks));
    MR_ASSIGN(const AdapterRules alphas, AdapterRules::compile(settings.alphas));
    for (AdapterModule& module : modules) {
        MR_ASSIGN(
            const double rank, ranks.valueFor(module.name, static_cast<double>(settings.rank)));
        MR_ASSIGN(const double alpha, alphas.valueFor(module.name, settings.alpha));
        MR_TRY(setRank(module, rank));
        module.scale =
            static_cast<float>(alpha / (settings.rankStabilised ? std::sqrt(rank) : rank));
        if (!std::isfinite(module.scale) || module.scale == 0.0F)
            return Status::error(ErrorKind::InvalidArgument,
                fmt::format("adapter: alpha {} makes nothing or no number of {}; the usual value "
                            "is the rank",
                    alpha, module.name));
    }
    return {};
}

// Every linear module of the blocks.
std::vector<AdapterModule> linearModules(const ParamTable& model)
{
    std::vector<AdapterModule> modules;
    for (const NamedTensor& tensor : model.tensors) {
        const ParamSlot* slot = linearSlot(model, tensor);
        if (slot == nullptr)
            continue;
        AdapterModule module;
        module.name =
            nameInMemory(model, tensor.name.substr(0, tensor.name.size() - kWeight.size()));
        module.product = slot->kind;
        module.firstRow = (tensor.first - slot->first) / slot->cols;
        module.rows = tensor.shape[0];
        module.in = tensor.shape[1];
        modules.push_back(std::move(module));
    }
    return modules;
}

Status noSuchModule(const std::vector<AdapterModule>& modules, const std::string& wanted)
{
    std::set<std::string> names;
    for (const AdapterModule& module : modules)
        names.insert(lastName(module.name));
    return Status::error(ErrorKind::InvalidArgument,
        fmt::format("adapter: no linear module of the model is called '{}'; there are {}", wanted,
            fmt::join(names, ", ")));
}

bool isAny(const std::string& module, const std::vector<std::string>& entries)
{
    return std::ranges::any_of(
        entries, [&](const std::string& entry) { return isTarget(module, entry); });
}

// Keeps those that the settings name.
Status keepTargets(std::vector<AdapterModule>& modules, const AdapterSettings& settings)
{
    const std::vector<AdapterModule> all = modules;
    for (const std::string& entry : settings.targets)
        if (std::ranges::none_of(
                all, [&](const AdapterModule& module) { return isTarget(module.name, entry); }))
            return noSuchModule(all, entry);
    std::erase_if(modules, [&](const AdapterModule& module) {
        const bool isInLayers = settings.layers.empty() ||
                                std::ranges::count(settings.layers, blockOf(module.name)) > 0;
        const bool isNamed = settings.targets.empty() || isAny(module.name, settings.targets);
        return !isInLayers || !isNamed || isAny(module.name, settings.excluded);
    });
    if (!settings.targetPattern.empty()) {
        MR_ASSIGN(const ModulePattern pattern, ModulePattern::compile(settings.targetPattern));
        std::vector<AdapterModule> kept;
        for (AdapterModule& module : modules) {
            MR_ASSIGN(const bool matches, pattern.matches(module.name));
            if (matches)
                kept.push_back(std::move(module));
        }
        modules = std::move(kept);
    }
    if (modules.empty())
        return Status::error(ErrorKind::InvalidArgument,
            "adapter: targets, layers and exclusions leave no module of this model");
    return {};
}

std::string escaped(const std::string& name)
{
    std::string out;
    for (const char letter : name)
        out += letter == '.' ? std::string("\\.") : std::string(1, letter);
    return out;
}

// PEFT calls the projections of inputs of blocks linear, too; they get no adapter here.
bool hasOtherLinear(const ParamTable& model)
{
    return std::ranges::any_of(model.tensors, [&](const NamedTensor& tensor) {
        return model.slotOf(tensor).kind == SlotKind::InputProjection;
    });
}

// An expression for the whole names of these modules, and no others.
std::string expressionOf(const std::vector<AdapterModule>& modules)
{
    std::map<std::string, std::set<std::int64_t>> blocksOf; // by the name within a block
    for (const AdapterModule& module : modules) {
        const std::string rest = module.name.substr(beginOfBlock(module.name));
        blocksOf[escaped(rest.substr(rest.find('.') + 1))].insert(blockOf(module.name));
    }
    std::map<std::set<std::int64_t>, std::vector<std::string>> namesOf;
    for (const auto& [name, blocks] : blocksOf)
        namesOf[blocks].push_back(name);
    const std::string& first = modules.front().name;
    const std::string prefix = escaped(first.substr(0, beginOfBlock(first)));
    std::vector<std::string> parts;
    for (const auto& [blocks, names] : namesOf)
        parts.push_back(fmt::format(
            "{}(?:{})\\.(?:{})", prefix, fmt::join(blocks, "|"), fmt::join(names, "|")));
    return fmt::format("{}", fmt::join(parts, "|"));
}

} // namespace

bool isTarget(const std::string& module, const std::string& entry)
{
    return module == entry || module.ends_with("." + entry);
}

std::int64_t blockOf(const std::string& module)
{
    return std::stoll(module.substr(beginOfBlock(module)));
}

bool isLinear(const ParamTable& model, const NamedTensor& tensor)
{
    return linearSlot(model, tensor) != nullptr;
}

Result<std::vector<AdapterModule>> adapterModules(
    const ParamTable& model, const AdapterSettings& settings)
{
    std::vector<AdapterModule> modules = linearModules(model);
    MR_TRY(keepTargets(modules, settings));
    MR_TRY(setRanks(modules, settings));
    return modules;
}

Result<AdapterSettings> settingsForPeft(const ParamTable& model, const AdapterSettings& settings)
{
    MR_ASSIGN(const std::vector<AdapterModule> modules, adapterModules(model, settings));
    AdapterSettings named = settings;
    const bool leavesSome = !settings.layers.empty() || hasOtherLinear(model);
    if (model.isWrapped || (leavesSome && !settings.targetPattern.empty())) {
        named.targetPattern = expressionOf(modules);
        named.targets.clear();
        named.excluded.clear();
        named.layers.clear();
    } else if (leavesSome && settings.targets.empty()) {
        std::set<std::string> names;
        for (const AdapterModule& module : modules)
            names.insert(lastName(module.name));
        named.targets.assign(names.begin(), names.end());
    }
    return named;
}

} // namespace mr
