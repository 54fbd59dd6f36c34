// Report that a person sends to the program's maintainers: versions, the machine, the last run's
// record, the end of the log. Plain text that is shown before it is saved.
//
// Not translated: its reader may not know the user's language.
//
// Threads  Pure.

#pragma once

#include <millrace/library.h>
#include <millrace/run_reader.h>

#include <QString>

#include <optional>
#include <vector>

namespace mr::ui {

struct ReportParts {
    QString program; // name and version
    MachineInfo machine;
    std::optional<RunRow> run; // the newest of the history
    std::vector<EventRow> events;
    std::vector<AnswerRow> answers;
    QString log;
    QString problem; // why there is no run; empty: there is one, or the history is empty
};

enum class ReportDetail { WithoutTexts, WithTexts }; // prompts, answers and notes

QString reportText(const ReportParts& parts, ReportDetail detail);

} // namespace mr::ui
