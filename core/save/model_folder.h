// Which model is meant by the path of a model, an adapter, a checkpoint or a run.
//
// Threads  Any; looks at folders and reads small files.
// Errors   InvalidArgument: a run that has no model and no checkpoint yet; an adapter whose model
//          is not on this machine.

#pragma once

#include <millrace/status.h>

#include <filesystem>
#include <string>

namespace mr {

struct ModelPlace {
    std::string model;        // folder
    std::string adapter = {}; // folder of the one beside it; empty: none

    // The chat template that was taught with the adapter; empty: the model's own counts.
    Result<std::string> chatTemplate() const;

    bool operator==(const ModelPlace&) const = default;
};

// A GGUF file is the folder that it stands for (gguf_folder.h).
// A checkpoint's own model or adapter; of a run the one it ended with, else that of its newest
// complete checkpoint. Any other path is returned as it is: opening it reports the fault. `adapter`
// is put beside a model; a run of an adapter has its own.
Result<ModelPlace> modelPlaceOf(const std::string& path, const std::string& adapter = {});

// The run folder that this folder is, or lies in: RUN/checkpoints/step-N/model is the deepest.
// Empty: it is a model or an adapter on its own.
std::filesystem::path runFolderOf(const std::string& path);

// Whether the run that this folder is, or lies in, was trained on prompts and answers. False for a
// model on its own, and for runs of programs that did not record it.
bool isTrainedOnPrompts(const std::string& path);

} // namespace mr
