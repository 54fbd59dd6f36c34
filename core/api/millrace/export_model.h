// A trained model, written for other programs: the forms there are, an order, and what came of it.
//
// Threads  Values.
// Units    Bytes.

#pragma once

#include <millrace/run_spec.h>

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mr {

enum class ExportForm : std::uint8_t {
    Safetensors, // a model folder, with the adapter in it where there is one
    Merged,      // likewise, of an adapter
    Gguf,        // one file for llama.cpp, Ollama and LM Studio
    Ollama,      // a folder with that file and a Modelfile
    Peft,        // the folder of the adapter alone
    GgufAdapter, // one file with the adapter alone
    Torchrun     // a folder that continues the run with PyTorch
};

struct ExportFormInfo {
    ExportForm form{};
    std::string_view name; // "gguf"
    bool isFile = false;
    bool ofAdapter = false;                  // there must be one
    std::span<const std::string_view> types; // of the weights, "auto" first; empty: no choice
    std::string_view help;                   // half a sentence for the command line
};

std::span<const ExportFormInfo> exportForms() noexcept;
const ExportFormInfo& infoOf(ExportForm form) noexcept;

struct ExportOrder {
    std::string model; // folder of a run, a checkpoint, an adapter or a model
    std::string adapter = {};
    ExportForm form = ExportForm::Safetensors;
    std::string type = "auto";
    std::string out; // folder or file that is not there
    std::uint64_t shardBytes = 5'000'000'000;
    bool original = false; // of QLoRA: into the weights before they were quantised
    bool asks = true;      // GGUF: the file is asked what the model is
    DeviceChoice device = DeviceChoice::Auto;
    std::int64_t threads = 0;
    // Ollama: the server of this machine is to make a model of this name; empty: it is not asked.
    std::string ollamaName = {};
};

struct ExportOutcome {
    std::string path; // ".failed" in its name: it did not pass its check
    std::uint64_t bytes = 0;
    std::string type;
    std::vector<std::string> facts; // what was compared, with numbers; sentences
    std::vector<std::string> faults;
    std::vector<std::string> notes;
    std::string ollamaName = {}; // by which Ollama has it now
    std::string notCreated = {}; // why Ollama has not, although it was asked; a sentence

    bool passed() const noexcept { return faults.empty(); }
};

// Bytes of tensors. False stops, and nothing is left behind.
using ExportProgress = std::function<bool(std::uint64_t done, std::uint64_t all)>;

} // namespace mr
