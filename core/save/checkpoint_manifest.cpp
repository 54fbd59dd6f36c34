#include "core/save/checkpoint_manifest.h"

#include "core/base/file.h"
#include "core/save/checkpoint_text.h"
#include "core/store/trained_folders.h"

#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <vector>

namespace mr {
namespace fs = std::filesystem;
namespace {

using Json = nlohmann::json;
constexpr std::uint64_t kMostManifestBytes = 16 << 20;
constexpr int kVersion = 2; // 1 had no hash of itself
constexpr std::array<const char*, 2> kNeeded = {"state/state.json", "state/state.safetensors"};
// ... and one of these.
constexpr std::array<const char*, 3> kTrained = {
    "model/config.json", "adapter/adapter_config.json", "block/block.safetensors"};

Status damaged(const fs::path& file, const std::string& what)
{
    return Status::error(ErrorKind::DataCorrupt, file.string() + ": " + what);
}

std::string words(XXH64_hash_t hash)
{
    std::array<char, 17> text{};
    (void)std::snprintf(text.data(), text.size(), "%016" PRIx64, hash);
    return text.data();
}

// A checkpoint has files of its own: a link would lead out of it, a pipe may never end. The folder
// itself may be a link, to another disk.
Status mustBeOwnFile(const fs::path& folder, const fs::path& name)
{
    std::error_code error;
    fs::path at = folder;
    fs::file_type type = fs::file_type::directory;
    for (const fs::path& part : name) {
        if (type != fs::file_type::directory)
            return damaged(at, "is no folder");
        at /= part;
        type = fs::symlink_status(at, error).type();
        if (type == fs::file_type::symlink)
            return damaged(at, "is a link; a checkpoint has files of its own");
        if (type == fs::file_type::not_found)
            return damaged(at, "is missing");
        if (error)
            return Status::error(
                ErrorKind::Io, at.string() + ": cannot be looked at: " + error.message());
    }
    return type == fs::file_type::regular ? Status() : damaged(at, "is no file");
}

std::string hashOf(const Json& manifest)
{
    const std::string text = manifest.dump(1);
    return words(XXH3_64bits(text.data(), text.size()));
}

// Whole to the last bit: written again, it is the same text.
bool isWhole(Json manifest, const std::string& text)
{
    if (manifest.dump(1) != text)
        return false;
    const Json version = manifest.value("version", Json());
    if (version == 1)
        return true;
    const Json hash = manifest.value("manifest", Json());
    manifest.erase("manifest");
    return version == kVersion && hash == hashOf(manifest);
}

Result<Json> readFiles(const fs::path& folder)
{
    const fs::path path = folder / kManifestFile;
    MR_TRY(mustBeOwnFile(folder, kManifestFile));
    auto text = readWholeFile(path, kMostManifestBytes);
    if (!text.ok())
        return Status::error(ErrorKind::DataCorrupt, text.status().message());
    auto parsed = parseManifestText(text.value(), path.string());
    if (!parsed.ok())
        return Status::error(ErrorKind::DataCorrupt, parsed.status().message());
    const Json& manifest = parsed.value();
    if (!isWhole(manifest, text.value()))
        return damaged(path, "is not as it was written");
    for (const char* needed : kNeeded)
        if (!manifest["files"].contains(needed))
            return damaged(path, std::string("does not name ") + needed);
    if (std::ranges::none_of(
            kTrained, [&](const char* file) { return manifest["files"].contains(file); }))
        return damaged(path, std::string("does not name ") + kTrained.front());
    return manifest["files"];
}

Status verifyFile(
    const fs::path& folder, const std::string& name, const Json& entry, VerifyDepth depth)
{
    MR_TRY(mustBeOwnFile(folder, name));
    const fs::path path = folder / name;
    std::error_code error;
    const std::uintmax_t bytes = fs::file_size(path, error);
    if (error)
        return Status::error(
            ErrorKind::Io, path.string() + ": cannot be looked at: " + error.message());
    if (!entry.is_object() || !entry.contains("bytes") || !entry.contains("xxh3"))
        return damaged(path, "the manifest does not say what it was");
    if (entry["bytes"] != bytes)
        return damaged(
            path, fmt::format("has {} bytes, {} were written", bytes, entry["bytes"].dump()));
    if (depth == VerifyDepth::Lengths)
        return {};
    MR_ASSIGN(auto hash, hashOfFile(path));
    if (entry["xxh3"] != hash)
        return damaged(path, "the bytes are not those that were written");
    return {};
}

// A loader takes all tensors of a folder.
Status refuseAdded(const fs::path& folder, const Json& files)
{
    std::error_code error;
    for (const char* part : {kTrainedFolders[0], kTrainedFolders[1], kTrainedFolders[2], "state"})
        for (const auto& entry : fs::directory_iterator(folder / part, error)) {
            const std::string name = entry.path().filename().string();
            const bool isRead = name.ends_with(".safetensors") || name.ends_with(".index.json");
            if (isRead && !files.contains(std::string(part) + "/" + name))
                return damaged(entry.path(), "was added after the checkpoint was written");
        }
    return {};
}

// By name; every folder is brought to the disk.
Result<std::vector<fs::path>> filesBelow(const fs::path& folder)
{
    std::vector<fs::path> files;
    std::error_code error; // not thrown: a disk that goes away is a failure like any other
    fs::recursive_directory_iterator entry(folder, error);
    for (; !error && entry != fs::recursive_directory_iterator(); entry.increment(error)) {
        if (entry->is_directory(error))
            MR_TRY(syncFolder(entry->path()));
        else
            files.push_back(entry->path());
    }
    if (error)
        return Status::error(ErrorKind::Io, "list " + folder.string() + ": " + error.message());
    return files;
}

} // namespace

Result<std::string> hashOfFile(const fs::path& path)
{
    MR_ASSIGN(const File file, File::openRead(path));
    auto size = file.bytes();
    if (!size.ok())
        return size.status();
    const std::unique_ptr<XXH3_state_t, decltype(&XXH3_freeState)> state(
        XXH3_createState(), &XXH3_freeState);
    XXH3_64bits_reset(state.get());
    std::vector<std::byte> piece(kCheckpointPieceBytes);
    for (std::uint64_t at = 0; at < size.value(); at += piece.size()) {
        const std::size_t count = std::min<std::uint64_t>(piece.size(), size.value() - at);
        MR_TRY(file.readAt(at, {piece.data(), count}));
        XXH3_64bits_update(state.get(), piece.data(), count);
    }
    return words(XXH3_64bits_digest(state.get()));
}

Result<Sealed> sealCheckpoint(const fs::path& folder)
{
    MR_ASSIGN(auto listed, filesBelow(folder));
    Sealed sealed;
    Json files = Json::object();
    for (const fs::path& path : listed) {
        MR_ASSIGN(auto hash, hashOfFile(path));
        std::error_code error;
        const std::uint64_t bytes = fs::file_size(path, error);
        if (error)
            return Status::error(
                ErrorKind::Io, "look at " + path.string() + ": " + error.message());
        sealed.bytes += bytes;
        files[path.lexically_relative(folder).generic_string()] = {
            {"bytes", bytes}, {"xxh3", hash}};
    }
    Json manifest = {{"version", kVersion}, {"files", std::move(files)}};
    manifest["manifest"] = hashOf(manifest);
    const std::string text = manifest.dump(1);
    MR_TRY(replaceFile(folder / kManifestFile, text));
    sealed.manifestHash = words(XXH3_64bits(text.data(), text.size()));
    MR_TRY(syncFolder(folder));
    return sealed;
}

Result<Sealed> readSeal(const fs::path& folder)
{
    MR_ASSIGN(auto files, readFiles(folder));
    MR_ASSIGN(auto text, readWholeFile(folder / kManifestFile, kMostManifestBytes));
    Sealed sealed;
    for (const Json& entry : files)
        if (entry.is_object())
            if (const Json& bytes = entry.value("bytes", Json()); bytes.is_number_unsigned())
                sealed.bytes += bytes.get<std::uint64_t>();
    sealed.manifestHash = words(XXH3_64bits(text.data(), text.size()));
    return sealed;
}

Status verifyCheckpoint(const fs::path& folder, VerifyDepth depth, std::string_view below)
{
    MR_ASSIGN(auto files, readFiles(folder));
    // Quick checks come first.
    for (const VerifyDepth now : {VerifyDepth::Lengths, VerifyDepth::Bytes})
        for (const auto& [name, entry] : files.items())
            if (now <= depth && std::string_view(name).starts_with(below))
                MR_TRY(verifyFile(folder, name, entry, now));
    return refuseAdded(folder, files);
}

} // namespace mr
