#include "app/export_questions.h"

#include "app/compose.h"
#include "core/model/model_config.h"
#include "core/tokenizer/tokenizer.h"

#include <millrace/library.h>
#include <millrace/session.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>
#include <vector>

namespace mr::app {
namespace {

constexpr int kQuestions = 10;
constexpr std::size_t kTextPrompt = 16;   // tokens of a text that is continued
constexpr std::int64_t kMostPrompt = 256; // tokens

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
    const std::string& path, const std::string& model)
{
    auto prompts = promptsOfRun(path, model);
    if (!prompts.empty())
        return prompts;
    MR_ASSIGN(const ModelConfig config, readModelConfig(model));
    MR_ASSIGN(const auto tokenizer, Tokenizer::openFor(model, config.vocab));
    for (const std::string_view text : kPrompts) {
        std::vector<TokenId> ids;
        if (tokenizer->addsBos() && tokenizer->bos() >= 0)
            ids.push_back(tokenizer->bos());
        MR_TRY(tokenizer->encode(text, ids));
        prompts.push_back(std::move(ids));
    }
    return prompts;
}

Result<AskingRoom> roomIn(DType compute, CheckQuestions questions, const AskingRequest& request)
{
    AskingRoom room;
    questions.compute = compute;
    MR_ASSIGN(room.neededBytes, checkBytes(request.original, questions));
    room.freeBytes = request.memoryBytes;
    if (request.memoryBytes == 0) {
        MR_ASSIGN(room.freeBytes, inferenceMemory(request.device, compute));
    }
    return room;
}

} // namespace

Result<Asking> prepareAsking(const AskingRequest& request)
{
    Asking asking;
    CheckQuestions& questions = asking.questions;
    MR_ASSIGN(questions.prompts, questionsFor(request.path, request.original.folder));
    MR_ASSIGN(const AskingRoom f32, roomIn(DType::F32, questions, request));
    MR_ASSIGN(const AskingRoom bf16, roomIn(DType::BF16, questions, request));
    asking.choice = chooseAsking(f32, bf16);
    questions.compute = asking.choice.compute.value_or(DType::F32);
    questions.makeDevice = [device = request.device, threads = request.threads,
                               compute = questions.compute](std::size_t bytes) {
        return makeInferenceDevice({device, bytes, threads, compute});
    };
    return asking;
}

} // namespace mr::app
