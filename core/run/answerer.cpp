#include "core/run/answerer.h"

#include "core/answer/decode_loop.h"
#include "core/answer/prompt_reader.h"
#include "core/base/clock.h"
#include "core/base/thread.h"

#include <fmt/format.h>

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
    return fmt::format("A prompt was answered after step {}: {}.", row.step, figures.data());
}

} // namespace

Answerer::Answerer(RunContext& run, RunJournal& journal)
    : m_run(run)
    , m_journal(journal)
{
}

Status Answerer::ask(Question question)
{
    MR_TRY(checkPrompt(question.prompt));
    question.prompt.maxTokens = std::min(question.prompt.maxTokens, kMostAnswerTokens);
    return m_questions.push(std::move(question));
}

Status Answerer::answerAll()
{
    while (!m_run.stopRequested) {
        const std::optional<Question> next = m_questions.take();
        if (!next)
            break;
        MR_TRY(answer(*next));
    }
    return {};
}

Status Answerer::answer(const Question& question)
{
    AnswerRow row{m_run.progress.step, question.id, question.prompt, {}, AnswerState::Running, {}};
    const Status asked = guarded("answer", [&] { return answerInto(row); });
    if (!asked.ok()) {
        row.state = AnswerState::Failed;
        row.message = asked.message();
    }
    m_journal.recorder().answer(row);
    m_journal.book(IntervalKind::Answer);
    if (asked.ok())
        m_journal.message(EventLevel::Info, "answered", eventText(row));
    return asked.ok() || !endsTheRun(asked) ? Status() : asked;
}

Status Answerer::answerInto(AnswerRow& row)
{
    auto read = readPrompt(row.prompt, *m_run.data.tokenizer, m_run.setup.config,
        modelFolder(m_run.setup.spec), m_run.data.chatTemplate);
    MR_TRY(read.status());
    row.answer.read = read.value().text;
    row.answer.byTemplate = read.value().byTemplate;
    row.answer.promptTokens = static_cast<std::int64_t>(read.value().tokens.size());
    m_journal.recorder().answer(row);
    MR_TRY(m_journal.finishLateParts());
    const std::int64_t beginNs = nowNs();
    std::int64_t shownNs = beginNs;
    GenerateOptions options{row.prompt.maxTokens, row.prompt.temperature, row.prompt.topP,
        row.prompt.seed, [&](std::string_view piece) {
            row.answer.text += piece;
            ++row.answer.tokens;
            row.answer.seconds = secondsSince(beginNs);
            if (nowNs() - shownNs > kShowAnswerNs) {
                shownNs = nowNs();
                m_journal.recorder().answer(row);
            }
            return !m_run.stopRequested && !m_questions.isCancelled();
        }};
    MR_ASSIGN(auto result,
        continueTokens({*m_run.data.tokenizer, read.value().tokens, read.value().ends,
                           m_run.setup.micro.seqLen, m_run.setup.config.vocab,
                           [this](std::span<const TokenId> tokens, std::int64_t done,
                               std::span<float> out) { return nextLogits(tokens, done, out); }},
            options));
    row.answer.text = result.text;
    row.answer.tokens = static_cast<std::int64_t>(result.tokens.size());
    row.answer.ended = result.ended;
    row.answer.seconds = secondsSince(beginNs);
    const bool isStopped = !row.answer.ended && (m_run.stopRequested || m_questions.isCancelled());
    row.state = isStopped ? AnswerState::Stopped : AnswerState::Done;
    return {};
}

Status Answerer::nextLogits(
    std::span<const TokenId> tokens, std::int64_t done, std::span<float> out)
{
    StepExecutor& executor = m_run.body->executor();
    if (m_run.body->memory().hasCache())
        return executor.decoder().advance(
            tokens.subspan(static_cast<std::size_t>(done)), done, out);
    // One sequence in one micro-batch. A sequence of data ends with a target, which is not read.
    TokenSequence sequence;
    sequence.tokens.assign(tokens.begin(), tokens.end());
    sequence.tokens.push_back(0);
    sequence.trained.assign(sequence.tokens.size(), 0);
    const BatchShape shape{m_run.setup.micro.seqLen, m_run.setup.micro.microBatch, 1};
    MicroBatchData micro;
    fillMicroBatch({&sequence, 1}, shape, micro);
    StepSpec step = m_run.setup.step;
    step.step = m_run.progress.step;
    step.microBatches = 1;
    MR_TRY(m_run.body->plans().planEvaluation(step, m_plan));
    StepInputs inputs;
    inputs.micros = {&micro, 1};
    MR_ASSIGN(auto run, executor.run(m_plan, inputs));
    m_journal.noteRun(m_plan, run);
    return executor.decoder().logitsAt(static_cast<std::int64_t>(tokens.size()) - 1, out);
}

void Answerer::refuseRest()
{
    for (const Question& question : m_questions.close()) {
        if (!m_journal.isStarted())
            continue;
        AnswerRow row{
            m_run.progress.step, question.id, question.prompt, {}, AnswerState::Failed, {}};
        row.message = "the run ended before it came to this question; ask its model instead";
        m_journal.recorder().answer(row);
    }
}

} // namespace mr
