// TryModels: answers prompts with model folders, and keeps the last two of them loaded, because a
// base model and its fine-tuned model get the same prompt in turn. Adapters of a model share one.
//
// Threads    Any; answer() blocks for as long as loading and answering take, one after the other.
//            release() waits for the answer that is being given.
// Ownership  Owns models and their devices.
// Errors     Those of the folder, the device and the prompt.

#pragma once

#include "core/answer/inference.h"
#include "core/device/device.h"
#include "core/save/model_folder.h"

#include <millrace/status.h>
#include <millrace/try_it.h>

#include <filesystem>
#include <list>
#include <memory>
#include <mutex>
#include <string>

namespace mr::app {

class TryModels
{
public:
    // `path` is the folder of a model, an adapter, a checkpoint or a run.
    Result<Answer> answer(const std::string& path, const Prompt& prompt, const AnswerWatch& watch);
    // Gives all memory back: before a run that needs it.
    void release();

private:
    struct Loaded {
        std::string folder;
        std::filesystem::file_time_type written; // its weights may be replaced
        std::int64_t room = 0;
        std::unique_ptr<Device> device; // outlives the model: declared first
        std::unique_ptr<InferenceModel> model;
    };

    Status answerInto(
        const std::string& path, const Prompt& prompt, const AnswerWatch& watch, Answer& out);
    Result<InferenceModel*> find(const ModelPlace& place, std::int64_t tokens);
    Result<Loaded> load(const ModelPlace& place, std::int64_t room);

    std::mutex m_mutex;
    std::list<Loaded> m_loaded; // guarded by m_mutex; the newest first
};

} // namespace mr::app
