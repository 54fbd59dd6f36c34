// Edits on the History page: names, tags, notes, runs that are exported or thrown away.

#include "bridge/run_editor.h"
#include "bridge/run_feed.h"
#include "models/run_table_model.h"
#include "pages/bin_view.h"
#include "pages/history_page.h"
#include "pages/run_list.h"
#include "pages/run_notes.h"
#include "pages/run_view.h"
#include "widgets/toast.h"

#include <QAction>
#include <QLabel>
#include <QLineEdit>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QToolButton>

namespace mr::ui {

namespace {

constexpr int kNotesLetters = 30; // wide

} // namespace

void HistoryPage::makeEditing()
{
    const bool canEdit = m_editor->canEdit();
    m_notes->setFixedWidth(fontMetrics().averageCharWidth() * kNotesLetters + 40);
    if (!canEdit || !m_notesShown->isChecked())
        m_notes->hide(); // not shown: it has no parent yet
    m_notesShown->setVisible(canEdit);
    m_notesShown->setToolTip(tr("Show tags and note beside the runs (F9)"));
    m_binShown->setVisible(canEdit);
    m_binShown->setToolTip(tr("Show the runs that were deleted"));
    connect(m_notesShown, &QToolButton::toggled, m_notes, &QWidget::setVisible);
    connect(m_binShown, &QPushButton::toggled, this, &HistoryPage::showBin);
    connect(m_notes, &RunNotes::noteEdited, m_editor, &RunEditor::setNote);
    connect(m_notes, &RunNotes::tagAdded, m_editor, &RunEditor::addTag);
    connect(m_notes, &RunNotes::tagRemoved, m_editor, &RunEditor::removeTag);
    connect(m_editor, &RunEditor::tagsReady, m_notes, &RunNotes::setKnownTags);
    connect(m_table->runs(), &RunTableModel::renameRequested, m_editor, &RunEditor::rename);
    connect(m_bin, &BinView::closed, this, [this] { showBin(false); });
    connect(m_bin, &BinView::restoreRequested, m_editor, &RunEditor::restore);
    connect(m_bin, &BinView::eraseRequested, m_editor, &RunEditor::measure);
    connect(m_bin, &BinView::eraseConfirmed, m_editor, &RunEditor::erase);
    connect(m_editor, &RunEditor::measured, m_bin, &BinView::askToErase);
    connect(m_toast, &Toast::undoRequested, m_editor->stack(), &QUndoStack::undo);
    connect(m_editor, &RunEditor::said, m_toast, &Toast::say);
    if (canEdit)
        makeKeys();
}

void HistoryPage::makeKeys()
{
    m_table->addKey(Qt::Key_F2, [this] { m_table->renameSelected(); });
    m_table->addKey(Qt::Key_T, [this] { editNote(m_notes->tags()); });
    m_table->addKey(Qt::Key_N, [this] { editNote(m_notes->note()); });
    m_table->addKey(QKeySequence::Delete, [this] { deleteSelected(); });
    const auto add = [this](const QList<QKeySequence>& keys, auto&& what) {
        auto* action = new QAction(m_body);
        action->setShortcuts(keys);
        action->setShortcutContext(Qt::WidgetWithChildrenShortcut);
        connect(action, &QAction::triggered, this, what);
        m_body->addAction(action);
    };
    add({Qt::Key_F9}, [this] { m_notesShown->toggle(); });
    add({QKeySequence::Undo}, [this] { m_editor->stack()->undo(); });
    // Redo keys of the platforms; more than one where the platform is not known.
    add({Qt::CTRL | Qt::SHIFT | Qt::Key_Z, Qt::CTRL | Qt::Key_Y},
        [this] { m_editor->stack()->redo(); });
}

// The editor outlives the widgets, which are made again when the language changes.
void HistoryPage::wireEditor()
{
    connect(m_editor, &RunEditor::changed, this, &HistoryPage::onEdited);
    connect(m_editor, &RunEditor::failed, this, [this](const QString& sentence) {
        m_toast->say(sentence, false);
        refresh(); // the fields still show the refused text
    });
    m_editor->expire();
}

void HistoryPage::onEdited()
{
    refresh();
    emit edited();
}

void HistoryPage::showBin(bool on)
{
    m_notes->commit();
    m_binShown->setChecked(on);
    if (on)
        m_feed->refreshDeleted();
    updateState();
    (on ? m_bin->list() : m_table)->setFocus();
}

void HistoryPage::setDeletedRuns(const RunRowsPtr& runs)
{
    m_bin->setRuns(runs);
    m_emptyBin->setVisible(!runs->empty());
    // One that is in the bin is not looked at any more.
    for (const RunRow& run : *runs) {
        if (!m_view->isHidden() && m_view->snapshot() && m_view->snapshot()->run.id == run.id)
            closeRun();
    }
}

void HistoryPage::editNote(QWidget* field)
{
    if (m_table->selectedIds().empty())
        return;
    m_notesShown->setChecked(true);
    field->setFocus(Qt::ShortcutFocusReason);
}

void HistoryPage::deleteSelected()
{
    if (const std::vector<std::int64_t> ids = m_table->selectedIds(); !ids.empty())
        m_editor->remove(ids);
}

void HistoryPage::exportSelected()
{
    const RunRow* run = m_table->selectedRun();
    if (run == nullptr || run->dir.empty())
        return;
    const Result<RunSpec> spec = runSpecFromJson(run->configJson);
    emit exportRequested({QString::fromStdString(run->dir), QString::fromStdString(run->name), true,
        spec.ok() && isAdapterRun(Result(spec).value())});
}

} // namespace mr::ui
