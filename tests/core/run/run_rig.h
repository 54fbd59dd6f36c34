// RunRig: a small model folder, data and a history of its own, and runs on them.

#pragma once

// The engine's headers come before those of Qt, which define the macros "slots" and "emit".
// clang-format off
#include "core/device/cpu/cpu_device.h"
#include "core/run/engine.h"
#include "core/model/weights.h"

#include <millrace/run_reader.h>

#include "core/tokenizer/small_tokenizer.h"
// clang-format on

#include <chrono>
#include <filesystem>
#include <functional>
#include <map>
#include <memory>
#include <string>
#include <vector>

namespace mr::test {

inline const char* smallModelConfig()
{
    return R"({
  "architectures": ["LlamaForCausalLM"],
  "model_type": "llama",
  "hidden_size": 24,
  "intermediate_size": 40,
  "num_hidden_layers": 2,
  "num_attention_heads": 4,
  "num_key_value_heads": 2,
  "vocab_size": 400,
  "max_position_embeddings": 64,
  "rms_norm_eps": 1e-05,
  "torch_dtype": "float32",
  "tie_word_embeddings": true
}
)";
}

// A Hugging Face folder: config.json, tokenizer.model, model.safetensors of random weights.
inline void writeSmallModel(const Folder& folder)
{
    trainTokenizer(folder);
    folder.write("config.json", smallModelConfig());
    const Folder out;
    const ModelConfig config = readModelConfig(folder.path()).value();
    const ParamTable table = buildParamTable(config);
    const Status saved = saveModel(out.path(), config, table, *initialWeights(config, table, 3),
        ExportType::F32, folder.path());
    if (!saved.ok())
        qFatal("writing a test model failed: %s", saved.message().c_str());
    std::filesystem::copy_file(out.path("model.safetensors"), folder.path("model.safetensors"));
}

// Questions and answers that the tokenizer has seen the like of.
inline std::string smallPairs(int rows, int offset = 0)
{
    std::string text;
    for (int i = 0; i < rows; ++i) {
        const std::string n = std::to_string(i * 7 % 100 + offset);
        text += R"({"prompt": "How many sacks of flour? )" + n +
                R"(", "response": "The miller counts )" + n + R"( sacks."})" + "\n";
    }
    return text;
}

inline std::unique_ptr<Device> smallDevice(
    int threads = 1, CpuDeviceOptions::Mode mode = CpuDeviceOptions::Mode::Inline)
{
    CpuDeviceOptions options;
    options.memoryBytes = std::size_t{64} << 20;
    options.threads = threads;
    options.mode = mode;
    return std::move(makeCpuDevice(options)).value();
}

// A way to train that may change no bit.
struct How {
    const char* name;
    const char* policy;
    std::map<std::string, std::string> options;
};

// How a run went.
struct Outcome {
    Status opened; // not ok: nothing else has a meaning
    Status ended;
    RunState state = RunState::Ready;
    RunProgress progress;
    std::int64_t id = 0;
    std::filesystem::path dir;
    std::filesystem::path saveDir;
    Status unsaved;
};

struct RunRig {
    Folder folder;
    std::string database = folder.path("history.db");
    std::unique_ptr<RunStore> store = std::move(RunStore::open(database)).value();
    Folder model;

    RunRig()
    {
        writeSmallModel(model);
        folder.write("pairs.jsonl", smallPairs(60));
    }

    RunSpec spec(const std::string& name) const
    {
        RunSpec spec;
        spec.name = name;
        spec.modelDir = model.path();
        spec.data = {{folder.path("pairs.jsonl"), DataFormat::Auto, {}}};
        spec.outDir = folder.path(name);
        spec.steps = 12;
        spec.seqLen = 40;
        spec.microBatch = 2;
        spec.accumulate = 2;
        spec.learningRate = 3e-3;
        spec.evalEvery = 0;
        spec.precision = PrecisionChoice::F32;
        spec.device = DeviceChoice::Cpu;
        spec.threads = 1;
        spec.policy = "resident";
        return spec;
    }

    // Called on the engine thread when a run reads its measured rates (EngineHooks).
    std::function<void(Feedback&)> onRates;
    std::function<std::int64_t()> checkpointClock;
    std::function<void(RunTruth&)> onTruth; // likewise, when it has ended

    OpeningWatch opening; // for the runs that follow
    // When a checkpoint finds no room. With Wait, `onMessage` has to answer.
    OnDiskFull onDiskFull = OnDiskFull::Stop;
    std::chrono::milliseconds pauseCheck{std::chrono::hours(1)};
    std::string saveFolder;
    ResumeChanges changes;
    // Called on the telemetry thread.
    std::function<void(Engine&, const EventRow&)> onMessage;

    // Called on the engine thread after the checkpoint of a step.
    using AtCheckpoint = std::function<void(Engine&, std::int64_t step)>;

    Outcome train(const RunSpec& spec, Device& device, const AtCheckpoint& at = {})
    {
        m_engine = nullptr;
        return carryOut(Engine::open(spec, device, *store, hooks(at)));
    }

    Outcome resume(const std::string& dir, Device& device, const AtCheckpoint& at = {})
    {
        m_engine = nullptr;
        return carryOut(Engine::resume(dir, device, *store, hooks(at)));
    }

    std::vector<StepRow> steps(std::int64_t run) const
    {
        return RunReader::open(database).value()->steps(run, -1, 10'000).value();
    }

    RunRow row(std::int64_t run) const
    {
        return RunReader::open(database).value()->run(run).value();
    }

    // All messages of a run, one a line: "code: text".
    std::string messages(std::int64_t run) const
    {
        std::string text;
        const std::vector<EventRow> events =
            RunReader::open(database).value()->events(run, -1).value();
        for (const EventRow& event : events)
            text += event.code + ": " + event.text + "\n";
        return text;
    }

private:
    EngineHooks hooks(const AtCheckpoint& at)
    {
        EngineHooks hooks;
        hooks.onRates = onRates;
        hooks.checkpointClock = checkpointClock;
        hooks.onTruth = onTruth;
        hooks.opening = opening;
        hooks.onDiskFull = onDiskFull;
        hooks.pauseCheck = pauseCheck;
        hooks.saveFolder = saveFolder;
        hooks.changes = changes;
        if (onMessage)
            hooks.records.onMessage = [this](const EventRow& row) { onMessage(*m_engine, row); };
        if (at)
            hooks.onCheckpoint = [this, at](const CheckpointWritten&, const RunProgress& progress) {
                at(*m_engine, progress.step);
            };
        return hooks;
    }

    Outcome carryOut(Result<std::unique_ptr<Engine>> engine)
    {
        Outcome out;
        out.opened = engine.status();
        if (!engine.ok())
            return out;
        m_engine = engine.value().get(); // before its thread starts
        out.opened = m_engine->start();
        out.ended = m_engine->wait();
        out.state = m_engine->state();
        out.progress = m_engine->progress();
        out.id = m_engine->runId();
        out.dir = m_engine->runDir();
        out.saveDir = m_engine->saveDir();
        out.unsaved = m_engine->unsaved();
        return out;
    }

    Engine* m_engine = nullptr;
};

// Ends a run as a person does, once the checkpoint of `step` is written.
inline RunRig::AtCheckpoint stopAt(std::int64_t step)
{
    return [step](Engine& engine, std::int64_t at) {
        if (at == step)
            engine.requestStop();
    };
}

} // namespace mr::test
