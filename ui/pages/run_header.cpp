#include "pages/run_header.h"

#include "models/outcome_words.h"
#include "models/run_figures.h"
#include "models/run_progress.h"
#include "models/run_status.h"
#include "text/resume_words.h"
#include "text/theme_colors.h"
#include "text/units.h"
#include "widgets/card.h"

#include <QDateTime>
#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QLocale>
#include <QProgressBar>
#include <QPushButton>
#include <QVBoxLayout>

#include <algorithm>
#include <cmath>

namespace mr::ui {

namespace {

constexpr int kIconExtent = 18;
constexpr int kButtonRoom = 16;

QString etaText(double seconds)
{
    if (seconds < 0.0)
        return {QChar(0x2013)};
    const QDateTime end = QDateTime::currentDateTime().addSecs(std::llround(seconds));
    const bool today = end.date() == QDate::currentDate();
    const QString clock = today ? QLocale().toString(end.time(), QLocale::ShortFormat)
                                : QLocale().toString(end, QLocale::ShortFormat);
    return RunHeader::tr("%1 (at %2)", "time left, clock time").arg(durationText(seconds), clock);
}

} // namespace

RunHeader::RunHeader(QWidget* parent)
    : QFrame(parent)
    , m_icon(new QLabel)
    , m_state(new QLabel)
    , m_name(new QLabel)
    , m_method(makeMutedLabel(nullptr))
    , m_link(new QLabel(tr("Simulated link")))
    , m_reason(new QLabel)
    , m_progress(new QProgressBar)
    , m_stop(new QPushButton(tr("Stop and save")))
    , m_resume(new QPushButton(ResumeWords::action(false)))
    , m_try(new QPushButton(tr("Try it")))
    , m_close(new QPushButton(tr("Close")))
{
    setAccessibleName(tr("Run"));
    QFont large = m_name->font();
    large.setBold(true);
    large.setPointSizeF(large.pointSizeF() * 1.2);
    m_name->setFont(large);
    m_name->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_name->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    m_link->setToolTip(tr("Copies were slowed down on purpose: times say how the plan behaves, not "
                          "how fast this machine is."));
    m_method->setObjectName(QStringLiteral("runMethod"));
    m_method->setWordWrap(false);
    m_link->setMargin(3);
    m_reason->setWordWrap(true);
    m_reason->setTextInteractionFlags(Qt::TextSelectableByMouse);
    m_progress->setTextVisible(false);
    m_progress->setFixedHeight(6);
    m_progress->setAccessibleName(tr("Progress of the run"));
    m_stop->setMinimumWidth(m_stop->sizeHint().width() + kButtonRoom);
    connect(m_stop, &QPushButton::clicked, this, [this] {
        m_stopAsked = true;
        showState();
        emit stopRequested();
    });
    connect(m_resume, &QPushButton::clicked, this,
        [this] { emit resumeRequested(QString::fromStdString(m_snapshot->run.dir)); });
    m_try->setObjectName(QStringLiteral("tryRun"));
    m_try->setToolTip(tr("Ask this run and the model it began with the same"));
    connect(m_try, &QPushButton::clicked, this, [this] { emit tryRequested(m_snapshot->run.id); });
    connect(m_close, &QPushButton::clicked, this, &RunHeader::closeRequested);

    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(12, 8, 12, 10);
    layout->setSpacing(6);
    layout->addLayout(makeTop());
    layout->addWidget(m_progress);
    layout->addLayout(makeNumbers());
    layout->addWidget(m_reason);
    m_close->hide();
}

QHBoxLayout* RunHeader::makeTop()
{
    auto* top = new QHBoxLayout;
    top->setSpacing(8);
    for (QWidget* widget : std::initializer_list<QWidget*>{m_icon, m_state})
        top->addWidget(widget);
    top->addWidget(m_name, 1);
    for (QWidget* widget :
        std::initializer_list<QWidget*>{m_method, m_link, m_try, m_stop, m_resume, m_close})
        top->addWidget(widget);
    return top;
}

QHBoxLayout* RunHeader::makeNumbers()
{
    auto* numbers = new QHBoxLayout;
    numbers->setSpacing(12);
    const QStringList captions = {tr("Step"), tr("Elapsed"), tr("Time left"), tr("Speed"),
        tr("Loss now"), tr("Best evaluation")};
    for (const QString& caption : captions) {
        Metric metric{makeMutedLabel(), new QLabel};
        metric.caption->setText(caption);
        metric.caption->setWordWrap(false);
        metric.value->setTextInteractionFlags(Qt::TextSelectableByMouse);
        QFont bold = metric.value->font();
        bold.setBold(true);
        metric.value->setFont(bold);
        auto* column = new QVBoxLayout;
        column->setSpacing(1);
        column->addWidget(metric.caption);
        column->addWidget(metric.value);
        numbers->addLayout(column, 1);
        m_metrics.push_back(metric);
    }
    return numbers;
}

void RunHeader::setClosable(bool on)
{
    m_closable = on;
    m_close->setVisible(on);
}

void RunHeader::setStateNote(const QString& note)
{
    m_stateNote = note;
    showState();
}

QString RunHeader::stateNote() const
{
    return m_state->toolTip();
}

void RunHeader::setResumeAllowed(bool on)
{
    m_resumeAllowed = on;
    showState();
}

void RunHeader::setSnapshot(const RunSnapshotPtr& snapshot)
{
    // A run that has ended was stopped; resumed, it is asked anew. A quick start is never seen.
    if (!m_snapshot || m_snapshot->run.id != snapshot->run.id || isEnded(snapshot->run) ||
        snapshot->run.status == RunStatus::Starting)
        m_stopAsked = false;
    m_snapshot = snapshot;
    showNumbers();
    showState();
}

void RunHeader::setMetric(MetricIndex index, const QString& value, const QString& toolTip)
{
    const Metric& metric = m_metrics[index];
    if (metric.value->text() != value) {
        metric.value->setText(value);
        metric.value->setAccessibleName(metric.caption->text() + QStringLiteral(": ") + value);
    }
    metric.value->setToolTip(toolTip);
}

void RunHeader::showNumbers()
{
    const RunProgress now = progressOf(*m_snapshot);
    const RunRow& run = m_snapshot->run;
    setMetric(Step,
        now.totalSteps > 0
            ? tr("%1 / %2", "step of steps").arg(countText(now.step), countText(now.totalSteps))
            : countText(now.step));
    setMetric(Elapsed,
        now.elapsedSeconds < 0.0 ? QString(QChar(0x2013)) : durationText(now.elapsedSeconds));
    setMetric(Eta, etaText(now.remainingSeconds));
    setMetric(Speed, now.tokensPerSecond < 0.0
                         ? QString(QChar(0x2013))
                         : tr("%1 tokens/s").arg(numberText(now.tokensPerSecond, 0)));
    QString change;
    if (std::isfinite(now.lossBefore) && std::isfinite(now.lossNow)) {
        const double difference = now.lossNow - now.lossBefore;
        const QString sign = difference > 0.0 ? QStringLiteral("+") : QString();
        change = tr("%1 against 50 steps earlier").arg(sign + numberText(difference, 4));
    }
    setMetric(Loss, numberText(now.lossNow, 4), change);
    setMetric(Eval, OutcomeWords::best(run), OutcomeWords::before(run));
    const auto total = static_cast<int>(std::max<std::int64_t>(now.totalSteps, 1));
    m_progress->setMaximum(total);
    m_progress->setValue(static_cast<int>(std::min<std::int64_t>(now.step, total)));
}

void RunHeader::showState()
{
    if (!m_snapshot)
        return;
    const RunRow& run = m_snapshot->run;
    const bool ended = isEnded(run);
    const bool stopping = m_stopAsked && !ended;
    const ShownStatus status = OutcomeWords::status(run);
    m_icon->setPixmap(RunStatusText::picture(status, palette(), kIconExtent, devicePixelRatioF()));
    m_state->setText(stopping ? tr("Stopping") : RunStatusText::word(status));
    for (QLabel* label : {m_icon, m_state})
        label->setToolTip(ended ? QString() : m_stateNote);
    QPalette colored = palette();
    colored.setColor(QPalette::WindowText, RunStatusText::color(status, palette()));
    m_state->setPalette(colored);
    m_name->setText(QString::fromStdString(run.name));
    m_name->setToolTip(QString::fromStdString(run.dir));
    const QString method = methodOf(run);
    m_method->setText(method);
    m_method->setVisible(!method.isEmpty());
    m_link->setVisible(run.simulatedLink);
    QPalette link = palette();
    link.setColor(QPalette::WindowText, themeColors(palette()).warning);
    m_link->setPalette(link);
    m_link->setFrameShape(QFrame::StyledPanel);
    m_stop->setVisible(!ended && !m_closable);
    m_stop->setEnabled(!stopping);
    const bool paused = run.status == RunStatus::Paused; // it cannot save, and waits until it can
    m_stop->setText(stopping ? tr("Saving…") : paused ? tr("Stop") : tr("Stop and save"));
    m_stop->setToolTip(
        paused ? tr("End the run with what is saved already. It can be resumed from there.")
               : tr("Finish this step, save a checkpoint and end the run. It can be resumed."));
    m_resume->setVisible(ended && run.resumable);
    m_try->setVisible((!ended && !m_closable) || (run.resumable && !run.startsAgain) ||
                      run.status == RunStatus::Done);
    m_resume->setEnabled(m_resumeAllowed);
    m_resume->setText(ResumeWords::action(run.startsAgain));
    m_resume->setToolTip(m_resumeAllowed ? ResumeWords::help(run.startsAgain)
                                         : tr("Another run is active; stop it first."));
    const QString worse = OutcomeWords::sentence(run);
    m_reason->setText(worse.isEmpty() ? QString::fromStdString(run.exitReason) : worse);
    m_reason->setVisible(!m_reason->text().isEmpty());
    QPalette reason = palette();
    if (run.status == RunStatus::Failed || run.status == RunStatus::Lost || !worse.isEmpty())
        reason.setColor(QPalette::WindowText, RunStatusText::color(status, palette()));
    m_reason->setPalette(reason);
    m_progress->setVisible(!ended || m_progress->value() < m_progress->maximum());
}

void RunHeader::changeEvent(QEvent* event)
{
    QFrame::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        showState();
}

void RunHeader::paintEvent(QPaintEvent*)
{
    paintCard(*this, themeColors(palette()).border);
}

} // namespace mr::ui
