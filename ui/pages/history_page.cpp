#include "pages/history_page.h"

#include "bridge/run_editor.h"
#include "bridge/run_feed.h"
#include "models/run_filter_model.h"
#include "models/run_table_model.h"
#include "pages/bin_view.h"
#include "pages/run_header.h"
#include "pages/run_list.h"
#include "pages/run_notes.h"
#include "pages/run_view.h"
#include "text/resume_words.h"
#include "widgets/card.h"
#include "widgets/empty_state.h"
#include "widgets/toast.h"

#include <QAction>
#include <QApplication>
#include <QClipboard>
#include <QComboBox>
#include <QDesktopServices>
#include <QHBoxLayout>
#include <QLabel>
#include <QLineEdit>
#include <QMenu>
#include <QPlainTextEdit>
#include <QPushButton>
#include <QSettings>
#include <QSplitter>
#include <QStackedWidget>
#include <QTableView>
#include <QToolButton>
#include <QUrl>
#include <QVBoxLayout>

#include <algorithm>

namespace mr::ui {

namespace {

const QString kNotesKey = QStringLiteral("history/notes");
const QString kSplitterKey = QStringLiteral("history/splitter-v1");
constexpr int kMargin = 12;

} // namespace

HistoryPage::HistoryPage(const UiServices& services, QWidget* parent)
    : QWidget(parent)
    , m_feed(new RunFeed(services, this))
    , m_editor(new RunEditor(services.edits, this))
{
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(kMargin, kMargin, kMargin, kMargin);
    build();
    wireEditor();
    connect(m_feed, &RunFeed::runsReady, this, &HistoryPage::setRuns);
    connect(m_feed, &RunFeed::deletedReady, this, &HistoryPage::setDeletedRuns);
    connect(m_feed, &RunFeed::snapshotReady, this, &HistoryPage::showSnapshot);
    connect(m_feed, &RunFeed::timelineReady, this,
        [this](const TimelinePtr& timeline) { m_view->setTimeline(timeline); });
    connect(m_feed, &RunFeed::timelineFailed, this, [this](qint64 step, const QString& sentence) {
        m_view->setTimelineFailure(step, sentence);
    });
    connect(m_feed, &RunFeed::failed, this, [this](const QString& sentence) {
        m_problem->setText(tr("The history cannot be read: %1").arg(sentence));
        m_problem->show();
    });
}

void HistoryPage::build()
{
    delete m_body;
    m_body = new QWidget;
    m_problem = makeMutedLabel();
    m_bar = new QWidget;
    m_table = new RunList(RunList::Place::History);
    m_noMatch = makeMutedLabel();
    m_stack = new QStackedWidget;
    m_splitter = new QSplitter(Qt::Vertical);
    m_view = new RunView;
    m_notes = new RunNotes;
    m_bin = new BinView;
    m_toast = new Toast;
    makeFilterBar();
    makeTable();
    makeEditing();
    m_noMatch->setAlignment(Qt::AlignCenter);
    m_problem->hide();

    auto* rows = new QHBoxLayout;
    rows->addWidget(m_table, 1);
    rows->addWidget(m_notes);
    auto* list = new QWidget;
    auto* listLayout = new QVBoxLayout(list);
    listLayout->setContentsMargins(0, 0, 0, 0);
    listLayout->addWidget(m_bar);
    listLayout->addLayout(rows, 1);
    listLayout->addWidget(m_noMatch);
    m_view->header()->setClosable(true);
    m_view->setAnswerable(false);
    m_view->hide();
    m_splitter->setChildrenCollapsible(false);
    m_splitter->addWidget(list);
    m_splitter->addWidget(m_view);
    m_splitterRestored = m_splitter->restoreState(QSettings().value(kSplitterKey).toByteArray());
    m_stack->addWidget(makeEmptyState());
    m_stack->addWidget(m_splitter);
    m_stack->addWidget(m_bin);
    auto* body = new QVBoxLayout(m_body);
    body->setContentsMargins(0, 0, 0, 0);
    body->addWidget(m_problem);
    body->addWidget(m_stack, 1);
    body->addWidget(m_toast);
    layout()->addWidget(m_body);
    connect(m_view, &RunView::resumeRequested, this, &HistoryPage::resumeRequested);
    connect(m_view, &RunView::tryRequested, this, &HistoryPage::tryRequested);
    connect(m_view, &RunView::timelineRequested, m_feed, &RunFeed::readTimeline);
    connect(m_view, &RunView::closeRequested, this, &HistoryPage::closeRun);
    updateState();
}

void HistoryPage::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() != QEvent::LanguageChange)
        return;
    saveLayout();
    m_notes->commit();
    const RunSnapshotPtr shown = m_view->isHidden() ? nullptr : m_view->snapshot();
    build();
    refresh();
    if (shown)
        showSnapshot(shown);
}

HistoryPage::~HistoryPage()
{
    saveLayout();
}

void HistoryPage::makeFilterBar()
{
    m_text = new QLineEdit;
    m_text->setPlaceholderText(tr("Filter by name, tag, note, model, dataset or policy (Ctrl+F)"));
    m_text->setAccessibleName(tr("Filter"));
    m_text->setClearButtonEnabled(true);
    m_text->setObjectName(QStringLiteral("historyFilter"));
    m_status = new QComboBox;
    m_status->setAccessibleName(tr("State"));
    m_status->addItem(tr("All states"), static_cast<int>(RunFilterModel::States::All));
    m_status->addItem(tr("Active"), static_cast<int>(RunFilterModel::States::Active));
    m_status->addItem(tr("Done"), static_cast<int>(RunFilterModel::States::Done));
    m_status->addItem(tr("Stopped"), static_cast<int>(RunFilterModel::States::Stopped));
    m_status->addItem(
        tr("Failed or interrupted"), static_cast<int>(RunFilterModel::States::Failed));
    m_count = new QLabel;
    m_open = new QPushButton(tr("Open"));
    m_resume = new QPushButton(ResumeWords::action(false));
    m_resume->setObjectName(QStringLiteral("historyResume"));
    m_compare = new QPushButton(tr("Compare"));
    m_compare->setObjectName(QStringLiteral("historyCompare"));
    connect(m_compare, &QPushButton::clicked, this, &HistoryPage::compareSelected);
    connect(m_text, &QLineEdit::textChanged, this, [this](const QString& text) {
        m_table->filter()->setText(text);
        updateState();
    });
    connect(m_status, &QComboBox::currentIndexChanged, this, [this] {
        m_table->filter()->setStates(
            static_cast<RunFilterModel::States>(m_status->currentData().toInt()));
        updateState();
    });
    connect(m_open, &QPushButton::clicked, this, &HistoryPage::openSelected);
    connect(m_resume, &QPushButton::clicked, this, &HistoryPage::resumeSelected);
    auto* find = new QAction(m_body);
    find->setShortcut(QKeySequence::Find);
    find->setShortcutContext(Qt::WidgetWithChildrenShortcut);
    connect(find, &QAction::triggered, this, [this] {
        m_text->setFocus(Qt::ShortcutFocusReason);
        m_text->selectAll();
    });
    m_body->addAction(find);

    m_notesShown = new QToolButton;
    m_notesShown->setText(tr("Notes"));
    m_notesShown->setCheckable(true);
    m_notesShown->setChecked(QSettings().value(kNotesKey, false).toBool());
    m_notesShown->setFocusPolicy(Qt::StrongFocus);
    m_binShown = new QPushButton(tr("Bin"));
    m_binShown->setObjectName(QStringLiteral("historyBin"));
    m_binShown->setCheckable(true);

    auto* layout = new QHBoxLayout(m_bar);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->addWidget(m_text, 1);
    layout->addWidget(m_status);
    layout->addWidget(m_count);
    layout->addSpacing(8);
    layout->addWidget(m_open);
    layout->addWidget(m_resume);
    layout->addWidget(m_compare);
    layout->addWidget(m_notesShown);
    layout->addWidget(m_binShown);
}

void HistoryPage::makeTable()
{
    m_table->setAccessibleName(tr("Runs"));
    m_table->runs()->setRenameable(m_editor->canEdit());
    connect(m_table, &QTableView::activated, this, &HistoryPage::openSelected);
    connect(m_table, &QTableView::customContextMenuRequested, this, &HistoryPage::showContextMenu);
    connect(m_table->selectionModel(), &QItemSelectionModel::selectionChanged, this,
        &HistoryPage::updateState);
}

QTableView* HistoryPage::table() const
{
    return m_table;
}

QWidget* HistoryPage::makeEmptyState()
{
    auto* page = new EmptyState(tr("No runs yet."),
        tr("Every run is kept here with its charts, also those that were started on the "
           "command line."));
    connect(
        page->addButton(tr("New run")), &QPushButton::clicked, this, &HistoryPage::newRunRequested);
    m_emptyBin = page->addButton(tr("Bin"));
    m_emptyBin->hide();
    connect(m_emptyBin, &QPushButton::clicked, this, [this] { showBin(true); });
    return page;
}

void HistoryPage::setRuns(const RunRowsPtr& runs)
{
    m_problem->hide();
    m_table->setRuns(runs);
    updateState();
}

void HistoryPage::showSnapshot(const RunSnapshotPtr& snapshot)
{
    m_view->setSnapshot(snapshot);
    if (!m_view->isHidden())
        return;
    m_view->show();
    if (!m_splitterRestored) {
        const int height = m_splitter->height();
        m_splitter->setSizes({height * 2 / 5, height * 3 / 5});
        m_splitterRestored = true; // from now on the user's
    }
    m_table->choose(snapshot->run.id);
}

void HistoryPage::openRun(qint64 runId)
{
    m_feed->watch(runId);
}

void HistoryPage::closeRun()
{
    m_feed->watch(0);
    m_view->hide();
    m_table->setFocus();
}

void HistoryPage::refresh()
{
    m_feed->refreshRuns();
    m_feed->refreshRun();
    if (m_editor->canEdit()) {
        m_feed->refreshDeleted();
        m_editor->readTags();
    }
}

void HistoryPage::notify(qint64 runId)
{
    if (!isVisible())
        return; // showEvent reads the list
    m_feed->notify(runId);
    m_feed->refreshRuns();
}

void HistoryPage::openSelected()
{
    if (const RunRow* run = m_table->selectedRun())
        openRun(run->id);
}

void HistoryPage::resumeSelected()
{
    const RunRow* run = m_table->selectedRun();
    if (run != nullptr && run->resumable)
        emit resumeRequested(QString::fromStdString(run->dir));
}

void HistoryPage::repeatSelected()
{
    if (const RunRow* run = m_table->selectedRun())
        emit newRunLikeRequested(
            QString::fromStdString(run->askedJson.empty() ? run->configJson : run->askedJson));
}

void HistoryPage::compareSelected()
{
    if (const std::vector<std::int64_t> ids = m_table->selectedIds(); ids.size() == 2)
        emit compareRequested(ids[0], ids[1]);
}

void HistoryPage::updateState()
{
    const int all = m_table->runs()->rowCount();
    const int shown = m_table->filter()->rowCount();
    m_stack->setCurrentIndex(m_binShown->isChecked() ? 2 : all == 0 ? 0 : 1);
    m_notes->setRuns(m_table->selectedRuns());
    m_count->setText(shown == all ? tr("%n run(s)", nullptr, all)
                                  : tr("%1 of %n run(s)", nullptr, all).arg(shown));
    m_noMatch->setVisible(all > 0 && shown == 0);
    m_noMatch->setText(m_text->text().isEmpty() ? tr("No run is in this state.")
                                                : tr("No run matches “%1”.").arg(m_text->text()));
    const RunRow* run = m_table->selectedRun();
    m_open->setEnabled(run != nullptr);
    m_compare->setEnabled(m_table->selectedIds().size() == 2);
    m_compare->setToolTip(m_compare->isEnabled()
                              ? tr("Show both runs beside each other")
                              : tr("Choose two runs first (click, then Ctrl+click)"));
    m_resume->setEnabled(run != nullptr && run->resumable);
    m_resume->setToolTip(run == nullptr ? tr("Choose a run first")
                         : run->resumable
                             ? ResumeWords::help(run->startsAgain)
                             : tr("This run is finished, active, or has no checkpoint"));
    m_resume->setText(ResumeWords::action(run != nullptr && run->startsAgain));
}

void HistoryPage::showContextMenu(const QPoint& at)
{
    const RunRow* run = m_table->selectedRun();
    const bool any = m_table->selectionModel()->hasSelection();
    QMenu menu(this);
    QAction* open = menu.addAction(tr("Open"), this, &HistoryPage::openSelected);
    QAction* resume = menu.addAction(ResumeWords::action(run != nullptr && run->startsAgain), this,
        &HistoryPage::resumeSelected);
    open->setEnabled(run != nullptr);
    resume->setEnabled(run != nullptr && run->resumable);
    menu.addAction(tr("New run like this"), this, &HistoryPage::repeatSelected)
        ->setEnabled(run != nullptr);
    menu.addAction(tr("Export…"), this, &HistoryPage::exportSelected)
        ->setEnabled(run != nullptr && !run->dir.empty());
    menu.addAction(tr("Compare"), this, &HistoryPage::compareSelected)
        ->setEnabled(m_compare->isEnabled());
    menu.addSeparator();
    menu.addAction(tr("Copy"), this, [this] { m_table->copySelection(QLatin1Char('\t')); })
        ->setEnabled(any);
    menu.addAction(tr("Copy as CSV"), this, [this] { m_table->copySelection(QLatin1Char(',')); })
        ->setEnabled(any);
    menu.addSeparator();
    QAction* reveal = menu.addAction(tr("Show folder"), this, &HistoryPage::showFolder);
    reveal->setEnabled(run != nullptr && !run->dir.empty());
    if (m_editor->canEdit()) {
        menu.addSeparator();
        menu.addAction(tr("Rename"), m_table, &RunList::renameSelected)->setEnabled(run != nullptr);
        menu.addAction(tr("Tags…"), this, [this] { editNote(m_notes->tags()); })->setEnabled(any);
        menu.addAction(tr("Note…"), this, [this] { editNote(m_notes->note()); })
            ->setEnabled(run != nullptr);
        menu.addSeparator();
        menu.addAction(tr("Delete"), this, &HistoryPage::deleteSelected)->setEnabled(any);
    }
    menu.exec(m_table->viewport()->mapToGlobal(at));
}

void HistoryPage::showFolder()
{
    const RunRow* run = m_table->selectedRun();
    if (run == nullptr || run->dir.empty())
        return;
    const QString folder = QString::fromStdString(run->dir);
    if (QDesktopServices::openUrl(QUrl::fromLocalFile(folder)))
        return;
    QApplication::clipboard()->setText(folder);
    m_toast->say(
        tr("No program answers that shows folders. The path is on the clipboard: %1").arg(folder),
        false);
}

void HistoryPage::saveLayout() const
{
    QSettings settings;
    m_table->saveColumns();
    m_bin->list()->saveColumns();
    settings.setValue(kNotesKey, m_notesShown->isChecked());
    if (!m_view->isHidden())
        settings.setValue(kSplitterKey, m_splitter->saveState());
}

void HistoryPage::showEvent(QShowEvent* event)
{
    QWidget::showEvent(event);
    refresh();
}

void HistoryPage::hideEvent(QHideEvent* event)
{
    QWidget::hideEvent(event);
    saveLayout();
}

} // namespace mr::ui
