#include "app/gguf_export.h"

#include "app/compose.h"
#include "core/base/file.h"
#include "core/exchange/gguf_folder.h"

#include <millrace/library.h>
#include <millrace/session.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <string_view>
#include <system_error>
#include <utility>

namespace mr::app {
namespace {

namespace fs = std::filesystem;
constexpr int kQuestions = 10;
constexpr std::size_t kTextPrompt = 16;   // tokens of a text that is continued
constexpr std::int64_t kMostPrompt = 256; // tokens
constexpr double kMostlySame = 0.6;       // share of the texts: many have runs of spaces

constexpr std::array<std::string_view, kQuestions> kPrompts = {"Once upon a time",
    "The capital of France is", "Water boils at", "def add(a, b):", "The opposite of hot is",
    "1, 2, 3, 4,", "My favourite season is", "Dear Sir or Madam,", "In the beginning",
    "A recipe for bread:"};

// Prompts of rows; of a text that is trained whole its first tokens.
std::vector<std::vector<TokenId>> promptsOf(const DatasetInfo& data)
{
    std::vector<std::vector<TokenId>> prompts;
    for (const PreviewRow& row : data.preview) {
        const auto answer = std::ranges::find(row.tokens, true, &PreviewToken::trained);
        auto count = static_cast<std::size_t>(answer - row.tokens.begin());
        if (count <= 1) // text
            count = std::min(kTextPrompt, row.tokens.size());
        std::vector<TokenId> ids;
        for (std::size_t i = 0; i < count; ++i)
            ids.push_back(row.tokens[i].id);
        if (!ids.empty())
            prompts.push_back(std::move(ids));
    }
    return prompts;
}

// The evaluation data of the run that a path names; nothing where there is none to be read.
std::vector<std::vector<TokenId>> promptsOfRun(const std::string& run, const std::string& model)
{
    const Result<RunSpec> read = readRunSpec(run);
    if (!read.ok())
        return {};
    const RunSpec spec = Result(read).value();
    const auto& sources = spec.evalData.empty() ? spec.data : spec.evalData;
    if (sources.empty())
        return {};
    const Result<DatasetInfo> data =
        inspectDataset(sources.front(), model, kMostPrompt, kQuestions, spec.split);
    return data.ok() ? promptsOf(Result(data).value()) : std::vector<std::vector<TokenId>>();
}

Result<std::vector<std::vector<TokenId>>> questionsFor(
    const std::string& path, const ModelPlace& place)
{
    auto prompts = promptsOfRun(path, place.model);
    if (!prompts.empty())
        return prompts;
    MR_ASSIGN(const ModelConfig config, readModelConfig(place.model));
    MR_ASSIGN(const auto tokenizer, Tokenizer::openFor(place.model, config.vocab));
    for (const std::string_view text : kPrompts) {
        std::vector<TokenId> ids;
        if (tokenizer->addsBos() && tokenizer->bos() >= 0)
            ids.push_back(tokenizer->bos());
        MR_TRY(tokenizer->encode(text, ids));
        prompts.push_back(std::move(ids));
    }
    return prompts;
}

// Three to ten times what Gaussian weights give (export section 10).
CheckLimits limitsOf(GgufForm form)
{
    switch (form) {
    case GgufForm::F32:
        return {1e-8, 1.0};
    case GgufForm::F16:
        return {1e-4, 0.97};
    case GgufForm::BF16:
        return {1e-3, 0.97};
    case GgufForm::Q8_0:
        return {1e-2, 0.95};
    case GgufForm::Q6_K:
        return {5e-2, 0.9};
    default:
        return {1.0, 0.5};
    }
}

nlohmann::json toJson(const GgufOutcome& outcome)
{
    nlohmann::json errors = nlohmann::json::object();
    for (const auto& [type, error] : outcome.report.errors)
        errors[type] = {{"weights", error.weights}, {"largest_error", error.largest},
            {"relative_error", error.relative}};
    nlohmann::json out{{"file", outcome.file.filename().string()},
        {"form", ggufFormName(outcome.report.form)}, {"bytes", outcome.report.bytes},
        {"weights", std::move(errors)}, {"notes", outcome.report.notes}, {"faults", outcome.faults},
        {"passed", outcome.faults.empty()}};
    if (outcome.verdict) {
        const ExportVerdict& v = *outcome.verdict;
        out["asked"] = {{"texts", v.texts}, {"same_texts", v.sameTexts},
            {"same_template", v.sameTemplate}, {"same_ends", v.sameEnds}, {"prompts", v.prompts},
            {"tokens", v.tokens}, {"same_tokens", v.sameTokens}, {"mean_kl", v.divergence}};
    }
    return out;
}

Result<ExportVerdict> ask(const GgufRequest& request, const ModelPlace& place,
    const std::string& taught, const fs::path& file)
{
    MR_ASSIGN(const fs::path folder, ggufFolder(file));
    CheckQuestions questions;
    questions.compute = request.compute;
    MR_ASSIGN(questions.prompts, questionsFor(request.model, place));
    questions.makeDevice = [&request](std::size_t bytes) {
        return makeInferenceDevice({request.device, bytes, request.threads, request.compute});
    };
    auto verdict = checkExport({place.model, place.adapter, taught}, {folder.string()}, questions);
    std::error_code ignored;
    fs::remove_all(folder, ignored); // it stands for a file that has no name yet
    return verdict;
}

} // namespace

Result<std::vector<TokenId>> answerEnds(const ModelPlace& place, const std::string& taught)
{
    MR_ASSIGN(const ModelConfig config, readModelConfig(place.model));
    MR_ASSIGN(const auto tokenizer, Tokenizer::openFor(place.model, config.vocab));
    Prompt prompt;
    prompt.text = "?";
    prompt.form = PromptForm::ChatIfAny;
    MR_ASSIGN(ReadPrompt read, readPrompt(prompt, *tokenizer, config, place.model, taught));
    // The token behind an answer comes last there, and first in the file.
    std::ranges::reverse(read.ends);
    return std::move(read.ends);
}

Result<GgufOutcome> writeCheckedGguf(const GgufRequest& request)
{
    MR_ASSIGN(const ModelPlace place, modelPlaceOf(request.model, request.adapter));
    MR_ASSIGN(const std::string taught, place.chatTemplate());
    std::error_code error;
    if (fs::exists(request.out, error))
        return Status::error(ErrorKind::InvalidArgument,
            request.out.string() + ": is there already; name a file that is not");
    GgufOptions options{request.form, request.original, {}, request.progress};
    MR_ASSIGN(options.ends, answerEnds(place, taught));
    fs::path failed = request.out;
    failed.replace_extension(".failed" + request.out.extension().string());
    fs::remove(failed, error);
    MR_ASSIGN(GgufReport report, exportGguf(place, failed, options));
    GgufOutcome outcome{failed, std::move(report), {}, {}};
    if (request.asks) {
        auto verdict = ask(request, place, taught, failed);
        if (!verdict.ok()) {
            fs::remove(failed, error);
            return Status::error(verdict.status().kind(),
                "the file was read back equal, but cannot be asked: " + verdict.status().message() +
                    "; --check weights writes it unasked");
        }
        outcome.verdict = verdict.value();
        CheckLimits limits = limitsOf(outcome.report.form);
        if (outcome.report.normalises)
            limits.texts = kMostlySame;
        outcome.faults = faultsOf(*outcome.verdict, limits);
    }
    if (outcome.faults.empty()) {
        fs::rename(failed, request.out, error);
        if (error)
            return Status::error(
                ErrorKind::Io, "rename to " + request.out.string() + ": " + error.message());
        outcome.file = request.out;
    }
    fs::path beside = outcome.file;
    beside += ".check.json";
    MR_TRY(replaceFile(beside, toJson(outcome).dump(2) + "\n"));
    return outcome;
}

} // namespace mr::app
