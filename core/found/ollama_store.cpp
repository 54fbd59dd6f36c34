#include "core/found/ollama_store.h"

#include "core/base/file.h"
#include "core/found/judgement.h"
#include "core/found/ollama_manifest.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <system_error>
#include <vector>

namespace mr {

namespace fs = std::filesystem;

namespace {

constexpr std::uint64_t kMostManifestBytes = 4U << 20;
constexpr std::uint64_t kMostLicenceBytes = 64U << 10;
constexpr std::size_t kDigitsShown = 12;

// Folders below `manifests`, outermost first, and the tag.
using NameParts = std::array<std::string, 4>;

// "llama3.2:1b": host and namespace are left out where they are Ollama's own.
std::string modelName(const NameParts& parts)
{
    const auto& [host, space, model, tag] = parts;
    std::string name = model + ":" + tag;
    if (host != "registry.ollama.ai")
        return host + "/" + space + "/" + name;
    return space == "library" ? name : space + "/" + name;
}

class OllamaModel
{
public:
    OllamaModel(const fs::path& store, const fs::path& manifest)
        : m_blobs(store / "blobs")
        , m_manifest(manifest)
    {
    }

    FoundModel look()
    {
        if (const Status status = tryLook(); !status.ok()) {
            m_found.model.use = ModelUse::Nothing;
            m_found.model.reason = status.message();
        }
        return std::move(m_found);
    }

private:
    static Status refuse(const std::string& what)
    {
        return Status::error(ErrorKind::InvalidArgument, what);
    }

    Status tryLook()
    {
        MR_ASSIGN(const std::string text, readWholeFile(m_manifest, kMostManifestBytes));
        MR_ASSIGN(m_layers, parseOllamaManifest(text, m_manifest.string()));
        const std::size_t models = count("model");
        if (models != 1)
            return refuse(models == 0
                              ? m_manifest.string() + ": names no GGUF file; models that Ollama "
                                                      "stores otherwise are not read"
                              : fmt::format("{}: names {} model files; one is read",
                                    m_manifest.string(), models));
        const OllamaLayer& layer = *find("model");
        const fs::path blob = blobOf(layer);
        if (const std::string fault = incompleteWords(layer, blob); !fault.empty())
            return refuse("incomplete: " + fault);
        m_found = judgeGguf({blob.filename().string(), {blob}});
        readLicence();
        return judgeOthers();
    }

    // Adapters change answers; without them the model under this name is another.
    Status judgeOthers()
    {
        if (m_found.model.use == ModelUse::Nothing)
            return {};
        if (count("adapter") > 0)
            return refuse("It carries an adapter, which is not read here; the path is that of the "
                          "model below it.");
        if (count("projector") > 0)
            m_found.model.reason += " Its reader of pictures is left out.";
        return {};
    }

    void readLicence()
    {
        const OllamaLayer* layer = find("license");
        if (layer == nullptr)
            return;
        const std::string line = firstLine(headOf(blobOf(*layer), kMostLicenceBytes));
        if (!line.empty())
            m_found.model.licence = line;
    }

    std::size_t count(std::string_view kind) const
    {
        return static_cast<std::size_t>(std::count_if(m_layers.begin(), m_layers.end(),
            [kind](const OllamaLayer& layer) { return layer.kind == kind; }));
    }

    // The first of the kind, or null.
    const OllamaLayer* find(std::string_view kind) const
    {
        const auto found = std::find_if(m_layers.begin(), m_layers.end(),
            [kind](const OllamaLayer& layer) { return layer.kind == kind; });
        return found == m_layers.end() ? nullptr : &*found;
    }

    // Earlier versions of Ollama named blobs as digests are written.
    fs::path blobOf(const OllamaLayer& layer) const
    {
        const fs::path earlier = m_blobs / ("sha256:" + layer.digest);
        std::error_code error;
        return fs::exists(earlier, error) ? earlier : m_blobs / ("sha256-" + layer.digest);
    }

    static std::string incompleteWords(const OllamaLayer& layer, const fs::path& blob)
    {
        const std::string shown = "blob sha256-" + layer.digest.substr(0, kDigitsShown) + "...";
        std::error_code error;
        const std::uint64_t bytes = fs::file_size(blob, error);
        if (error)
            return shown + (fs::exists(blob.string() + "-partial", error)
                                   ? " is there in part; its download has not ended"
                                   : " is missing; fetch the model again");
        if (bytes != layer.bytes)
            return fmt::format("{} has {} of {} bytes", shown, bytes, layer.bytes);
        return {};
    }

    fs::path m_blobs;
    fs::path m_manifest;
    std::vector<OllamaLayer> m_layers;
    FoundModel m_found;
};

void lookBelow(const fs::path& folder, NameParts parts, std::size_t level, const fs::path& store,
    FoundModels& out)
{
    const FolderList list = listFolder(folder);
    if (!list.fault.empty())
        out.blame(list.fault);
    const bool isLast = level + 1 == parts.size();
    for (const fs::path& path : isLast ? list.files : list.folders) {
        parts[level] = path.filename().string();
        if (parts[level].starts_with('.') || out.isFull())
            continue;
        if (!isLast) {
            lookBelow(path, parts, level + 1, store, out);
            continue;
        }
        const std::string name = modelName(parts);
        if (!out.wants(name))
            continue;
        FoundModel found = OllamaModel(store, path).look();
        found.model.name = name;
        out.add(std::move(found));
    }
}

} // namespace

bool isOllamaStore(const FolderList& list)
{
    const auto has = [&](const char* name) {
        return std::any_of(list.folders.begin(), list.folders.end(),
            [name](const fs::path& folder) { return folder.filename() == name; });
    };
    return has("manifests") && has("blobs");
}

void findInOllamaStore(const fs::path& store, FoundModels& out)
{
    lookBelow(store / "manifests", {}, 0, store, out);
}

} // namespace mr
