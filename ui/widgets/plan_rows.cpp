#include "widgets/plan_rows.h"

#include <QGridLayout>
#include <QHBoxLayout>
#include <QLabel>
#include <QPainter>
#include <QPixmap>
#include <QVBoxLayout>

namespace mr::ui {

namespace {

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

} // namespace

void PlanRows::addHeading(
    QWidget* owner, QVBoxLayout* layout, const QString& left, const QString& right)
{
    layout->addSpacing(8);
    auto* row = new QHBoxLayout;
    auto* name = new QLabel(left, owner);
    QFont bold = name->font();
    bold.setBold(true);
    name->setFont(bold);
    row->addWidget(name);
    row->addStretch(1);
    row->addWidget(new QLabel(right, owner));
    layout->addLayout(row);
}

QGridLayout* PlanRows::makeGrid()
{
    auto* grid = new QGridLayout;
    grid->setHorizontalSpacing(8);
    grid->setVerticalSpacing(3);
    grid->setColumnStretch(1, 1);
    return grid;
}

void PlanRows::addRow(QWidget* owner, QGridLayout* grid, const BarPiece& piece,
    const QString& value, const QString& toolTip)
{
    const int row = grid->rowCount();
    auto* mark = new QLabel(owner);
    mark->setPixmap(swatch(piece.color, owner->devicePixelRatioF()));
    auto* number = new QLabel(value, owner);
    number->setToolTip(toolTip);
    grid->addWidget(mark, row, 0, Qt::AlignVCenter);
    grid->addWidget(new QLabel(piece.name, owner), row, 1);
    grid->addWidget(number, row, 2, Qt::AlignRight | Qt::AlignVCenter);
}

QLabel* PlanRows::wrapped(const QString& text, QWidget* owner)
{
    auto* label = new QLabel(text, owner);
    label->setWordWrap(true);
    label->setTextFormat(Qt::PlainText);
    return label;
}

} // namespace mr::ui
