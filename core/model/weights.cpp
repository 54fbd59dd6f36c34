#include "core/model/weights.h"

#include "core/base/philox.h"
#include "core/model/safetensors.h"
#include "core/optim/adamw.h"

#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>
#include <memory>
#include <numbers>
#include <numeric>
#include <utility>

namespace mr {

namespace {

constexpr std::size_t kPieceElements = 1U << 20; // 4 MiB of F32

// The part of a group's master that one tensor occupies.
MasterView viewOf(const NamedTensor& tensor, std::span<const MasterView> views)
{
    const MasterView& group = views[static_cast<std::size_t>(tensor.group.value)];
    const auto first = static_cast<std::size_t>(tensor.first);
    const auto count = static_cast<std::size_t>(tensor.count());
    return {group.high.subspan(first, count), group.low.subspan(first, count)};
}

Status checkViews(const ParamTable& table, std::span<const MasterView> views)
{
    bool fits = views.size() == table.groups.size();
    for (std::size_t i = 0; fits && i < views.size(); ++i) {
        const auto elements = static_cast<std::size_t>(table.groups[i].elements);
        fits = views[i].high.size() == elements && views[i].low.size() == elements;
    }
    return fits ? Status()
                : Status::error(ErrorKind::Internal,
                      "the master does not have the layout of the parameter table");
}

// What lies between the slots is zero and stays so.
void zeroPadding(const ParamTable& table, std::span<const MasterView> views)
{
    for (std::size_t g = 0; g < views.size(); ++g) {
        const std::vector<ParamSlot>& slots = table.groups[g].paramSlots;
        for (std::size_t s = 0; s < slots.size(); ++s) {
            const auto begin = static_cast<std::size_t>(slots[s].first + slots[s].count());
            const auto end = static_cast<std::size_t>(
                s + 1 < slots.size() ? slots[s + 1].first : table.groups[g].elements);
            std::fill(views[g].high.begin() + static_cast<std::ptrdiff_t>(begin),
                views[g].high.begin() + static_cast<std::ptrdiff_t>(end), std::uint16_t{0});
            std::fill(views[g].low.begin() + static_cast<std::ptrdiff_t>(begin),
                views[g].low.begin() + static_cast<std::ptrdiff_t>(end), std::int16_t{0});
        }
    }
}

void store(float value, const MasterView& view, std::size_t i)
{
    view.high[i] = highHalf(value);
    view.low[i] = lowHalf(value);
}

// NaN, infinite, or so large that its BF16 half would be infinite.
bool isUsable(float value)
{
    return (highHalf(value) & 0x7F80U) != 0x7F80U && std::isfinite(value);
}

Status refuseValue(
    const std::filesystem::path& file, const std::string& name, std::int64_t index, float value)
{
    const std::string what = std::isfinite(value) ? "a number too large for BF16"
                             : std::isnan(value)  ? "NaN"
                                                  : "infinity";
    return Status::error(ErrorKind::DataCorrupt,
        file.string() + ": tensor " + name + " holds " + what + " at element " +
            std::to_string(index) + "; the model is damaged, fetch or export it again");
}

Status loadTensor(const SafetensorsReader& reader, const std::string& name, const MasterView& view,
    std::vector<float>& piece)
{
    for (std::size_t at = 0; at < view.high.size(); at += piece.size()) {
        const auto part = std::span(piece).first(std::min(piece.size(), view.high.size() - at));
        MR_TRY(reader.readFloats(name, static_cast<std::int64_t>(at), part));
        bool usable = true;
        for (std::size_t i = 0; i < part.size(); ++i) {
            usable = usable && isUsable(part[i]);
            store(part[i], view, at + i);
        }
        if (usable)
            continue;
        const auto bad = std::find_if_not(part.begin(), part.end(), isUsable);
        return refuseValue(
            reader.path(), name, static_cast<std::int64_t>(at) + (bad - part.begin()), *bad);
    }
    return {};
}

// A number in (0, 1] of 53 bits.
double uniform(std::uint32_t high, std::uint32_t low)
{
    const std::uint64_t bits = ((std::uint64_t{high} << 32) | low) >> 11;
    return (static_cast<double>(bits) + 1.0) * 0x1p-53;
}

// Box and Muller, "A note on the generation of random normal deviates" (1958): one Philox block
// makes the elements 2 k and 2 k + 1.
std::array<double, 2> normalPair(std::uint64_t key, std::uint64_t block)
{
    const std::array<std::uint32_t, 4> words = philox(key, block);
    const double radius = std::sqrt(-2.0 * std::log(uniform(words[0], words[1])));
    const double angle = 2.0 * std::numbers::pi * uniform(words[2], words[3]);
    return {radius * std::cos(angle), radius * std::sin(angle)};
}

void fillNormal(const std::string& name, std::uint64_t seed, double range, const MasterView& view)
{
    const std::uint64_t key = XXH3_64bits(name.data(), name.size()) ^ seed;
    for (std::size_t i = 0; i < view.high.size(); i += 2) {
        const std::array<double, 2> pair = normalPair(key, i / 2);
        for (std::size_t j = 0; j < 2 && i + j < view.high.size(); ++j)
            store(static_cast<float>(range * pair[j]), view, i + j);
    }
}

} // namespace

Status loadWeights(
    const WeightFiles& files, const ParamTable& table, std::span<const MasterView> views)
{
    MR_TRY(checkViews(table, views));
    if (files.of.size() != table.tensors.size())
        return Status::error(ErrorKind::Internal, "the files are not those of this model");
    std::vector<SafetensorsReader> readers;
    for (const std::filesystem::path& file : files.files) {
        Result<SafetensorsReader> reader = SafetensorsReader::open(file);
        MR_TRY(reader.status());
        readers.push_back(std::move(reader).value());
    }
    zeroPadding(table, views);
    std::vector<float> piece(kPieceElements);
    for (std::size_t i = 0; i < table.tensors.size(); ++i) {
        const WeightFiles::Location& at = files.of[i];
        MR_TRY(loadTensor(readers[at.file], at.name, viewOf(table.tensors[i], views), piece));
    }
    return {};
}

void initializeWeights(const ModelConfig& config, const ParamTable& table, std::uint64_t seed,
    std::span<const MasterView> views)
{
    zeroPadding(table, views);
    for (const NamedTensor& tensor : table.tensors) {
        const MasterView view = viewOf(tensor, views);
        if (tensor.shape.size() == 2) {
            fillNormal(tensor.name, seed, config.initializerRange, view);
            continue;
        }
        const float value = tensor.name.ends_with(".bias") ? 0.0F : 1.0F;
        for (std::size_t i = 0; i < view.high.size(); ++i)
            store(value, view, i);
    }
}

std::string weightsHash(const ParamTable& table, std::span<const MasterView> views)
{
    std::vector<const NamedTensor*> order;
    for (const NamedTensor& tensor : table.tensors)
        order.push_back(&tensor);
    std::sort(order.begin(), order.end(),
        [](const NamedTensor* a, const NamedTensor* b) { return a->name < b->name; });
    const std::unique_ptr<XXH3_state_t, XXH_errorcode (*)(XXH3_state_t*)> state(
        XXH3_createState(), XXH3_freeState);
    XXH3_128bits_reset(state.get());
    std::vector<float> piece(kPieceElements);
    for (const NamedTensor* tensor : order) {
        const MasterView view = viewOf(*tensor, views);
        for (std::size_t at = 0; at < view.high.size(); at += piece.size()) {
            const std::size_t count = std::min(piece.size(), view.high.size() - at);
            for (std::size_t i = 0; i < count; ++i)
                piece[i] = joinHalves(view.high[at + i], view.low[at + i]);
            XXH3_128bits_update(state.get(), piece.data(), count * sizeof(float));
        }
    }
    const XXH128_hash_t hash = XXH3_128bits_digest(state.get());
    std::array<char, 33> text{};
    std::snprintf(text.data(), text.size(), "%016llx%016llx",
        static_cast<unsigned long long>(hash.high64), static_cast<unsigned long long>(hash.low64));
    return text.data();
}

} // namespace mr
