// What a run answers when it is asked while it goes on.
//
// Between two steps, on the weights that the next forward would read, as an evaluation: nothing of
// it reaches training, and its time belongs to no step. Where all weights are on the device the
// projections of earlier tokens are kept; else each token is a forward pass of its own, by an
// evaluation plan, because no more than a few blocks are ever there at once.

#include "core/answer/continuation.h"
#include "core/answer/prompt_reader.h"
#include "core/base/clock.h"
#include "core/base/thread.h"
#include "core/run/engine.h"

#include <algorithm>
#include <cstdio>

namespace mr {
namespace {

constexpr std::int64_t kShowAnswerNs = 200'000'000;

bool endsTheRun(const Status& why)
{
    return why.kind() == ErrorKind::OutOfMemory || why.kind() == ErrorKind::DeviceLost ||
           why.kind() == ErrorKind::Io || why.kind() == ErrorKind::DataCorrupt;
}

double secondsSince(std::int64_t beginNs)
{
    return 1e-9 * static_cast<double>(nowNs() - beginNs);
}

std::string eventText(const AnswerRow& row)
{
    std::array<char, 64> figures{};
    (void)std::snprintf(figures.data(), figures.size(), "%lld tokens in %.2f s",
        static_cast<long long>(row.answer.tokens), row.answer.seconds);
    return "A prompt was answered after step " + std::to_string(row.step) + ": " + figures.data() +
           ".";
}

} // namespace

Status Engine::ask(Question question)
{
    MR_TRY(checkPrompt(question.prompt));
    question.prompt.maxTokens = std::min(question.prompt.maxTokens, kMostAnswerTokens);
    return m_questions.push(std::move(question));
}

void Engine::stopAnswer() noexcept
{
    m_questions.cancel();
}

Status Engine::answerQuestionsAsked()
{
    while (!m_stopRequested) {
        const std::optional<Question> next = m_questions.take();
        if (!next)
            break;
        MR_TRY(answerQuestion(*next));
    }
    return {};
}

Status Engine::answerQuestion(const Question& question)
{
    AnswerRow row{m_progress.step, question.id, question.prompt, {}, AnswerState::Running, {}};
    const Status asked = guarded("answer", [&] { return answerInto(row); });
    if (!asked.ok()) {
        row.state = AnswerState::Failed;
        row.message = asked.message();
    }
    m_recorder->answer(row);
    book(IntervalKind::Answer);
    if (asked.ok())
        m_recorder->message(
            EventLevel::Info, "answered", m_progress.step, activeMs(), eventText(row));
    return asked.ok() || !endsTheRun(asked) ? Status() : asked;
}

Status Engine::answerInto(AnswerRow& row)
{
    const RunSpec& spec = m_setup.spec;
    auto read = readPrompt(row.prompt, *m_data.tokenizer, m_setup.config,
        spec.modelDir.empty() ? spec.scratchTokenizer : spec.modelDir, m_data.chatTemplate);
    MR_TRY(read.status());
    row.answer.read = read.value().text;
    row.answer.byTemplate = read.value().byTemplate;
    row.answer.promptTokens = static_cast<std::int64_t>(read.value().tokens.size());
    m_recorder->answer(row);
    MR_TRY(finishLateParts());
    const std::int64_t beginNs = nowNs();
    std::int64_t shownNs = beginNs;
    GenerateOptions options{row.prompt.maxTokens, row.prompt.temperature, row.prompt.topP,
        row.prompt.seed, [&](std::string_view piece) {
            row.answer.text += piece;
            ++row.answer.tokens;
            row.answer.seconds = secondsSince(beginNs);
            if (nowNs() - shownNs > kShowAnswerNs) {
                shownNs = nowNs();
                m_recorder->answer(row);
            }
            return !m_stopRequested && !m_questions.isCancelled();
        }};
    auto result =
        continueTokens({*m_data.tokenizer, read.value().tokens, read.value().ends,
                           m_setup.micro.seqLen, m_setup.config.vocab,
                           [this](std::span<const TokenId> tokens, std::int64_t done,
                               std::span<float> out) { return nextLogits(tokens, done, out); }},
            options);
    MR_TRY(result.status());
    row.answer.text = result.value().text;
    row.answer.tokens = static_cast<std::int64_t>(result.value().tokens.size());
    row.answer.ended = result.value().ended;
    row.answer.seconds = secondsSince(beginNs);
    const bool isStopped = !row.answer.ended && (m_stopRequested || m_questions.isCancelled());
    row.state = isStopped ? AnswerState::Stopped : AnswerState::Done;
    return {};
}

Status Engine::nextLogits(std::span<const TokenId> tokens, std::int64_t done, std::span<float> out)
{
    StepExecutor& executor = m_body->executor();
    if (m_body->memory().keyValueCache(0).data)
        return executor.advance(tokens.subspan(static_cast<std::size_t>(done)), done, out);
    // One sequence in one micro-batch. A sequence of data ends with a target, which is not read.
    TokenSequence sequence;
    sequence.tokens.assign(tokens.begin(), tokens.end());
    sequence.tokens.push_back(0);
    sequence.trained.assign(sequence.tokens.size(), 0);
    const BatchShape shape{m_setup.micro.seqLen, m_setup.micro.microBatch, 1};
    MicroBatchData micro;
    fillMicroBatch({&sequence, 1}, shape, micro);
    StepSpec step = m_setup.step;
    step.step = m_progress.step;
    step.microBatches = 1;
    MR_TRY(m_body->plans().planEvaluation(step, m_answerPlan));
    StepInputs inputs;
    inputs.micros = {&micro, 1};
    auto run = executor.run(m_answerPlan, inputs);
    MR_TRY(run.status());
    noteRun(m_answerPlan, run.value());
    return executor.logitsAt(static_cast<std::int64_t>(tokens.size()) - 1, out);
}

// Nobody waits for an answer that never comes.
void Engine::dropQuestions()
{
    for (const Question& question : m_questions.close()) {
        if (!m_recorder)
            continue;
        AnswerRow row{m_progress.step, question.id, question.prompt, {}, AnswerState::Failed, {}};
        row.message = "the run ended before it came to this question; ask its model instead";
        m_recorder->answer(row);
    }
}

} // namespace mr
