#include "widgets/lighter_ways.h"

#include "text/units.h"
#include "widgets/plan_rows.h"

#include <QGridLayout>
#include <QLabel>
#include <QPushButton>
#include <QStringList>
#include <QVBoxLayout>

namespace mr::ui {

LighterWays::LighterWays(const std::vector<LighterWay>& ways, QWidget* parent)
    : QWidget(parent)
{
    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(0, 0, 0, 0);
    PlanRows::addHeading(this, layout, tr("Every weight in less memory"), {});
    layout->addWidget(PlanRows::wrapped(
        tr("Results differ from those of AdamW as it is; no step writes to an SSD."), this));
    auto* grid = new QGridLayout;
    grid->setColumnStretch(0, 1);
    for (const LighterWay& way : ways)
        addWay(grid, way);
    layout->addLayout(grid);
}

void LighterWays::addWay(QGridLayout* grid, const LighterWay& way)
{
    const QString title = way.blocks         ? tr("AdamW, one block after the other")
                          : way.compactState ? tr("AdamW, its state compact")
                          : way.weights == WeightFormat::Random16
                              ? tr("Light optimizer, weights of 16 bits")
                              : tr("Light optimizer, weights of 24 bits");
    QStringList lines{
        title, tr("%1 of host memory").arg(memoryText(static_cast<double>(way.hostBytes)))};
    if (way.tokensPerSecond > 0.0)
        lines << tr("%1 tokens/s").arg(countText(qRound64(way.tokensPerSecond)));
    auto* button = new QPushButton(tr("Use this"), this);
    button->setAccessibleName(tr("Use this: %1").arg(title));
    button->setToolTip(tr("Policy %1").arg(QString::fromStdString(way.policy)));
    connect(button, &QPushButton::clicked, this, [this, way] { emit chosen(way); });
    const int row = grid->rowCount();
    grid->addWidget(PlanRows::wrapped(lines.join(QLatin1Char('\n')), this), row, 0);
    grid->addWidget(button, row, 1, Qt::AlignVCenter);
}

} // namespace mr::ui
