// Replanner: has the body of a run made (BodyMaker), and made again by another plan while the run
// goes on.
//
// When the run opens, an allocation that fails although the plan fits its budget means that another
// program took the memory: the run is planned again for the rest. Later, in a step or an
// evaluation, the run saves itself if no update of the step was begun, frees everything and opens
// again from there; otherwise it goes back to the last checkpoint. Exact policies end with the bits
// they would have ended with. exchange() does the same with a plan that was chosen.
//
// Threads    Engine thread; before start(), the thread that opens the run.
// Ownership  Owns nothing but reports; borrows context and parts. The body is the context's.
// Errors     OutOfMemory if nothing fits, or if memory lacks again and again without a completed
//            step between. Cancelled if a stop is wanted while files are filled. Others unchanged.

#pragma once

#include "core/run/body_maker.h"
#include "core/run/step_loop.h"

#include <cstdint>
#include <string>
#include <vector>

namespace mr {

class Replanner
{
public:
    Replanner(RunContext& run, RunJournal& journal, RunSaver& saver, CheckpointFallback& fallback,
        StepLoop& steps, BodyMaker& maker);

    // Plans again with less for as long as memory lacks.
    Status openBody(BodySource source);
    // After a failure during the run. Returns `why` unless it is memory that lacks.
    Status recover(const Status& why);
    // Goes on as `next` says, from a checkpoint of the last step. False: that could not be written,
    // and everything is as it was.
    Result<bool> exchange(RunSetup next, IfUnwritable then);

    // A sentence that report() tells later.
    void note(std::string text) { m_reports.push_back(std::move(text)); }
    bool hasReports() const noexcept { return !m_reports.empty(); }
    void report(const std::string& after);

private:
    Status planAgain(const Status& why, Tier lacking);
    bool saveBeforeTeardown();
    void tearDown();
    void dropBody();
    Status reopen(StepIndex reached);

    RunContext& m_run;
    RunJournal& m_journal;
    RunSaver& m_saver;
    CheckpointFallback& m_fallback;
    StepLoop& m_steps;
    BodyMaker& m_maker;
    std::vector<std::string> m_reports;
    int m_recoveries = 0;         // since the last step that was completed
    std::int64_t m_completed = 0; // steps, when the last recovery began
};

} // namespace mr
