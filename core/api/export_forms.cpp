#include <millrace/export_model.h>

#include <algorithm>
#include <array>

namespace mr {
namespace {

constexpr std::array<std::string_view, 4> kFolderTypes = {"auto", "bf16", "fp16", "fp32"};
constexpr std::array<std::string_view, 8> kGgufTypes = {
    "auto", "q8_0", "q4_k_m", "q6_k", "q4_0", "f16", "bf16", "f32"};

constexpr std::array<ExportFormInfo, 7> kForms = {{
    {ExportForm::Safetensors, "safetensors", false, false, kFolderTypes,
        "a model folder, with the adapter in it where there is one"},
    {ExportForm::Merged, "merged", false, true, kFolderTypes, "likewise, of an adapter"},
    {ExportForm::Gguf, "gguf", true, false, kGgufTypes,
        "one file for llama.cpp, Ollama and LM Studio"},
    {ExportForm::Ollama, "ollama", false, false, kGgufTypes,
        "a folder with that file and the Modelfile that Ollama reads"},
    {ExportForm::Peft, "peft", false, true, kFolderTypes, "the folder of the adapter alone"},
    {ExportForm::GgufAdapter, "gguf-adapter", true, true, {},
        "one file with the adapter alone, for llama.cpp and Ollama"},
    {ExportForm::Torchrun, "torchrun", false, false, {},
        "a folder that continues the run with PyTorch on a rented machine"},
}};

} // namespace

std::span<const ExportFormInfo> exportForms() noexcept
{
    return kForms;
}

const ExportFormInfo& infoOf(ExportForm form) noexcept
{
    return *std::ranges::find(kForms, form, &ExportFormInfo::form);
}

} // namespace mr
