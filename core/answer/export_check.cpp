#include "core/answer/export_check.h"

#include "core/answer/check_texts.h"
#include "core/answer/sampling.h"
#include "core/data/chat_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

namespace mr {
namespace {

using Json = nlohmann::ordered_json;

// Answers to the questions that need no weights.
struct SmallAnswers {
    std::vector<std::vector<TokenId>> texts;
    std::string conversation; // by the chat template; empty: there is none
    std::set<TokenId> ends;
};

Json someConversation()
{
    Json messages = Json::array();
    messages.push_back({{"role", "user"}, {"content", "Which river runs through Cologne?"}});
    messages.push_back({{"role", "assistant"}, {"content", "The Rhine."}});
    messages.push_back({{"role", "user"}, {"content", "And through Dresden?"}});
    return Json{{"messages", std::move(messages)}};
}

Result<std::string> conversationOf(const CheckedModel& model, const Tokenizer& tokenizer)
{
    std::optional<ChatFormat> format;
    if (!model.chatTemplate.empty()) {
        MR_ASSIGN(format, ChatFormat::open(model.folder, model.chatTemplate, tokenizer));
    } else {
        MR_ASSIGN(format, ChatFormat::find(model.folder));
    }
    if (!format)
        return std::string();
    const Result<RenderedChat> chat = format->write(someConversation(), true);
    return chat.ok() ? Result(chat).value().text() : "refused: " + chat.status().message();
}

Result<SmallAnswers> askSmall(const CheckedModel& model)
{
    MR_ASSIGN(const ModelConfig config, readModelConfig(model.folder));
    MR_ASSIGN(const auto tokenizer, Tokenizer::openFor(model.folder, config.vocab));
    SmallAnswers out;
    for (const std::string& text : checkTexts()) {
        std::vector<TokenId> ids;
        if (!tokenizer->encode(text, ids).ok())
            ids = {-1}; // letters that it does not know
        out.texts.push_back(std::move(ids));
    }
    MR_ASSIGN(out.conversation, conversationOf(model, *tokenizer));
    Prompt prompt;
    prompt.text = "?";
    prompt.form = PromptForm::ChatIfAny;
    MR_ASSIGN(const ReadPrompt read,
        readPrompt(prompt, *tokenizer, config, model.folder, model.chatTemplate));
    out.ends.insert(read.ends.begin(), read.ends.end());
    out.ends.insert(tokenizer->eos());
    return out;
}

void compareSmall(const SmallAnswers& a, const SmallAnswers& b, ExportVerdict& verdict)
{
    const std::vector<std::string> texts = checkTexts();
    verdict.texts = std::ssize(texts);
    for (std::size_t i = 0; i < texts.size(); ++i) {
        if (a.texts[i] == b.texts[i])
            ++verdict.sameTexts;
        else if (verdict.otherText.empty())
            verdict.otherText = texts[i];
    }
    verdict.sameTemplate = a.conversation == b.conversation;
    verdict.sameEnds = a.ends == b.ends;
}

// Prompts with the answers of the original, and its logits behind each token of them.
struct Answered {
    std::vector<TokenId> tokens;
    std::size_t prompt = 0;
    std::vector<std::vector<float>> logits;
};

Status goOn(const CheckQuestions& questions)
{
    return questions.goesOn ? questions.goesOn() : Status();
}

// Positions for the longest prompt and its answer.
std::int64_t positionsFor(const CheckQuestions& questions, const ModelConfig& config)
{
    std::size_t longest = 1;
    for (const auto& prompt : questions.prompts)
        longest = std::max(longest, prompt.size());
    return roomFor(
        static_cast<std::int64_t>(longest) + questions.answerTokens + 1, config.longestSequence());
}

InferenceOptions optionsFor(
    const CheckedModel& model, const CheckQuestions& questions, std::int64_t seqLen)
{
    InferenceOptions options;
    options.seqLen = seqLen;
    options.compute = questions.compute;
    options.cache = true;
    options.adapter = model.adapter;
    return options;
}

Result<std::unique_ptr<InferenceModel>> load(const CheckedModel& model,
    const CheckQuestions& questions, std::int64_t seqLen, std::unique_ptr<Device>& device)
{
    MR_TRY(goOn(questions));
    const InferenceOptions options = optionsFor(model, questions, seqLen);
    MR_ASSIGN(const std::size_t bytes, InferenceModel::deviceBytes(model.folder, options));
    MR_ASSIGN(device, questions.makeDevice(bytes));
    return InferenceModel::load(model.folder, options, *device);
}

Result<std::vector<Answered>> answerAll(
    const CheckedModel& model, const CheckQuestions& questions, std::int64_t seqLen)
{
    std::unique_ptr<Device> device;
    MR_ASSIGN(const auto loaded, load(model, questions, seqLen, device));
    std::vector<Answered> out;
    for (const std::vector<TokenId>& prompt : questions.prompts) {
        MR_TRY(goOn(questions));
        Answered one{prompt, prompt.size(), {}};
        ReadPrompt read;
        read.tokens = prompt;
        Status wanted;
        GenerateOptions options{questions.answerTokens, 0.0, 1.0, 1, {}};
        options.onText = [&](std::string_view /*piece*/) {
            wanted = goOn(questions);
            return wanted.ok();
        };
        MR_ASSIGN(const Generated answer, loaded->generate(read, options));
        MR_TRY(wanted);
        one.tokens.insert(one.tokens.end(), answer.tokens.begin(), answer.tokens.end());
        MR_TRY(loaded->followLogits(
            one.tokens, one.prompt, [&](std::span<const float> logits) -> Status {
                one.logits.emplace_back(logits.begin(), logits.end());
                return goOn(questions);
            }));
        out.push_back(std::move(one));
    }
    return out;
}

double logSum(std::span<const float> logits)
{
    const double most = *std::ranges::max_element(logits);
    double sum = 0.0;
    for (const float x : logits)
        sum += std::exp(double{x} - most);
    return most + std::log(sum);
}

// KL(a || b) of the distributions that logits stand for, over the ids that both have.
double divergence(std::span<const float> a, std::span<const float> b)
{
    const std::size_t count = std::min(a.size(), b.size());
    a = a.first(count);
    b = b.first(count);
    const double sumA = logSum(a);
    const double sumB = logSum(b);
    double kl = 0.0;
    for (std::size_t i = 0; i < count; ++i) {
        const double log = double{a[i]} - sumA;
        kl += std::exp(log) * (log - (double{b[i]} - sumB));
    }
    return std::max(0.0, kl);
}

Status compareAnswers(const std::vector<Answered>& answers, const CheckedModel& exported,
    const CheckQuestions& questions, std::int64_t seqLen, ExportVerdict& verdict)
{
    std::unique_ptr<Device> device;
    MR_ASSIGN(const auto loaded, load(exported, questions, seqLen, device));
    double sum = 0.0;
    for (const Answered& answer : answers) {
        MR_TRY(goOn(questions));
        std::size_t at = 0;
        MR_TRY(loaded->followLogits(
            answer.tokens, answer.prompt, [&](std::span<const float> logits) -> Status {
                const std::vector<float>& own = answer.logits[at++];
                const auto likeliest = [](std::span<const float> of) {
                    return std::ranges::max_element(of) - of.begin();
                };
                sum += divergence(own, logits);
                verdict.sameTokens += likeliest(own) == likeliest(logits) ? 1 : 0;
                ++verdict.tokens;
                return goOn(questions);
            }));
    }
    verdict.prompts = std::ssize(answers);
    verdict.divergence = verdict.tokens == 0 ? 0.0 : sum / static_cast<double>(verdict.tokens);
    return {};
}

} // namespace

Result<std::uint64_t> checkBytes(const CheckedModel& original, const CheckQuestions& questions)
{
    MR_ASSIGN(const ModelConfig config, readModelConfig(original.folder));
    const std::int64_t seqLen = positionsFor(questions, config);
    MR_ASSIGN(const std::size_t model,
        InferenceModel::deviceBytes(original.folder, optionsFor(original, questions, seqLen)));
    const auto places = static_cast<std::uint64_t>(
        std::ssize(questions.prompts) * (questions.answerTokens + 1) * config.vocab);
    return std::uint64_t{model} + places * sizeof(float);
}

Result<ExportVerdict> checkExport(
    const CheckedModel& original, const CheckedModel& exported, const CheckQuestions& questions)
{
    ExportVerdict verdict;
    MR_ASSIGN(const SmallAnswers own, askSmall(original));
    MR_ASSIGN(const SmallAnswers others, askSmall(exported));
    compareSmall(own, others, verdict);
    MR_ASSIGN(const ModelConfig config, readModelConfig(original.folder));
    const std::int64_t seqLen = positionsFor(questions, config);
    MR_ASSIGN(const std::vector<Answered> answers, answerAll(original, questions, seqLen));
    MR_TRY(compareAnswers(answers, exported, questions, seqLen, verdict));
    return verdict;
}

std::vector<std::string> faultsOf(const ExportVerdict& verdict, const CheckLimits& limits)
{
    std::vector<std::string> faults;
    if (static_cast<double>(verdict.sameTexts) < limits.texts * static_cast<double>(verdict.texts))
        faults.push_back(fmt::format("{} of {} texts become other tokens, the first is {}",
            verdict.texts - verdict.sameTexts, verdict.texts,
            nlohmann::json(verdict.otherText).dump()));
    if (!verdict.sameTemplate)
        faults.emplace_back("the chat template writes a conversation otherwise");
    if (!verdict.sameEnds)
        faults.emplace_back("other tokens end an answer");
    if (!(verdict.divergence <= limits.divergence))
        faults.push_back(fmt::format("the next token is chosen from other odds: the mean KL is "
                                     "{:.2g}, at most {:.2g} is expected",
            verdict.divergence, limits.divergence));
    if (verdict.agreement() < limits.agreement)
        faults.push_back(fmt::format("the likeliest token is the same in {:.1f} % of {} places, at "
                                     "least {:.0f} % are expected",
            100.0 * verdict.agreement(), verdict.tokens, 100.0 * limits.agreement));
    return faults;
}

} // namespace mr
