#include "charts/timeline_section.h"

#include "charts/legend.h"
#include "charts/step_timeline.h"
#include "models/timeline_table_model.h"
#include "models/traced_steps.h"
#include "text/timeline_words.h"
#include "text/units.h"
#include "widgets/card.h"

#include <QAbstractItemView>
#include <QComboBox>
#include <QLabel>
#include <QPushButton>
#include <QSignalBlocker>
#include <QStackedWidget>
#include <QToolButton>

#include <algorithm>
#include <array>

namespace mr::ui {

namespace {

bool sameSteps(const std::vector<TraceInfo>& a, const std::vector<TraceInfo>& b)
{
    return std::equal(a.begin(), a.end(), b.begin(), b.end(),
        [](const TraceInfo& x, const TraceInfo& y) { return x.step == y.step && x.why == y.why; });
}

QToolButton* arrowButton(Qt::ArrowType arrow, const QString& name)
{
    auto* button = new QToolButton;
    button->setArrowType(arrow);
    button->setAutoRaise(true);
    button->setMinimumSize(kTargetSize, kTargetSize);
    button->setAccessibleName(name);
    button->setToolTip(name);
    return button;
}

} // namespace

TimelineSection::TimelineSection(QWidget* parent)
    : TimelineSection(new StepTimelineChart, new QStackedWidget, parent)
{
}

TimelineSection::TimelineSection(StepTimelineChart* chart, QStackedWidget* stack, QWidget* parent)
    : ChartPanel(tr("Timeline of a step"), stack, parent)
    , m_chart(chart)
    , m_stack(stack)
    , m_sentence(makeMutedLabel())
    , m_model(new TimelineTableModel(this))
{
    m_sentence->setAlignment(Qt::AlignLeft | Qt::AlignTop);
    m_stack->addWidget(m_sentence);
    m_stack->addWidget(m_chart);
    m_chart->setWhatsThis(
        tr("One bar per task of the step. Ctrl+wheel or + and - zoom, dragging or "
           "the arrow keys move, Home shows all. Comma and full stop select the "
           "task before and after, Up and Down another lane, Return what a wait "
           "waited for. Page keys show another step."));
    makeTools();
    connect(m_chart, &StepTimelineChart::readoutChanged, this, &ChartPanel::setReadout);
    connect(m_chart, &StepTimelineChart::stepRequested, this, &TimelineSection::chooseBeside);
    ChartExport timeline;
    timeline.baseName = QStringLiteral("timeline");
    timeline.csv = [this] { return m_model->csv(); };
    setExport(std::move(timeline));
    clear();
}

void TimelineSection::makeTools()
{
    m_before = arrowButton(Qt::LeftArrow, tr("The kept step before (Page Up)"));
    m_after = arrowButton(Qt::RightArrow, tr("The next kept step (Page Down)"));
    m_choice = new QComboBox;
    m_choice->setAccessibleName(tr("Kept step"));
    m_choice->view()->setAccessibleName(tr("Kept step"));
    m_choice->setToolTip(
        tr("A run keeps the timelines of some steps: one of every 50, later fewer, and the "
           "slowest."));
    m_choice->setSizeAdjustPolicy(QComboBox::AdjustToContents);
    m_fit = new QPushButton(tr("Fit"));
    m_fit->setToolTip(tr("The whole step (Home)"));
    m_fit->setAccessibleName(tr("Show the whole step"));
    m_table = new QPushButton(tr("As a table…"));
    m_table->setAccessibleName(tr("All tasks of the step as a table"));
    connect(m_before, &QToolButton::clicked, this, [this] { chooseBeside(-1); });
    connect(m_after, &QToolButton::clicked, this, [this] { chooseBeside(1); });
    connect(m_choice, &QComboBox::activated, this, [this](int index) {
        m_follows = false;
        choose(m_traces[static_cast<std::size_t>(index)].step);
    });
    connect(m_fit, &QPushButton::clicked, m_chart, &StepTimelineChart::fit);
    connect(m_table, &QPushButton::clicked, this, &TimelineSection::tableRequested);
    for (QWidget* tool :
        std::initializer_list<QWidget*>{m_before, m_choice, m_after, m_fit, m_table})
        addTool(tool);
}

void TimelineSection::clear()
{
    m_traces.clear();
    m_step = -1;
    m_follows = true;
    m_cause.reset();
    m_snapshot = nullptr;
    m_chart->setTimeline(nullptr, {});
    m_model->setTimeline(nullptr, {});
    fillSteps();
    say(tr("No timeline is kept yet. The first one is that of step 50, or of a step that is much "
           "slower than all before it."));
}

void TimelineSection::setSnapshot(const RunSnapshotPtr& snapshot)
{
    m_snapshot = snapshot;
    m_groups.clear();
    if (snapshot->plan) {
        for (const PlanGroup& group : snapshot->plan->groups)
            m_groups.push_back(group.name);
    }
    if (sameSteps(m_traces, snapshot->traces))
        return;
    m_traces = snapshot->traces;
    fillSteps();
    if (m_follows && !m_traces.empty())
        choose(m_traces.back().step);
}

void TimelineSection::fillSteps()
{
    const QSignalBlocker quiet(m_choice);
    m_choice->clear();
    for (const TraceInfo& trace : m_traces)
        m_choice->addItem(tr("Step %1 · %2", "number, why it was kept")
                              .arg(countText(trace.step), TimelineWords::why(trace.why)));
    const auto chosen = std::find_if(m_traces.begin(), m_traces.end(),
        [this](const TraceInfo& trace) { return trace.step == m_step; });
    m_choice->setCurrentIndex(
        chosen == m_traces.end() ? -1 : static_cast<int>(chosen - m_traces.begin()));
    enableTools();
}

void TimelineSection::enableTools()
{
    const bool shown = m_chart->timeline() != nullptr;
    for (QWidget* tool :
        std::initializer_list<QWidget*>{m_before, m_choice, m_after, m_fit, m_table})
        tool->setVisible(!m_traces.empty());
    m_before->setEnabled(tracedNeighbour(m_traces, m_step, -1).has_value());
    m_after->setEnabled(tracedNeighbour(m_traces, m_step, 1).has_value());
    m_fit->setEnabled(shown);
    m_table->setEnabled(shown);
}

void TimelineSection::choose(std::int64_t step)
{
    m_step = step;
    fillSteps();
    // A step that is on the screen stays there until the other one has come.
    if (m_chart->timeline() == nullptr)
        say(tr("Reading the timeline of step %1…").arg(countText(step)));
    emit timelineRequested(step);
}

void TimelineSection::chooseBeside(int by)
{
    if (const auto step = tracedNeighbour(m_traces, m_step, by)) {
        m_follows = false;
        m_cause.reset();
        choose(*step);
    }
}

bool TimelineSection::showWorst(std::size_t part)
{
    if (!m_snapshot)
        return false;
    const auto step = worstTracedStep(m_traces, m_snapshot->steps, part);
    if (!step)
        return false;
    m_follows = false;
    m_cause.reset();
    if (part > 0 && part <= kStallCauses)
        m_cause = static_cast<StallCause>(part - 1);
    choose(*step);
    return true;
}

void TimelineSection::setTimeline(const TimelinePtr& timeline)
{
    if (timeline == nullptr || timeline->step != m_step)
        return;
    m_chart->setTimeline(timeline, m_groups);
    m_model->setTimeline(timeline, m_groups);
    m_chart->setAccessibleName(tr("Timeline of step %1").arg(countText(timeline->step)));
    m_stack->setCurrentWidget(m_chart);
    m_stack->setFixedHeight(m_chart->minimumSizeHint().height());
    showLegend();
    enableTools();
    if (m_cause) {
        if (const int wait = longestWait(*timeline, *m_cause); wait >= 0)
            m_chart->select(wait);
        m_cause.reset();
    }
}

void TimelineSection::setFailure(qint64 step, const QString& sentence)
{
    if (step != m_step)
        return;
    m_chart->setTimeline(nullptr, {});
    m_model->setTimeline(nullptr, {});
    say(tr("The timeline of step %1 cannot be read: %2").arg(countText(step), sentence));
    enableTools();
}

void TimelineSection::say(const QString& sentence)
{
    m_sentence->setText(sentence);
    m_stack->setCurrentWidget(m_sentence);
    m_stack->setFixedHeight(m_sentence->fontMetrics().height() * 2);
    legend()->setEntries({});
    setReadout({});
}

void TimelineSection::showLegend()
{
    std::array<bool, kTimelineClasses> present{};
    for (const TimelineSpan& span : m_chart->timeline()->spans)
        present[static_cast<std::size_t>(TimelineWords::classOf(span))] = true;
    std::vector<Legend::Entry> entries;
    for (std::size_t i = 0; i < kTimelineClasses; ++i) {
        const auto kind = static_cast<TimelineClass>(i);
        if (present[i])
            entries.push_back({TimelineWords::className(kind), {}, Legend::Mark::Box,
                [kind](const QPalette& palette) {
                    return TimelineWords::classColor(kind, themeColors(palette));
                }});
    }
    legend()->setEntries(std::move(entries));
}

} // namespace mr::ui
