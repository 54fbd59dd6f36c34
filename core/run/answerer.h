// Answerer: answers prompts while a run trains.
//
// An answer is given between two steps, on the weights the next forward would read, as an
// evaluation is: nothing of it reaches training, and its time belongs to no step. Where all weights
// are on the device, the projections of earlier tokens are kept. Otherwise each token is a forward
// pass by an evaluation plan of its own, because only a few blocks are on the device at once.
//
// Threads    ask() and stop() from any thread; the rest on the engine thread.
// Ownership  Borrows context and journal.
// Errors     ask(): InvalidArgument for a prompt that cannot be answered. answerAll(): failures of
//            memory, device and disk, which are the run's; a prompt that fails alone is reported as
//            its answer.

#pragma once

#include "core/answer/prompt_queue.h"
#include "core/run/run_journal.h"

#include <span>

namespace mr {

class Answerer
{
public:
    Answerer(RunContext& run, RunJournal& journal);

    Status ask(Question question);
    void stop() noexcept { m_questions.cancel(); }

    Status answerAll();
    // The run has ended: each question that still waits gets that as its answer.
    void refuseRest();

private:
    Status answer(const Question& question);
    Status answerInto(AnswerRow& row);
    Status nextLogits(std::span<const TokenId> tokens, std::int64_t done, std::span<float> out);

    RunContext& m_run;
    RunJournal& m_journal;
    PromptQueue m_questions;
    StepPlan m_plan; // for one token
};

} // namespace mr
