// LateChoice: the choices a run makes late or again while it trains: the interval of the magnitude
// rule and a device share that nobody gave; and the rates it learns for later runs.
//
// A choice exchanges the run's plan between two steps (Replanner::exchange): training goes on
// with the same bits. The choice is written to the run's record, so resuming uses it, and is an
// event.
//
// Threads    Engine thread.
// Ownership  Borrows context and parts.
// Errors     Io if windows were chosen and the checkpoint they begin from could not be written;
//            errors of exchange(), unchanged.

#pragma once

#include "core/base/host_readings.h"
#include "core/run/replanner.h"

namespace mr {

class LateChoice
{
public:
    LateChoice(RunContext& run, RunJournal& journal, RunSaver& saver, Replanner& replanner);

    // The load of the processors is measured from here on.
    void begin();
    // After a step. Nothing is chosen for a run that is about to end: the run that resumes it will.
    Status chooseIfDue();
    // At the end: corrects a forecast that was wrong for later runs.
    void learnRates();

private:
    Status chooseInterval();
    Status lookAtShare();

    RunContext& m_run;
    RunJournal& m_journal;
    RunSaver& m_saver;
    Replanner& m_replanner;
    HostProbe m_load; // by all programs
};

} // namespace mr
