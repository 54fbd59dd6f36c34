#include "app/ollama_export.h"

#include "core/base/file.h"
#include "core/data/chat_format.h"
#include "core/exchange/ollama_template.h"
#include "core/save/written_aside.h"

#include <system_error>
#include <utility>

namespace mr::app {
namespace {

namespace fs = std::filesystem;
constexpr const char* kWeights = "model.gguf";

Result<std::optional<ChatFormat>> formatOf(const ModelPlace& place, const Tokenizer& tokenizer)
{
    MR_ASSIGN(const std::string taught, place.chatTemplate());
    if (taught.empty())
        return ChatFormat::find(place.model);
    MR_ASSIGN(ChatFormat format, ChatFormat::open(place.model, taught, tokenizer));
    return std::optional(std::move(format));
}

// A model without a template, or with one that has no equal, gets none, and a note.
Status addTemplate(const ModelPlace& place, const Tokenizer& tokenizer, Modelfile& file,
    std::vector<std::string>& notes)
{
    MR_ASSIGN(const std::optional<ChatFormat> format, formatOf(place, tokenizer));
    if (!format) {
        notes.emplace_back(
            "The model has no chat template: Ollama continues the text it is given.");
        return {};
    }
    const std::string bos = tokenizer.bos() >= 0 ? tokenizer.piece(tokenizer.bos()) : "";
    Result<std::optional<OllamaTemplate>> learned = learnOllamaTemplate(*format, bos);
    if (!learned.ok() || !learned.value().has_value()) {
        notes.emplace_back("The chat template has no equal in the Modelfile: newer versions of "
                           "Ollama run the one in the GGUF file, older ones do not chat with it.");
        return {};
    }
    const OllamaTemplate& found = *learned.value();
    file.chatTemplate = found.text();
    if (!found.takesSystem)
        notes.emplace_back("The chat template takes no system text: SYSTEM changes nothing.");
    return {};
}

// A text that is this token where the template writes it, and not where a user does.
bool isControl(const Tokenizer& tokenizer, TokenId token)
{
    const std::string text = tokenizer.piece(token);
    std::vector<TokenId> written;
    std::vector<TokenId> typed;
    std::vector<std::size_t> ends;
    const TextPart part{text, true};
    return tokenizer.encodeParts({&part, 1}, written, ends).ok() &&
           tokenizer.encode(text, typed).ok() && written == std::vector{token} && typed != written;
}

Result<Modelfile> modelfileOf(const ModelPlace& place, std::vector<std::string>& notes)
{
    MR_ASSIGN(const ModelConfig config, readModelConfig(place.model));
    MR_ASSIGN(const auto tokenizer, Tokenizer::openFor(place.model, config.vocab));
    MR_ASSIGN(const std::string taught, place.chatTemplate());
    Modelfile file;
    file.weights = std::string("./") + kWeights;
    MR_TRY(addTemplate(place, *tokenizer, file, notes));
    MR_ASSIGN(const std::vector<TokenId> ends, answerEnds(place, taught));
    for (const TokenId end : ends)
        if (isControl(*tokenizer, end))
            file.stops.push_back(tokenizer->piece(end));
    MR_ASSIGN(file.parameters, modelfileSampling(place.model));
    return file;
}

} // namespace

Result<OllamaOutcome> writeOllamaFolder(const GgufRequest& request)
{
    MR_ASSIGN(const ModelPlace place, modelPlaceOf(request.model, request.adapter));
    std::error_code error;
    if (fs::exists(request.out, error))
        return Status::error(ErrorKind::InvalidArgument,
            request.out.string() + ": is there already; name a folder that is not");
    fs::path failed = request.out;
    failed += ".failed";
    std::vector<std::string> notes;
    MR_ASSIGN(Modelfile modelfile, modelfileOf(place, notes));
    MR_ASSIGN(const std::string text, modelfile.text());
    GgufOutcome outcome;
    MR_TRY(writeAside(failed, [&](const fs::path& folder) -> Status {
        fs::create_directories(folder, error);
        GgufRequest file = request;
        file.out = folder / kWeights;
        MR_ASSIGN(outcome, writeCheckedGguf(file));
        return replaceFile(folder / "Modelfile", text);
    }));
    outcome.report.notes.insert(outcome.report.notes.end(), notes.begin(), notes.end());
    outcome.file = failed;
    if (!outcome.faults.empty())
        return OllamaOutcome{std::move(outcome), std::move(modelfile), failed / kWeights};
    fs::rename(failed, request.out, error);
    if (error)
        return Status::error(
            ErrorKind::Io, "rename to " + request.out.string() + ": " + error.message());
    outcome.file = request.out;
    return OllamaOutcome{std::move(outcome), std::move(modelfile), request.out / kWeights};
}

} // namespace mr::app
