#include "widgets/plan_panel.h"

#include "text/format.h"
#include "text/method_words.h"
#include "text/plan_words.h"
#include "text/theme_colors.h"
#include "text/units.h"
#include "widgets/card.h"
#include "widgets/lighter_ways.h"
#include "widgets/message_label.h"
#include "widgets/plan_forecast.h"
#include "widgets/plan_rows.h"

#include <QEvent>
#include <QGridLayout>
#include <QLabel>
#include <QLocale>
#include <QVBoxLayout>

#include <algorithm>
#include <numeric>

namespace mr::ui {

namespace {

constexpr std::int64_t kFewSteps = 10; // a run of fewer can hardly teach anything
constexpr std::size_t kNamedKinds = 7; // the largest ones get a line, the rest share one

// The largest kinds first; those beyond kNamedKinds are summed under `otherName`.
QVector<BarPiece> tierPieces(
    const PlanTier& tier, const ThemeColors& colors, const QString& otherName)
{
    std::vector<PlanBytes> kinds = tier.kinds;
    std::stable_sort(kinds.begin(), kinds.end(),
        [](const PlanBytes& a, const PlanBytes& b) { return a.bytes > b.bytes; });
    QVector<BarPiece> pieces;
    BarPiece other{otherName, 0, colors.series[5]};
    for (std::size_t i = 0; i < kinds.size(); ++i) {
        const bool named = i < kNamedKinds || kinds.size() == kNamedKinds + 1;
        if (named)
            pieces.push_back({PlanWords::kind(kinds[i].kind), kinds[i].bytes,
                PlanWords::kindColor(kinds[i].kind, colors)});
        else
            other.bytes += kinds[i].bytes;
    }
    if (other.bytes > 0)
        pieces.push_back(other);
    return pieces;
}

} // namespace

PlanPanel::PlanPanel(QWidget* parent)
    : QWidget(parent)
    , m_headline(new MessageLabel(this))
{
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(10);
    layout->addWidget(m_headline);
    layout->addStretch(1);
}

void PlanPanel::setPlan(PlanView view, std::optional<PlanView> compared)
{
    m_view = std::move(view);
    m_compared = std::move(compared);
    rebuild();
}

void PlanPanel::setProblem(const QString& sentence)
{
    m_view.reset();
    m_compared.reset();
    clearContent();
    m_headline->show(MessageLabel::Kind::Error, sentence);
}

void PlanPanel::setWaiting(const QString& sentence)
{
    m_view.reset();
    m_compared.reset();
    clearContent();
    m_headline->show(MessageLabel::Kind::Info, sentence);
}

void PlanPanel::setBusy(bool busy)
{
    if (busy)
        m_headline->show(MessageLabel::Kind::Busy, tr("Planning…"));
}

QString PlanPanel::headline() const
{
    return m_headline->text();
}

void PlanPanel::changeEvent(QEvent* event)
{
    QWidget::changeEvent(event);
    if ((event->type() == QEvent::LanguageChange || event->type() == QEvent::PaletteChange) &&
        m_view)
        rebuild();
}

void PlanPanel::clearContent()
{
    delete m_content;
    m_content = nullptr;
}

void PlanPanel::rebuild()
{
    clearContent();
    m_content = new QWidget(this);
    auto* content = new QVBoxLayout(m_content);
    content->setContentsMargins(0, 0, 0, 0);
    content->setSpacing(6);
    addVerdict(content);
    if (m_compared) {
        addForecasts(content); // first, because they differ
        addView(content, *m_view);
        addView(content, *m_compared);
    } else {
        addView(content, *m_view);
    }
    content->addStretch(1);
    auto* outer = static_cast<QVBoxLayout*>(layout());
    outer->insertWidget(1, m_content);
    m_content->show(); // now, not with the next turn of the event loop
}

void PlanPanel::showVerdict(const PlanView& view)
{
    const QString limit = PlanWords::limit(view.report);
    if (!view.report.fits && m_compared)
        m_headline->show(MessageLabel::Kind::Error,
            tr("%1 does not fit. %2").arg(QString::fromStdString(view.report.policy), limit));
    else if (!view.report.fits)
        m_headline->show(MessageLabel::Kind::Error, tr("Does not fit. %1").arg(limit));
    else if (!view.diskFits())
        m_headline->show(
            MessageLabel::Kind::Error, tr("Fits in memory, but not on the disk: see Checkpoints."));
    else
        m_headline->show(MessageLabel::Kind::Good, m_compared ? tr("Both fit.") : tr("Fits."));
}

void PlanPanel::addVerdict(QVBoxLayout* layout)
{
    const PlanReport& report = m_view->report;
    showVerdict(m_compared && m_view->fits() ? *m_compared : *m_view);
    QStringList facts;
    facts << tr("Device: %1").arg(QString::fromStdString(report.device));
    if (report.simulatedLink)
        facts << tr("Simulated link: its speed is set, not measured");
    facts << tr("Policy: %1").arg(PlanWords::policy(report));
    if (!report.reason.empty())
        facts << tr("Chosen: %1").arg(QString::fromStdString(report.reason));
    if (m_compared)
        facts << tr("Compared with: %1").arg(PlanWords::policy(m_compared->report));
    facts << tr("Precision: %1, recompute: %2")
                 .arg(QString::fromStdString(report.precision),
                     QString::fromStdString(report.recompute));
    if (!report.optimizer.empty())
        facts << tr("Optimizer: %1").arg(QString::fromStdString(report.optimizer));
    if (const QString trained = MethodWords::trained(report); !trained.isEmpty())
        facts << trained;
    auto* label = makeMutedLabel(m_content);
    label->setText(facts.join(QLatin1Char('\n')));
    layout->addWidget(label);
    addDoubts(layout);
}

// A run that can be started and may still not be what is wanted.
void PlanPanel::addDoubts(QVBoxLayout* layout)
{
    QStringList doubts;
    const std::int64_t steps = m_view->report.steps;
    if (steps > 0 && steps < kFewSteps)
        doubts << tr(
            "Only %n step(s): the model will hardly learn anything. Train for more epochs, "
            "or accumulate less.",
            nullptr, static_cast<int>(steps));
    if (m_compared && m_compared->report.policy == m_view->report.policy)
        doubts << tr("Both runs would use %1: choose another policy to compare with.")
                      .arg(QString::fromStdString(m_view->report.policy));
    if (doubts.isEmpty())
        return;
    auto* message = new MessageLabel(m_content);
    message->setObjectName(QStringLiteral("planDoubts"));
    message->showLines(MessageLabel::Kind::Warning, doubts);
    layout->addWidget(message);
}

void PlanPanel::addView(QVBoxLayout* layout, const PlanView& view)
{
    if (m_compared)
        PlanRows::addHeading(m_content, layout,
            tr("Memory of %1").arg(QString::fromStdString(view.report.policy)), {});
    const bool helpFirst = !view.report.fits; // under the verdict
    if (helpFirst)
        addHelp(layout, view.report);
    for (const PlanTier& tier : view.report.tiers) {
        if (tier.totalBytes > 0)
            addTier(layout, tier);
    }
    if (!m_compared)
        addForecast(layout, view.report, 0.0);
    addTraffic(layout, view.report);
    addWear(layout, view.report);
    addCheckpoints(layout, view);
    if (!helpFirst)
        addHelp(layout, view.report);
}

void PlanPanel::addHelp(QVBoxLayout* layout, const PlanReport& report)
{
    addAdvice(layout, report);
    addLighter(layout, report);
}

void PlanPanel::addTier(QVBoxLayout* layout, const PlanTier& tier)
{
    const ThemeColors& colors = themeColors(palette());
    const QVector<BarPiece> pieces = tierPieces(tier, colors, tr("Everything else"));
    const QString used = memoryText(static_cast<double>(tier.totalBytes));
    const QString name = PlanWords::tier(tier.tier);
    PlanRows::addHeading(m_content, layout, name,
        tier.budgetBytes > 0
            ? tr("%1 of %2").arg(used, memoryText(static_cast<double>(tier.budgetBytes)))
            : used);
    auto* bar = new StackedBar(m_content);
    bar->setData(pieces, tier.budgetBytes);
    bar->setAccessibleName(name);
    layout->addWidget(bar);
    QGridLayout* grid = PlanRows::makeGrid();
    for (const BarPiece& piece : pieces)
        PlanRows::addRow(m_content, grid, piece, memoryText(static_cast<double>(piece.bytes)),
            Format::exactBytes(piece.bytes));
    layout->addLayout(grid);
}

void PlanPanel::addForecasts(QVBoxLayout* layout)
{
    const PlanReport& first = m_view->report;
    const PlanReport& second = m_compared->report;
    const double wholeMs = std::max(first.predictedStepMs, second.predictedStepMs);
    addForecast(layout, first, wholeMs);
    addForecast(layout, second, wholeMs);
}

void PlanPanel::addForecast(QVBoxLayout* layout, const PlanReport& report, double wholeMs)
{
    if (report.predictedStepMs <= 0.0)
        return;
    PlanRows::addHeading(m_content, layout,
        m_compared ? tr("One step of %1").arg(QString::fromStdString(report.policy))
                   : tr("One step (forecast)"),
        Format::milliseconds(report.predictedStepMs));
    layout->addWidget(new PlanForecast(report, wholeMs, m_content));
}

void PlanPanel::addTraffic(QVBoxLayout* layout, const PlanReport& report)
{
    PlanRows::addHeading(m_content, layout, tr("Copies in each step"), {});
    auto* grid = new QGridLayout;
    grid->setColumnStretch(0, 1);
    const auto line = [&](int row, const QString& name, std::int64_t count) {
        auto* number = new QLabel(memoryText(static_cast<double>(count)), m_content);
        number->setToolTip(
            Format::exactBytes(static_cast<quint64>(std::max<std::int64_t>(0, count))));
        grid->addWidget(new QLabel(name, m_content), row, 0);
        grid->addWidget(number, row, 1, Qt::AlignRight);
    };
    line(0, tr("Host to device"), report.h2dBytesPerStep);
    line(1, tr("Device to host"), report.d2hBytesPerStep);
    if (report.diskReadBytesPerStep > 0 || report.diskWriteBytesPerStep > 0) {
        line(2, tr("Disk to host"), report.diskReadBytesPerStep);
        line(3, tr("Host to disk"), report.diskWriteBytesPerStep);
    }
    layout->addLayout(grid);
}

void PlanPanel::addWear(QVBoxLayout* layout, const PlanReport& report)
{
    if (report.wear.empty())
        return;
    PlanRows::addHeading(m_content, layout, tr("Written to disk by the run"),
        report.diskWriteBytesOfRun > 0 ? memoryText(static_cast<double>(report.diskWriteBytesOfRun))
                                       : QString());
    layout->addWidget(PlanRows::wrapped(QString::fromStdString(report.wear), m_content));
}

void PlanPanel::addCheckpoints(QVBoxLayout* layout, const PlanView& view)
{
    PlanRows::addHeading(m_content, layout, tr("Checkpoints"),
        memoryText(static_cast<double>(view.checkpointsBytes())));
    const QString one = memoryText(static_cast<double>(view.report.checkpointBytes));
    const QString free = memoryText(static_cast<double>(view.diskFreeBytes));
    const QString text = tr("%n kept and one being written, %1 each; %2 free on the disk.", nullptr,
        static_cast<int>(view.keepCheckpoints))
                             .arg(one, free);
    if (view.diskFits()) {
        layout->addWidget(PlanRows::wrapped(text, m_content));
        return;
    }
    auto* warning = new MessageLabel(m_content);
    warning->show(MessageLabel::Kind::Error,
        text + QLatin1Char(' ') + tr("Keep fewer, or choose a run folder on another disk."));
    layout->addWidget(warning);
}

void PlanPanel::addAdvice(QVBoxLayout* layout, const PlanReport& report)
{
    if (report.advice.empty())
        return;
    PlanRows::addHeading(m_content, layout, tr("What would help"), {});
    for (const std::string& sentence : report.advice)
        layout->addWidget(
            PlanRows::wrapped(QStringLiteral("• ") + QString::fromStdString(sentence), m_content));
}

void PlanPanel::addLighter(QVBoxLayout* layout, const PlanReport& report)
{
    if (report.lighter.empty())
        return;
    auto* ways = new LighterWays(report.lighter, m_content);
    connect(ways, &LighterWays::chosen, this, &PlanPanel::lighterChosen);
    layout->addWidget(ways);
}

} // namespace mr::ui
