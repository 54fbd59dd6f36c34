// The tables of a run: where its time went, its exports, its log, and all its steps in a window.
//
// Threads    GUI.
// Ownership  Tables belong to the caller, which lays them out, and borrow their models.

#pragma once

#include <QString>

class QTableView;
class QWidget;

namespace mr::ui {

class ComparisonModel;
class EventTableModel;
class ExportTableModel;
class SettingsModel;
class StallLedgerModel;
class StepTableModel;
class TimelineTableModel;

struct RunTables {
    // As high as its rows, without frame: a part of its panel.
    static QTableView* ledger(StallLedgerModel& model);
    static QTableView* figures(ComparisonModel& model);
    // As high as its rows, up to a dozen; follows them.
    static QTableView* settings(SettingsModel& model);
    static QTableView* log(EventTableModel& model);
    // As high as its rows, up to half a dozen; follows them.
    static QTableView* exports(ExportTableModel& model);
    // Windows are not modal, and delete themselves when they are closed. That of the steps fills
    // while the run goes on; that of the tasks follows the timeline to another step.
    static void showTasks(QWidget& parent, TimelineTableModel& model);
    static void showSteps(QWidget& parent, StepTableModel& model, const QString& runName);
};

} // namespace mr::ui
