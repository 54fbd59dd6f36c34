// RunOpener: how a run comes to be from a spec. From the folder of an earlier life: RunResumer.
//
// Threads    The thread that opens the run.
// Ownership  Borrows context and parts.
// Errors     InvalidArgument, Io: names the field, file or folder. OutOfMemory: nothing fits, with
//            advice. Cancelled: a stop was wanted while files were filled; the run is then in the
//            history as stopped, and can be started in that folder again. Internal: the device's
//            products do not repeat (opening_check.h).

#pragma once

#include "core/run/replanner.h"

namespace mr {

class RunOpener
{
public:
    RunOpener(RunContext& run, RunJournal& journal, Replanner& replanner);

    Status open(const RunSpec& spec);

    // Shared with RunResumer.
    // Data, hash, setup and schedule of the context.
    Status prepare(const RunSpec& spec);
    Status refuseIfTooLarge() const;
    // The first body.
    Status openBody(BodySource source);

private:
    Status takeOver(const std::string& uuidBefore);
    void removeOldRecords() const;
    void removeLeftScratch() const;
    void recordStop(const std::string& why);

    RunContext& m_run;
    RunJournal& m_journal;
    Replanner& m_replanner;
};

} // namespace mr
