// Models that are on this machine already, in the stores of other programs and in folders that the
// user names.
//
// Looking reads small files and headers and writes nothing. Names, manifests and configs are those
// of strangers: a model that cannot be read is an entry with its fault and hides no other.
//
// Threads  Any; blocking (files). The UI calls findLocalModels() from workers.
// Errors   As the `reason` of an entry and the `fault` of a place; localModelPath() says its own.
// Units    Bytes are those of weight files.

#pragma once

#include <millrace/status.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

enum class ModelStore : std::uint8_t { HuggingFace, LmStudio, Ollama, Folder };

enum class ModelUse : std::uint8_t {
    Train,   // all of its weights, or an adapter beside them; it can be asked
    Adapter, // an adapter beside its weights; it can be asked
    Nothing,
};

// "Hugging Face", "LM Studio", "Ollama", "folder"
std::string_view name(ModelStore store) noexcept;
// "train", "adapter", "nothing"
std::string_view name(ModelUse use) noexcept;

struct LocalModel {
    std::string name; // "Qwen/Qwen3-0.6B", "llama3.2:1b"
    ModelStore store = ModelStore::Folder;
    std::string path;            // for --model and `inspect`; empty: none of it is there
    std::string revision;        // Hugging Face: "main", another name, or the commit
    std::string architecture;    // "Qwen3ForCausalLM", or as the file says; empty: not known
    std::int64_t parameters = 0; // 0: not known
    std::uint64_t bytes = 0;
    std::string licence;    // the first line of it, or its name; empty: the files say none
    bool isAdapter = false; // beside another model, which is not looked for; it can be exported
    ModelUse use = ModelUse::Nothing;
    std::string reason; // why this use and no other; a sentence
};

struct LookedPlace {
    ModelStore store = ModelStore::Folder;
    std::string path;
    bool exists = false;
    std::string fault; // why it, or a part of it, was not looked at; empty: it was
};

struct LocalModels {
    std::vector<LocalModel> models; // by store and place; a revision named main before the others
    std::vector<LookedPlace> places;
    std::uint64_t bytes = 0; // of all; a file that several models share counts once
};

// Folders that may not exist.
struct ModelPlaces {
    std::vector<std::string> huggingFace; // hub caches: folders of models--ORG--NAME
    std::vector<std::string> lmStudio;    // folders of PUBLISHER/MODEL
    std::vector<std::string> ollama;      // folders of manifests and blobs
    std::vector<std::string> folders;     // named by the user
};

// The places that the environment, the home folder and the settings of those programs name.
ModelPlaces usualModelPlaces(std::vector<std::string> folders = {});

LocalModels findLocalModels(const ModelPlaces& places);

// The path of the model with this name; `text` as it is where a file or folder is there under it,
// where it begins as a path does, or where no model has the name. InvalidArgument: several models
// have it, or nothing can be done with the one that has.
Result<std::string> localModelPath(const std::string& text, const ModelPlaces& places);

} // namespace mr
