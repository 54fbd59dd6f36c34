#include "pages/compare_page.h"

#include "bridge/run_feed.h"
#include "pages/compare_view.h"
#include "widgets/card.h"
#include "widgets/empty_state.h"

#include <QEvent>
#include <QLabel>
#include <QPushButton>
#include <QStackedWidget>
#include <QVBoxLayout>

namespace mr::ui {

namespace {

constexpr int kCompareMargin = 12;

} // namespace

ComparePage::ComparePage(const UiServices& services, QWidget* parent)
    : QWidget(parent)
{
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(kCompareMargin, kCompareMargin, kCompareMargin, kCompareMargin);
    build();
    for (int run = 0; run < 2; ++run) {
        auto* feed = new RunFeed(services, this);
        m_feeds.at(static_cast<std::size_t>(run)) = feed;
        connect(feed, &RunFeed::snapshotReady, this,
            [this, run](const RunSnapshotPtr& snapshot) { showSnapshot(run, snapshot); });
        connect(feed, &RunFeed::failed, this, [this](const QString& sentence) {
            m_problem->setText(tr("The history cannot be read: %1").arg(sentence));
            m_problem->show();
        });
    }
}

void ComparePage::build()
{
    delete m_body;
    m_body = new QWidget;
    m_view = new CompareView;
    m_stack = new QStackedWidget;
    m_problem = makeMutedLabel();
    m_problem->hide();
    m_stack->addWidget(makeEmptyState());
    m_stack->addWidget(m_view);
    auto* body = new QVBoxLayout(m_body);
    body->setContentsMargins(0, 0, 0, 0);
    body->addWidget(m_problem);
    body->addWidget(m_stack, 1);
    layout()->addWidget(m_body);
    connect(m_view, &CompareView::openRequested, this, &ComparePage::openRequested);
}

QWidget* ComparePage::makeEmptyState()
{
    auto* page = new EmptyState(tr("Nothing is compared yet."),
        tr("Tick “Compare with” on the New run page to train under two policies, one "
           "after the other, or choose two runs in History."));
    connect(
        page->addButton(tr("New run")), &QPushButton::clicked, this, &ComparePage::newRunRequested);
    connect(page->addButton(tr("History")), &QPushButton::clicked, this,
        &ComparePage::historyRequested);
    return page;
}

void ComparePage::compare(qint64 first, qint64 second, const QString& waitingName)
{
    const std::array<qint64, 2> wanted = {first, second};
    for (std::size_t run = 0; run < wanted.size(); ++run) {
        if (wanted.at(run) != 0 && wanted.at(run) == m_ids.at(run))
            continue; // goes on being shown
        m_ids.at(run) = wanted.at(run);
        m_runs.at(run) = nullptr;
        m_feeds.at(run)->watch(wanted.at(run));
    }
    m_waitingName = waitingName;
    showProblem({});
    showRuns();
}

void ComparePage::showProblem(const QString& sentence)
{
    m_problemShown = sentence;
    m_view->setProblem(sentence);
}

void ComparePage::showSnapshot(int run, const RunSnapshotPtr& snapshot)
{
    m_problem->hide();
    m_runs.at(static_cast<std::size_t>(run)) = snapshot;
    showRuns();
}

void ComparePage::showRuns()
{
    m_view->setRuns(m_runs, m_waitingName);
    m_stack->setCurrentIndex(m_runs[0] || m_runs[1] || m_ids[0] != 0 || !m_waitingName.isEmpty());
}

void ComparePage::notify(qint64 runId)
{
    for (RunFeed* feed : m_feeds)
        feed->notify(runId);
}

void ComparePage::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() != QEvent::LanguageChange)
        return;
    build();
    m_view->setProblem(m_problemShown);
    showRuns();
}

} // namespace mr::ui
