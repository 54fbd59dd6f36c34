// RunDraft: the run that the New run page puts together, without a window: the settings that filled
// the page, the editors' content right after, and their content now.
//
// Settings without an editor keep the given value (RunSpec's edited()).
//
// Threads  A value.

#pragma once

#include <millrace/run_spec.h>

#include <QString>

#include <string>
#include <vector>

namespace mr::ui {

// `spec` under its own policy and under `otherPolicy`: everything else is equal, so are seed, data
// and held-out rows. The policy stands in the name, and in the run folder if one was chosen.
std::vector<RunSpec> comparisonSpecs(const RunSpec& spec, const std::string& otherPolicy);

class RunDraft
{
public:
    // `shown`: the editors' content right after `given` filled them.
    void fill(const RunSpec& given, const RunSpec& shown);
    // `now`: the editors' content. `secondPolicy`: the policy to compare with; empty: none.
    void edit(const RunSpec& now, const std::string& secondPolicy);

    // Not resolved.
    RunSpec spec() const;
    // One run, or two that are compared; named.
    std::vector<RunSpec> runs() const;
    // A `millrace train` line for each run. They name no history: the user's own is the default.
    QString commandLine() const;
    // Settings that have no editor, as options of the command line; empty: as usual.
    QString kept() const;
    bool holdsOut() const { return m_given.holdOut > 0.0; }

    static QString suggestedName(const QString& model, const QString& dataset);

private:
    RunSpec m_given;
    RunSpec m_shown;
    RunSpec m_now;
    std::string m_secondPolicy;
};

} // namespace mr::ui
