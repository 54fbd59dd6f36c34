#include "core/save/turned_groups.h"

#include "core/device/adamw.h"
#include "core/model/safetensors.h"
#include "core/save/checkpoint_folder.h"
#include "core/save/checkpoint_manifest.h"
#include "core/store/trained_folders.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <utility>

namespace mr {
namespace fs = std::filesystem;
namespace {

constexpr const char* kHigh = "high";
constexpr const char* kLow = "low";
constexpr const char* kWeights = "weights";

std::int64_t elementAt(std::uint64_t offset, std::size_t each)
{
    return static_cast<std::int64_t>(offset / each);
}

// One of the halves; the reader gives the high ones alone, and the low ones beside them.
SafetensorSource halfOf(const char* name, const MasterRange& group, MasterReader& master)
{
    const bool isHigh = name == kHigh;
    SafetensorSource source;
    source.name = name;
    source.dtype = isHigh ? "BF16" : "I16";
    source.shape = {group.count};
    source.bytes = sizeof(std::uint16_t) * static_cast<std::uint64_t>(group.count);
    source.fill = [group, isHigh, &master, piece = MasterPiece()](
                      std::uint64_t offset, std::span<std::byte> out) mutable {
        const MasterView view = piece.view(elementAt(out.size(), sizeof(std::uint16_t)));
        const MasterView wanted = isHigh ? MasterView{view.high, {}} : view;
        MR_TRY(master.read(group.group, elementAt(offset, sizeof(std::uint16_t)), wanted));
        const auto half = isHigh ? std::as_bytes(view.high) : std::as_bytes(view.low);
        std::ranges::copy(half, out.begin());
        return Status();
    };
    return source;
}

SafetensorSource wholeOf(const MasterRange& group, MasterReader& master)
{
    SafetensorSource source;
    source.name = kWeights;
    source.dtype = "F32";
    source.shape = {group.count};
    source.bytes = sizeof(float) * static_cast<std::uint64_t>(group.count);
    source.fill = [group, &master, piece = MasterPiece()](
                      std::uint64_t offset, std::span<std::byte> out) mutable {
        const MasterView view = piece.view(elementAt(out.size(), sizeof(float)));
        MR_TRY(master.read(group.group, elementAt(offset, sizeof(float)), view));
        std::transform(view.high.begin(), view.high.end(), view.low.begin(),
            reinterpret_cast<float*>(out.data()), joinHalves);
        return Status();
    };
    return source;
}

// In the first folder that has it.
fs::path pathOf(const RunFolders& folders, const TurnedGroup& group)
{
    std::error_code error;
    for (const fs::path& folder : folders)
        if (fs::path path = folder / kBlocksFolder / group.file; fs::is_regular_file(path, error))
            return path;
    return folders.front() / kBlocksFolder / group.file; // reading it says that it is missing
}

// One group, from the file that writeGroup() wrote.
class GroupFile final : public MasterReader
{
public:
    GroupFile(SafetensorsReader reader, bool isHalves)
        : m_reader(std::move(reader))
        , m_isHalves(isHalves)
    {
    }

    Status read(GroupId /*group*/, std::int64_t first, const MasterView& out) override
    {
        if (!m_isHalves)
            return readWhole(first, out);
        const std::uint64_t offset = sizeof(std::uint16_t) * static_cast<std::uint64_t>(first);
        MR_TRY(m_reader.readBytes(kHigh, offset, std::as_writable_bytes(out.high)));
        return out.low.empty() ? Status()
                               : m_reader.readBytes(kLow, offset, std::as_writable_bytes(out.low));
    }

private:
    Status readWhole(std::int64_t first, const MasterView& out)
    {
        m_joined.resize(out.high.size());
        MR_TRY(m_reader.readFloats(kWeights, first, m_joined));
        std::ranges::transform(m_joined, out.high.begin(), highHalf);
        if (!out.low.empty())
            std::ranges::transform(m_joined, out.low.begin(), lowHalf);
        return {};
    }

    SafetensorsReader m_reader;
    bool m_isHalves;
    std::vector<float> m_joined;
};

class TurnedMaster final : public MasterReader
{
public:
    explicit TurnedMaster(MasterReader& model)
        : m_model(model)
    {
    }

    void add(GroupId group, std::unique_ptr<MasterReader> file)
    {
        m_files.insert_or_assign(group, std::move(file));
    }

    Status read(GroupId group, std::int64_t first, const MasterView& out) override
    {
        const auto found = m_files.find(group);
        return found == m_files.end() ? m_model.read(group, first, out)
                                      : found->second->read(group, first, out);
    }

private:
    MasterReader& m_model;
    std::map<GroupId, std::unique_ptr<MasterReader>> m_files;
};

// Names of files that a checkpoint goes on from. False: one cannot be read.
bool addNamed(const std::vector<fs::path>& checkpoints, std::set<std::string>& names)
{
    for (const fs::path& checkpoint : checkpoints) {
        auto progress = readProgress(checkpoint);
        if (!progress.ok())
            return false;
        for (const TurnedGroup& group : progress.value().turned)
            names.insert(group.file);
    }
    return true;
}

} // namespace

Status writeGroup(
    const fs::path& file, const MasterRange& group, DType compute, MasterReader& master)
{
    std::vector<SafetensorSource> sources;
    if (compute == DType::BF16) {
        sources.push_back(halfOf(kHigh, group, master));
        sources.push_back(halfOf(kLow, group, master));
    } else {
        sources.push_back(wholeOf(group, master));
    }
    return writeSafetensors(file, sources);
}

Result<std::unique_ptr<MasterReader>> openGroup(const fs::path& file)
{
    MR_ASSIGN(SafetensorsReader reader, SafetensorsReader::open(file));
    const bool isHalves = reader.entries().contains(kHigh) && reader.entries().contains(kLow);
    if (!isHalves && !reader.entries().contains(kWeights))
        return Status::error(
            ErrorKind::DataCorrupt, file.string() + ": holds no weights of a block");
    return std::unique_ptr<MasterReader>(std::make_unique<GroupFile>(std::move(reader), isHalves));
}

Result<TurnedGroup> writeTurned(const RunFolders& folders, StepIndex step, const MasterRange& group,
    DType compute, MasterReader& master)
{
    const fs::path folder = folders.front() / kBlocksFolder;
    std::error_code error;
    fs::create_directories(folder, error);
    if (error)
        return Status::error(ErrorKind::Io, "create " + folder.string() + ": " + error.message());
    TurnedGroup turned;
    turned.group = group.group;
    turned.file = fmt::format("step-{:08}-group-{}.safetensors", step, group.group.value);
    MR_TRY(writeGroup(folder / turned.file, group, compute, master));
    MR_ASSIGN(turned.hash, hashOfFile(folder / turned.file));
    return turned;
}

Status verifyTurned(const RunFolders& folders, const std::vector<TurnedGroup>& turned)
{
    for (const TurnedGroup& group : turned) {
        const fs::path path = pathOf(folders, group);
        MR_ASSIGN(const std::string hash, hashOfFile(path));
        if (hash != group.hash)
            return Status::error(ErrorKind::DataCorrupt,
                path.string() + ": the bytes are not those that were written");
    }
    return {};
}

Result<std::unique_ptr<MasterReader>> openTurned(
    const RunFolders& folders, const std::vector<TurnedGroup>& turned, MasterReader& model)
{
    auto master = std::make_unique<TurnedMaster>(model);
    for (const TurnedGroup& group : turned) {
        MR_ASSIGN(auto file, openGroup(pathOf(folders, group)));
        master->add(group.group, std::move(file));
    }
    return std::unique_ptr<MasterReader>(std::move(master));
}

Status takeTurned(const RunFolders& folders, const std::vector<TurnedGroup>& turned, DType compute,
    BaseFiles& base)
{
    for (const TurnedGroup& group : turned) {
        const fs::path path = pathOf(folders, group);
        MR_ASSIGN(const SafetensorsReader reader, SafetensorsReader::open(path));
        const auto weights = reader.entries().find(compute == DType::BF16 ? kHigh : kWeights);
        if (weights == reader.entries().end())
            return Status::error(
                ErrorKind::DataCorrupt, path.string() + ": holds no weights of a block");
        std::erase_if(
            base.extents, [&](const BaseExtent& extent) { return extent.group == group.group; });
        const auto bytes = static_cast<std::size_t>(weights->second.end - weights->second.begin);
        base.extents.push_back(
            {group.group, 0, bytes, static_cast<int>(base.files.size()), weights->second.begin});
        base.files.push_back(path);
    }
    return {};
}

void removeUnusedTurned(const RunFolders& folders, const std::vector<TurnedGroup>& now)
{
    std::set<std::string> names;
    for (const TurnedGroup& group : now)
        names.insert(group.file);
    const fs::path& runDir = folders.back();
    if (!addNamed(namedCheckpoints(runDir, folders.front()), names) ||
        !addNamed(asideCheckpoints(runDir, folders.front()), names))
        return;
    std::error_code error;
    for (const fs::path& folder : folders)
        for (const auto& entry : fs::directory_iterator(folder / kBlocksFolder, error))
            if (!names.contains(entry.path().filename().string()))
                fs::remove(entry.path(), error); // a file that stays takes room, nothing else
}

} // namespace mr
