#include "pages/live_page.h"

#include "bridge/run_feed.h"
#include "pages/run_header.h"
#include "pages/run_view.h"
#include "widgets/card.h"
#include "widgets/empty_state.h"

#include <QEvent>
#include <QLabel>
#include <QPushButton>
#include <QStackedWidget>
#include <QVBoxLayout>

namespace mr::ui {

namespace {

constexpr int kLiveMargin = 12;

} // namespace

LivePage::LivePage(const UiServices& services, QWidget* parent)
    : QWidget(parent)
    , m_feed(new RunFeed(services, this))
{
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(kLiveMargin, kLiveMargin, kLiveMargin, kLiveMargin);
    build();
    connect(m_feed, &RunFeed::snapshotReady, this, &LivePage::showSnapshot);
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

LivePage::~LivePage() = default;

void LivePage::build()
{
    delete m_body;
    m_body = new QWidget;
    m_view = new RunView;
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
    connect(m_view, &RunView::stopRequested, this, &LivePage::stopRequested);
    connect(m_view, &RunView::resumeRequested, this, &LivePage::resumeRequested);
    connect(m_view, &RunView::tryRequested, this, &LivePage::tryRequested);
    connect(m_view, &RunView::pauseAnswered, this, &LivePage::pauseAnswered);
    connect(m_view, &RunView::timelineRequested, m_feed, &RunFeed::readTimeline);
    setSleepState(m_sleep);
}

void LivePage::setSleepState(SleepGuard::State state)
{
    m_sleep = state;
    QString note;
    if (state == SleepGuard::State::Held)
        note = tr("While this run goes on, the machine does not fall asleep by itself.");
    else if (state == SleepGuard::State::Unavailable)
        note = tr("This system offers no way to keep the machine awake: it may fall asleep by "
                  "itself while the run goes on.");
    m_view->header()->setStateNote(note);
}

void LivePage::showSnapshot(const RunSnapshotPtr& snapshot)
{
    m_problem->hide();
    m_view->setSnapshot(snapshot);
    m_stack->setCurrentWidget(m_view);
}

void LivePage::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if (event->type() != QEvent::LanguageChange)
        return;
    const RunSnapshotPtr shown = m_stack->currentWidget() == m_view ? m_view->snapshot() : nullptr;
    build();
    if (shown)
        showSnapshot(shown);
}

QWidget* LivePage::makeEmptyState()
{
    auto* page = new EmptyState(tr("No run is active."),
        tr("A run that is started here is shown with its loss, its speed and what every "
           "step waited for."));
    connect(
        page->addButton(tr("New run")), &QPushButton::clicked, this, &LivePage::newRunRequested);
    connect(
        page->addButton(tr("History")), &QPushButton::clicked, this, &LivePage::historyRequested);
    return page;
}

void LivePage::showRun(qint64 runId)
{
    m_feed->watch(runId);
    if (runId == 0)
        m_stack->setCurrentIndex(0);
}

void LivePage::notify(qint64 runId)
{
    m_feed->notify(runId);
}

} // namespace mr::ui
