#include "app/try_models.h"

#include "app/compose.h"
#include "core/base/bytes.h"
#include "core/base/clock.h"
#include "core/base/thread.h"
#include "core/save/model_folder.h"

#include <algorithm>
#include <utility>

namespace mr::app {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostLoaded = 2;
constexpr std::int64_t kUsualRoom = 1024; // tokens: most prompts need no second loading

fs::file_time_type writtenAt(const std::string& folder)
{
    std::error_code ignored;
    fs::file_time_type newest = fs::file_time_type::min(); // not {}: that lies in the future
    for (const auto& entry : fs::directory_iterator(folder, ignored))
        newest = std::max(newest, fs::last_write_time(entry.path(), ignored));
    return newest;
}

// The type of its stored weights, so that a large model needs no more memory than those.
DType computeOf(const ModelConfig& config)
{
    return config.dtype == "bfloat16" || config.dtype == "float16" ? DType::BF16 : DType::F32;
}

// A card refuses an allocation that it has no room for; host memory would be taken from other
// programs.
Status refuseIfHostLacks(const std::string& folder, const Device& device, std::size_t bytes)
{
    const std::uint64_t available = inspectMachine().availableBytes;
    if (device.info().threads == 0 || bytes <= available)
        return {};
    return Status::error(ErrorKind::OutOfMemory,
        folder + ": needs " + formatBytes(bytes) + " to answer, " + formatBytes(available) +
            " are available; end other programs or choose a smaller model");
}

} // namespace

Result<TryModels::Loaded> TryModels::load(const ModelPlace& place, std::int64_t room)
{
    const std::string& folder = place.model;
    MR_ASSIGN(auto config, readModelConfig(folder));
    InferenceOptions options;
    options.cache = true;
    options.adapter = place.adapter;
    options.seqLen = std::min(room, config.longestSequence());
    options.compute = computeOf(config);
    MR_ASSIGN(auto bytes, InferenceModel::deviceBytes(folder, options));
    const InferenceDevice wanted{DeviceChoice::Auto, bytes, 0, options.compute};
    MR_ASSIGN(auto device, makeInferenceDevice(wanted));
    if (!refuseIfHostLacks(folder, *device, bytes).ok())
        m_loaded.clear(); // the kept models may take the memory
    MR_TRY(refuseIfHostLacks(folder, *device, bytes));
    MR_ASSIGN(auto model, InferenceModel::load(folder, options, *device));
    return Loaded{folder, writtenAt(folder), options.seqLen, std::move(device), std::move(model)};
}

// The one that has its weights, whatever adapter is on it; a new adapter may need a new one.
Result<InferenceModel*> TryModels::find(const ModelPlace& place, std::int64_t tokens)
{
    const fs::file_time_type written = writtenAt(place.model);
    for (auto kept = m_loaded.begin(); kept != m_loaded.end(); ++kept) {
        const bool hasRoom =
            kept->room >= tokens || kept->room == kept->model->config().longestSequence();
        if (kept->folder != place.model || kept->written != written || !hasRoom)
            continue;
        MR_ASSIGN(const bool fits, kept->model->useAdapter(place.adapter));
        if (!fits)
            continue;
        m_loaded.splice(m_loaded.begin(), m_loaded, kept);
        return m_loaded.front().model.get();
    }
    m_loaded.remove_if([&](const Loaded& kept) { return kept.folder == place.model; });
    while (m_loaded.size() >= kMostLoaded)
        m_loaded.pop_back();
    MR_ASSIGN(auto loaded, load(place, std::max(kUsualRoom, roomFor(tokens, tokens + kUsualRoom))));
    m_loaded.push_front(std::move(loaded));
    return m_loaded.front().model.get();
}

// A model that is too large for the machine is no reason for the window to end.
Result<Answer> TryModels::answer(
    const std::string& path, const Prompt& prompt, const AnswerWatch& watch)
{
    Answer out;
    MR_TRY(guarded("answer", [&] { return answerInto(path, prompt, watch, out); }));
    return out;
}

Status TryModels::answerInto(
    const std::string& path, const Prompt& prompt, const AnswerWatch& watch, Answer& out)
{
    MR_TRY(checkPrompt(prompt));
    MR_ASSIGN(const ModelPlace place, modelPlaceOf(path));
    MR_ASSIGN(auto config, readModelConfig(place.model));
    MR_ASSIGN(auto tokenizer, Tokenizer::openFor(place.model, config.vocab));
    MR_ASSIGN(const std::string taught, place.chatTemplate());
    auto read = readPrompt(prompt, *tokenizer, config, place.model, taught);
    MR_TRY(read.status());
    out.read = read.value().text;
    out.byTemplate = read.value().byTemplate;
    out.promptTokens = static_cast<std::int64_t>(read.value().tokens.size());
    if (watch.onRead)
        watch.onRead(out);
    const std::lock_guard lock(m_mutex);
    MR_ASSIGN(auto model, find(place, out.promptTokens + prompt.maxTokens));
    const std::int64_t beginNs = nowNs();
    const GenerateOptions options{
        prompt.maxTokens, prompt.temperature, prompt.topP, prompt.seed, watch.onText};
    MR_ASSIGN(auto made, model->generate(read.value(), options));
    out.seconds = 1e-9 * static_cast<double>(nowNs() - beginNs);
    out.text = made.text;
    out.tokens = static_cast<std::int64_t>(made.tokens.size());
    out.ended = made.ended;
    return {};
}

void TryModels::release()
{
    const std::lock_guard lock(m_mutex);
    m_loaded.clear();
}

} // namespace mr::app
