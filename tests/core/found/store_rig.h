// StoreRig: a home folder with the stores of other programs, made of one small model.

#pragma once

// The engine's headers come before those of Qt.
// clang-format off
#include "core/gguf/gguf_writer.h"
#include "core/run/golden_rig.h"
#include "core/run/run_rig.h"
#include "core/save/gguf_export.h"

#include <millrace/local_models.h>
// clang-format on

#include <QCryptographicHash>

#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace mr::test {

namespace fs = std::filesystem;

// Made once a process.
inline const Folder& smallModel()
{
    static const Folder folder = [] {
        Folder made;
        writeSmallModel(made);
        return made;
    }();
    return folder;
}

inline const std::string& smallGguf()
{
    static const std::string bytes = [] {
        const Folder out;
        GgufOptions options;
        options.form = GgufForm::F32;
        require(exportGguf({smallModel().path()}, out.path("model.gguf"), options).status());
        return readFile(out.path("model.gguf"));
    }();
    return bytes;
}

// Reads metadata alone.
inline std::string ggufOf(const GgufValues& values)
{
    const Folder out;
    require(writeGguf(out.path("made.gguf"), values, {}));
    return readFile(out.path("made.gguf"));
}

inline std::string sha256(std::string_view content)
{
    return QCryptographicHash::hash(
        QByteArray(content.data(), static_cast<qsizetype>(content.size())),
        QCryptographicHash::Sha256)
        .toHex()
        .toStdString();
}

class StoreRig
{
public:
    fs::path path(const std::string& name = {}) const { return m_home.path(name); }

    // With the folders that it is in.
    fs::path put(const std::string& name, std::string_view content) const
    {
        fs::create_directories(path(name).parent_path());
        return m_home.write(name, content);
    }

    // The small model as a folder, but for one file.
    void putModel(const std::string& folder, const std::string& without = {}) const
    {
        for (const char* name : {"config.json", "tokenizer.model", "model.safetensors"})
            if (name != without)
                put(folder + "/" + name, readFile(smallModel().path(name)));
    }

    // A file of a snapshot: a link to a blob, as huggingface_hub makes it.
    void putLinked(const std::string& repo, const std::string& revision, const std::string& name,
        std::string_view content) const
    {
        const std::string hash = sha256(content);
        put(repo + "/blobs/" + hash, content);
        const fs::path link = path(repo + "/snapshots/" + revision + "/" + name);
        fs::create_directories(link.parent_path());
        fs::create_symlink(fs::relative(path(repo + "/blobs/" + hash), link.parent_path()), link);
    }

    void putSnapshot(const std::string& repo, const std::string& revision) const
    {
        for (const char* name : {"config.json", "tokenizer.model", "model.safetensors"})
            putLinked(repo, revision, name, readFile(smallModel().path(name)));
    }

    // The layer of a manifest, whose blob is put into the store.
    std::string layer(const std::string& kind, std::string_view content) const
    {
        put("ollama/blobs/sha256-" + sha256(content), content);
        return layerText(kind, "sha256:" + sha256(content), content.size());
    }

    static std::string layerText(
        const std::string& kind, const std::string& digest, std::size_t bytes)
    {
        return R"({"mediaType": "application/vnd.ollama.image.)" + kind + R"(", "digest": ")" +
               digest + R"(", "size": )" + std::to_string(bytes) + "}";
    }

    void putManifest(const std::string& name, const std::vector<std::string>& layers) const
    {
        std::string text = R"({"schemaVersion": 2, "layers": [)";
        for (const std::string& each : layers)
            text += (text.back() == '[' ? "" : ", ") + each;
        put("ollama/manifests/" + name, text + "]}");
    }

    ModelPlaces places() const
    {
        return {{path("hub").string()}, {path("lmstudio").string()}, {path("ollama").string()},
            {path("folders").string()}};
    }

    LocalModels look() const { return findLocalModels(places()); }

private:
    Folder m_home;
};

// The only model of this name; stops the test program if there is none or another one.
inline LocalModel named(const LocalModels& found, const std::string& name)
{
    std::vector<LocalModel> all;
    std::string names;
    for (const LocalModel& model : found.models) {
        names += " " + model.name;
        if (model.name == name)
            all.push_back(model);
    }
    if (all.size() != 1)
        qFatal("%zu models \"%s\" among%s", all.size(), name.c_str(), names.c_str());
    return all.front();
}

} // namespace mr::test
