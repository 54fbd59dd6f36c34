#include "app/gguf_export.h"

#include "app/export_questions.h"
#include "core/base/file.h"
#include "core/exchange/gguf_folder.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

namespace mr::app {
namespace {

namespace fs = std::filesystem;
constexpr double kMostlySame = 0.6; // share of the texts: many have runs of spaces

// Three to ten times what Gaussian weights give (export section 10).
CheckLimits limitsInF32(GgufForm form)
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

// In BF16 two models of the same weights differ as their sums are rounded: an adapter beside the
// weights and in them, weights of F16 and their originals. Fourteen tiny models and eight adapters
// gave a mean KL of 4.7e-3 at most and the same token in 97 % of the places, where F32 gave 3e-5
// and 99 %. Files of F32 and BF16 without an adapter were the same to the bit, or 1e-5 off. The
// errors of coarser types come on top.
CheckLimits limitsOf(GgufForm form, DType compute)
{
    constexpr double kDivergence = 2e-2;
    constexpr double kAgreement = 0.1;
    CheckLimits limits = limitsInF32(form);
    if (compute == DType::F32)
        return limits;
    limits.divergence += kDivergence;
    limits.agreement -= kAgreement;
    return limits;
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
        out["asked"] = {{"precision", name(outcome.askedIn)}, {"texts", v.texts},
            {"same_texts", v.sameTexts}, {"same_template", v.sameTemplate},
            {"same_ends", v.sameEnds}, {"prompts", v.prompts}, {"tokens", v.tokens},
            {"same_tokens", v.sameTokens}, {"mean_kl", v.divergence}};
    }
    return out;
}

// The file is asked, or a note says why it was not. Memory may have gone since it was chosen.
Status askFile(const Asking& asking, const CheckedModel& original, GgufOutcome& outcome)
{
    if (!asking.choice.compute) {
        outcome.report.notes.push_back(unaskedNote(asking.choice.room));
        return {};
    }
    MR_ASSIGN(const fs::path folder, ggufFolder(outcome.file));
    const auto verdict = checkExport(original, {folder.string()}, asking.questions);
    std::error_code ignored;
    fs::remove_all(folder, ignored); // it stands for a file that has no name yet
    if (!verdict.ok() && verdict.status().kind() == ErrorKind::OutOfMemory) {
        outcome.report.notes.push_back(
            "It was not asked: " + verdict.status().message() +
            ". Close other programs and export again, or ask it on a PC with more memory.");
        return {};
    }
    MR_TRY(verdict.status());
    const bool isWide = asking.questions.compute == DType::F32;
    outcome.verdict = Result(verdict).value();
    outcome.askedIn = isWide ? PrecisionChoice::F32 : PrecisionChoice::BF16;
    CheckLimits limits = limitsOf(outcome.report.form, asking.questions.compute);
    if (outcome.report.normalises)
        limits.texts = kMostlySame;
    outcome.faults = faultsOf(*outcome.verdict, limits);
    return {};
}

Status unaskable(const Status& why)
{
    if (why.kind() == ErrorKind::Cancelled)
        return why;
    return Status::error(why.kind(), "the file was read back equal, but cannot be asked: " +
                                         why.message() + "; --check weights writes it unasked");
}

// Gives the file its name if it passed, and writes the verdict beside it.
Status finish(const fs::path& out, GgufOutcome& outcome)
{
    if (outcome.faults.empty()) {
        std::error_code error;
        fs::rename(outcome.file, out, error);
        if (error)
            return Status::error(
                ErrorKind::Io, "rename to " + out.string() + ": " + error.message());
        outcome.file = out;
    }
    fs::path beside = outcome.file;
    beside += ".check.json";
    return replaceFile(beside, toJson(outcome).dump(2) + "\n");
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
    const CheckedModel original{place.model, place.adapter, taught};
    std::optional<Asking> asking;
    if (request.asks) {
        MR_ASSIGN(asking, prepareAsking({request.model, original, request.device, request.threads,
                              request.memoryBytes}));
    }
    std::uint64_t bytes = 0; // of the file, to which the questions add none
    const WriteProgress progress = [&](std::uint64_t done, std::uint64_t all) -> Status {
        bytes = all;
        return request.progress ? request.progress(done, all) : Status();
    };
    GgufOptions options{request.form, request.original, {}, progress};
    MR_ASSIGN(options.ends, answerEnds(place, taught));
    fs::path failed = request.out;
    failed.replace_extension(".failed" + request.out.extension().string());
    fs::remove(failed, error);
    MR_ASSIGN(GgufReport report, exportGguf(place, failed, options));
    GgufOutcome outcome{failed, std::move(report), {}, {}, {}};
    if (asking) {
        asking->questions.goesOn = [&] { return progress(bytes, bytes); };
        if (const Status asked = askFile(*asking, original, outcome); !asked.ok()) {
            fs::remove(failed, error);
            return unaskable(asked);
        }
    }
    MR_TRY(finish(request.out, outcome));
    return outcome;
}

} // namespace mr::app
