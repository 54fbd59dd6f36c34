#include "core/model/base_files.h"

#include "core/model/safetensors.h"
#include "core/model/weights.h"

#include <fmt/format.h>

#include <algorithm>
#include <system_error>
#include <tuple>
#include <utility>

namespace mr {
namespace {

constexpr std::size_t kMostFiles = 128; // open at once

// Tensors that follow each other in group and file are one extent.
void join(std::vector<BaseExtent>& extents)
{
    std::ranges::sort(extents, [](const BaseExtent& a, const BaseExtent& b) {
        return std::tie(a.group, a.at) < std::tie(b.group, b.at);
    });
    std::vector<BaseExtent> joined;
    for (const BaseExtent& extent : extents) {
        const bool goesOn = !joined.empty() && joined.back().group == extent.group &&
                            joined.back().file == extent.file &&
                            joined.back().at + joined.back().bytes == extent.at &&
                            joined.back().offset + joined.back().bytes == extent.offset;
        if (goesOn)
            joined.back().bytes += extent.bytes;
        else
            joined.push_back(extent);
    }
    extents = std::move(joined);
}

// The files that are read, without the others.
void dropUnread(BaseFiles& base)
{
    std::vector<int> place(base.files.size(), -1);
    std::vector<std::filesystem::path> read;
    for (BaseExtent& extent : base.extents) {
        int& to = place[static_cast<std::size_t>(extent.file)];
        if (to < 0) {
            to = static_cast<int>(read.size());
            read.push_back(base.files[static_cast<std::size_t>(extent.file)]);
        }
        extent.file = to;
    }
    base.files = std::move(read);
}

} // namespace

bool isFrozenBlock(const ParamTable& trained, GroupId group) noexcept
{
    const auto last = static_cast<std::int32_t>(trained.groups.size()) - 1;
    return group.value > 0 && group.value < last && frozenElements(trained, group) > 0;
}

Result<std::optional<BaseFiles>> ownFiles(const std::filesystem::path& folder,
    const ModelConfig& config, const ParamTable& trained, DType compute)
{
    const ParamTable& model = wholeModel(trained);
    const bool isPacked = trained.frozen && trained.frozen->settings.nf4Base;
    const std::string_view wanted = compute == DType::BF16 ? "BF16" : "F32";
    MR_ASSIGN(const WeightFiles found, findWeights(folder, config, model, TiedHead::Believed));
    std::vector<SafetensorsReader> readers;
    for (const std::filesystem::path& file : found.files) {
        MR_ASSIGN(SafetensorsReader reader, SafetensorsReader::open(file));
        readers.push_back(std::move(reader));
    }
    BaseFiles base{found.files, {}};
    for (std::size_t i = 0; i < model.tensors.size(); ++i) {
        const NamedTensor& tensor = model.tensors[i];
        if (!isFrozenBlock(trained, tensor.group))
            continue;
        const WeightFiles::Location& at = found.of[i];
        const SafetensorEntry& entry = readers[at.file].entries().at(at.name);
        if (isPacked || at.form != WeightForm::Plain || entry.dtype != wanted)
            return std::optional<BaseFiles>();
        base.extents.push_back(
            {tensor.group, sizeOf(compute) * static_cast<std::size_t>(tensor.first),
                static_cast<std::size_t>(entry.end - entry.begin), static_cast<int>(at.file),
                entry.begin});
    }
    join(base.extents);
    dropUnread(base);
    return base.files.size() > kMostFiles ? std::optional<BaseFiles>()
                                          : std::optional(std::move(base));
}

Result<std::string> weightStamp(
    const std::filesystem::path& folder, const ModelConfig& config, const ParamTable& trained)
{
    MR_ASSIGN(const WeightFiles found,
        findWeights(folder, config, wholeModel(trained), TiedHead::Believed));
    std::string words;
    for (const std::filesystem::path& file : found.files) {
        std::error_code error;
        const auto path = std::filesystem::canonical(file, error);
        const auto bytes = std::filesystem::file_size(file, error);
        const auto changed = std::filesystem::last_write_time(file, error);
        if (error)
            return Status::error(
                ErrorKind::Io, "cannot look at " + file.string() + ": " + error.message());
        words +=
            fmt::format("{} {} {}\n", path.string(), bytes, changed.time_since_epoch().count());
    }
    return words;
}

} // namespace mr
