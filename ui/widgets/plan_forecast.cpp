#include "widgets/plan_forecast.h"

#include "text/cause_colors.h"
#include "text/format.h"
#include "text/stall_words.h"
#include "text/units.h"
#include "widgets/plan_rows.h"

#include <QGridLayout>
#include <QLabel>
#include <QStringList>
#include <QVBoxLayout>

#include <algorithm>

namespace mr::ui {

namespace {

// Microseconds stand in for bytes: the bar only needs proportions.
quint64 weight(double ms)
{
    return static_cast<quint64>(std::max(0.0, ms) * 1000.0);
}

} // namespace

PlanForecast::PlanForecast(const PlanReport& plan, double wholeMs, QWidget* parent)
    : QWidget(parent)
{
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    layout->setSpacing(6);
    QVector<BarPiece> pieces;
    QGridLayout* grid = PlanRows::makeGrid();
    for (std::size_t part = 0; part <= kStallCauses; ++part) {
        const double ms = part == 0 ? plan.predictedComputeMs : plan.predictedStallMs[part - 1];
        if (ms <= 0.0)
            continue;
        const BarPiece piece{StallWords::name(part), weight(ms), partColor(palette(), part)};
        pieces.push_back(piece);
        PlanRows::addRow(
            this, grid, piece, Format::milliseconds(ms), StallWords::explanation(part));
    }
    auto* bar = new StackedBar(this);
    bar->setData(pieces, weight(wholeMs));
    bar->setPlainToolTips();
    bar->setAccessibleName(tr("One step (forecast)"));
    layout->addWidget(bar);
    layout->addLayout(grid);

    const double seconds = plan.predictedStepMs / 1000.0;
    QStringList lines;
    if (plan.tokensPerStep > 0)
        lines << tr("%1 tokens per step, about %2 tokens/s")
                     .arg(countText(plan.tokensPerStep),
                         numberText(static_cast<double>(plan.tokensPerStep) / seconds, 0));
    if (plan.steps > 0)
        lines << tr("%n step(s), about %1", nullptr, static_cast<int>(plan.steps))
                     .arg(durationText(static_cast<double>(plan.steps) * seconds));
    layout->addWidget(PlanRows::wrapped(lines.join(QLatin1Char('\n')), this));
}

} // namespace mr::ui
