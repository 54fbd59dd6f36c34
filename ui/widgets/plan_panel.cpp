#include "widgets/plan_panel.h"

#include "charts/cause_colors.h"
#include "models/stall_words.h"
#include "models/units.h"
#include "theme.h"
#include "widgets/card.h"
#include "widgets/format.h"
#include "widgets/message_label.h"
#include "widgets/plan_words.h"

#include <QEvent>
#include <QGridLayout>
#include <QLabel>
#include <QLocale>
#include <QPainter>
#include <QVBoxLayout>

#include <algorithm>
#include <numeric>

namespace mr::ui {

namespace {

constexpr std::size_t kNamedKinds = 7; // the largest ones get a line, the rest share one
constexpr int kSwatch = 10;

QPixmap swatch(const QColor& color, qreal ratio)
{
    QPixmap picture(QSize(kSwatch, kSwatch) * ratio);
    picture.setDevicePixelRatio(ratio);
    picture.fill(Qt::transparent);
    QPainter painter(&picture);
    painter.setRenderHint(QPainter::Antialiasing);
    painter.setPen(Qt::NoPen);
    painter.setBrush(color);
    painter.drawRoundedRect(QRectF(0, 0, kSwatch, kSwatch), 2.0, 2.0);
    return picture;
}

QLabel* wrapped(const QString& text, QWidget* parent)
{
    auto* label = new QLabel(text, parent);
    label->setWordWrap(true);
    label->setTextFormat(Qt::PlainText);
    return label;
}

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

void PlanPanel::setPlan(PlanView view)
{
    m_view = std::move(view);
    rebuild();
}

void PlanPanel::setProblem(const QString& sentence)
{
    m_view.reset();
    clearContent();
    m_headline->show(MessageLabel::Kind::Error, sentence);
}

void PlanPanel::setWaiting(const QString& sentence)
{
    m_view.reset();
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
    for (const PlanTier& tier : m_view->report.tiers) {
        if (tier.totalBytes > 0)
            addTier(content, tier);
    }
    addForecast(content);
    addTraffic(content);
    addCheckpoints(content);
    addAdvice(content);
    content->addStretch(1);
    auto* outer = static_cast<QVBoxLayout*>(layout());
    outer->insertWidget(1, m_content);
    m_content->show(); // now, not with the next turn of the event loop
}

void PlanPanel::addVerdict(QVBoxLayout* layout)
{
    const PlanReport& report = m_view->report;
    if (!report.fits)
        m_headline->show(MessageLabel::Kind::Error,
            tr("Does not fit. %1").arg(QString::fromStdString(report.limit)));
    else if (!m_view->diskFits())
        m_headline->show(
            MessageLabel::Kind::Error, tr("Fits in memory, but not on the disk: see Checkpoints."));
    else
        m_headline->show(MessageLabel::Kind::Good, tr("Fits."));

    QStringList facts;
    facts << tr("Device: %1").arg(QString::fromStdString(report.device));
    if (report.simulatedLink)
        facts << tr("Simulated link: its speed is set, not measured");
    facts << (report.exact
                  ? tr("Policy: %1, exact").arg(QString::fromStdString(report.policy))
                  : tr("Policy: %1, at most %n step(s) stale", nullptr, report.maxStaleSteps)
                        .arg(QString::fromStdString(report.policy)));
    if (!report.reason.empty())
        facts << tr("Chosen: %1").arg(QString::fromStdString(report.reason));
    facts << tr("Precision: %1, recompute: %2")
                 .arg(QString::fromStdString(report.precision),
                     QString::fromStdString(report.recompute));
    auto* label = makeMutedLabel(m_content);
    label->setText(facts.join(QLatin1Char('\n')));
    layout->addWidget(label);
}

void PlanPanel::addHeading(QVBoxLayout* layout, const QString& left, const QString& right)
{
    layout->addSpacing(8);
    auto* row = new QHBoxLayout;
    auto* name = new QLabel(left, m_content);
    QFont bold = name->font();
    bold.setBold(true);
    name->setFont(bold);
    row->addWidget(name);
    row->addStretch(1);
    row->addWidget(new QLabel(right, m_content));
    layout->addLayout(row);
}

void PlanPanel::addLegendRow(
    QGridLayout* grid, const BarPiece& piece, const QString& value, const QString& toolTip)
{
    const int row = grid->rowCount();
    auto* mark = new QLabel(m_content);
    mark->setPixmap(swatch(piece.color, devicePixelRatioF()));
    auto* number = new QLabel(value, m_content);
    number->setToolTip(toolTip);
    grid->addWidget(mark, row, 0, Qt::AlignVCenter);
    grid->addWidget(new QLabel(piece.name, m_content), row, 1);
    grid->addWidget(number, row, 2, Qt::AlignRight | Qt::AlignVCenter);
}

void PlanPanel::addTier(QVBoxLayout* layout, const PlanTier& tier)
{
    const ThemeColors& colors = themeColors(palette());
    const QVector<BarPiece> pieces = tierPieces(tier, colors, tr("Everything else"));
    const QString used = memoryText(static_cast<double>(tier.totalBytes));
    const QString name = PlanWords::tier(tier.tier);
    addHeading(layout, name,
        tier.budgetBytes > 0
            ? tr("%1 of %2").arg(used, memoryText(static_cast<double>(tier.budgetBytes)))
            : used);
    auto* bar = new StackedBar(m_content);
    bar->setData(pieces, tier.budgetBytes);
    bar->setAccessibleName(name);
    layout->addWidget(bar);
    auto* grid = new QGridLayout;
    grid->setHorizontalSpacing(8);
    grid->setVerticalSpacing(3);
    grid->setColumnStretch(1, 1);
    for (const BarPiece& piece : pieces)
        addLegendRow(grid, piece, memoryText(static_cast<double>(piece.bytes)),
            Format::exactBytes(piece.bytes));
    layout->addLayout(grid);
}

void PlanPanel::addForecast(QVBoxLayout* layout)
{
    const PlanReport& report = m_view->report;
    if (report.predictedStepMs <= 0.0)
        return;
    addHeading(layout, tr("One step (forecast)"), Format::milliseconds(report.predictedStepMs));
    // Microseconds stand in for bytes: the bar only needs proportions.
    const auto weight = [](double ms) { return static_cast<quint64>(std::max(0.0, ms) * 1000.0); };
    QVector<BarPiece> pieces;
    auto* grid = new QGridLayout;
    grid->setHorizontalSpacing(8);
    grid->setVerticalSpacing(3);
    grid->setColumnStretch(1, 1);
    for (std::size_t part = 0; part <= kStallCauses; ++part) {
        const double ms = part == 0 ? report.predictedComputeMs : report.predictedStallMs[part - 1];
        if (ms <= 0.0)
            continue;
        const BarPiece piece{StallWords::name(part), weight(ms), partColor(palette(), part)};
        pieces.push_back(piece);
        addLegendRow(grid, piece, Format::milliseconds(ms), StallWords::explanation(part));
    }
    auto* bar = new StackedBar(m_content);
    bar->setData(pieces, 0);
    bar->setPlainToolTips();
    bar->setAccessibleName(tr("One step (forecast)"));
    layout->addWidget(bar);
    layout->addLayout(grid);

    const double seconds = report.predictedStepMs / 1000.0;
    QStringList lines;
    if (report.tokensPerStep > 0)
        lines << tr("%1 tokens per step, about %2 tokens/s")
                     .arg(countText(report.tokensPerStep),
                         numberText(static_cast<double>(report.tokensPerStep) / seconds, 0));
    if (report.steps > 0)
        lines << tr("%n step(s), about %1", nullptr, static_cast<int>(report.steps))
                     .arg(durationText(static_cast<double>(report.steps) * seconds));
    layout->addWidget(wrapped(lines.join(QLatin1Char('\n')), m_content));
}

void PlanPanel::addTraffic(QVBoxLayout* layout)
{
    const PlanReport& report = m_view->report;
    addHeading(layout, tr("Copies in each step"), {});
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
    layout->addLayout(grid);
}

void PlanPanel::addCheckpoints(QVBoxLayout* layout)
{
    const PlanReport& report = m_view->report;
    addHeading(
        layout, tr("Checkpoints"), memoryText(static_cast<double>(m_view->checkpointsBytes())));
    const QString one = memoryText(static_cast<double>(report.checkpointBytes));
    const QString free = memoryText(static_cast<double>(m_view->diskFreeBytes));
    const QString text = tr("%n kept and one being written, %1 each; %2 free on the disk.", nullptr,
        static_cast<int>(m_view->keepCheckpoints))
                             .arg(one, free);
    if (m_view->diskFits()) {
        layout->addWidget(wrapped(text, m_content));
        return;
    }
    auto* warning = new MessageLabel(m_content);
    warning->show(MessageLabel::Kind::Error,
        text + QLatin1Char(' ') + tr("Keep fewer, or choose a run folder on another disk."));
    layout->addWidget(warning);
}

void PlanPanel::addAdvice(QVBoxLayout* layout)
{
    const PlanReport& report = m_view->report;
    if (report.advice.empty())
        return;
    addHeading(layout, tr("What would help"), {});
    for (const std::string& sentence : report.advice)
        layout->addWidget(
            wrapped(QStringLiteral("• ") + QString::fromStdString(sentence), m_content));
}

} // namespace mr::ui
