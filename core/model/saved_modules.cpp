#include "core/model/saved_modules.h"

#include "core/model/adapter_modules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace mr {
namespace {

constexpr GroupId kFirst{0};

GroupId lastGroup(const ParamTable& table) noexcept
{
    return GroupId{static_cast<std::int32_t>(table.groups.size()) - 1};
}

// A module that can be trained whole, by the end of its name.
struct Savable {
    const char* module;
    SlotKind kind{};
};

constexpr Savable kEmbeddingModule{"embed_tokens", SlotKind::Embedding};
constexpr Savable kHeadModule{"lm_head", SlotKind::Head};

// PEFT takes the end of a name, or all of it.
bool isNamed(const Savable& module, const std::string& entry)
{
    return isTarget(entry, module.module);
}

bool isSaved(const AdapterSettings& settings, const Savable& module)
{
    return std::ranges::any_of(
        settings.saved, [&](const std::string& entry) { return isNamed(module, entry); });
}

Status refuse(std::string message)
{
    return Status::error(ErrorKind::InvalidArgument, "adapter: " + std::move(message));
}

Status checkTokens(const ParamTable& model, std::vector<std::int64_t> tokens)
{
    const std::int64_t vocab = model.find(kFirst, SlotKind::Embedding)->rows;
    std::ranges::sort(tokens);
    const auto twice = std::ranges::adjacent_find(tokens);
    if (twice != tokens.end())
        return refuse(fmt::format("token {} is named twice", *twice));
    for (const std::int64_t token : tokens)
        if (token < 0 || token >= vocab)
            return refuse(
                fmt::format("token {} is none of this model, which has 0 to {}", token, vocab - 1));
    return {};
}

// `model`: all of it.
std::string peftName(const ParamTable& model, const Savable& module, std::string_view tensor)
{
    const TensorPrefix& files = model.prefix;
    const std::string_view before = module.kind == SlotKind::Head ? files.head : files.model;
    return fmt::format(
        "{}{}.{}", kPeftPrefix, nameInMemory(model, std::string(before) + module.module), tensor);
}

// All of the module, in the model's place.
void placeWhole(const Savable& module, FrozenModel& frozen, ParamTable& table)
{
    const GroupId group = lastGroup(table);
    const auto index = static_cast<std::size_t>(group.value);
    const ParamSlot& whole = *frozen.model.find(group, module.kind);
    const std::int64_t first = addSlot(table, module.kind, whole.rows, whole.cols, 2).first;
    table.tensors.push_back(
        {peftName(frozen.model, module, "weight"), group, first, {whole.rows, whole.cols}});
    // Others behind it stay, and its own first values with them, which are not read.
    if (frozen.model.groups[index].paramSlots.back().kind == module.kind)
        frozen.elements[index] = whole.first;
    frozen.replaced[index] = {{whole.first, first, whole.count()}};
}

void placeRows(const std::vector<std::int64_t>& tokens, FrozenModel& frozen, ParamTable& table)
{
    const std::int64_t cols = frozen.model.find(kFirst, SlotKind::Embedding)->cols;
    const auto rows = static_cast<std::int64_t>(tokens.size());
    std::int64_t at = addSlot(table, SlotKind::TokenRows, rows, cols, 2).first;
    table.tensors.push_back(
        {peftName(frozen.model, kEmbeddingModule, "token_adapter.trainable_tokens_delta"), kFirst,
            at, {rows, cols}});
    std::vector<ReplacedRange>& ranges = frozen.replaced.front();
    for (const std::int64_t token : tokens) {
        const std::int64_t first = token * cols;
        if (!ranges.empty() && ranges.back().model + ranges.back().count == first)
            ranges.back().count += cols;
        else
            ranges.push_back({first, at, cols});
        at += cols;
    }
}

} // namespace

Status checkSaved(const ParamTable& model, const AdapterSettings& settings)
{
    for (const std::string& entry : settings.saved)
        if (!isNamed(kEmbeddingModule, entry) && !isNamed(kHeadModule, entry))
            return refuse(
                fmt::format("'{}' cannot be trained whole beside an adapter; embed_tokens and "
                            "lm_head can, and --train-layers trains blocks",
                    entry));
    const bool savesEmbedding = isSaved(settings, kEmbeddingModule);
    if (hasTiedHead(model) && savesEmbedding != isSaved(settings, kHeadModule))
        return refuse("the head of this model is its embedding; train both whole, as in "
                      "embed_tokens,lm_head, or neither");
    if (savesEmbedding && !settings.tokens.empty())
        return refuse("the embedding is trained whole; name no tokens beside it");
    return checkTokens(model, settings.tokens);
}

void placeSaved(FrozenModel& frozen, ParamTable& table)
{
    const GroupId group = lastGroup(table);
    const AdapterSettings& settings = frozen.settings;
    if (group == kFirst && isSaved(settings, kEmbeddingModule))
        placeWhole(kEmbeddingModule, frozen, table);
    else if (group == kFirst && !settings.tokens.empty())
        placeRows(settings.tokens, frozen, table);
    else if (group == lastGroup(frozen.model) && isSaved(settings, kHeadModule) &&
             !hasTiedHead(frozen.model))
        placeWhole(kHeadModule, frozen, table);
}

std::vector<TokenRun> tokenRuns(const ParamTable& trained)
{
    std::vector<TokenRun> runs;
    const ParamSlot* rows = trained.find(kFirst, SlotKind::TokenRows);
    if (rows == nullptr)
        return runs;
    for (const ReplacedRange& range : trained.frozen->replaced.front())
        runs.push_back({range.model / rows->cols, (range.trained - rows->first) / rows->cols,
            range.count / rows->cols});
    return runs;
}

bool trainsHeadMatrix(const ParamTable& trained) noexcept
{
    const ParamTable& model = wholeModel(trained);
    return hasTiedHead(model) ? trained.find(kFirst, SlotKind::Embedding) != nullptr
                              : trained.find(lastGroup(model), SlotKind::Head) != nullptr;
}

} // namespace mr
