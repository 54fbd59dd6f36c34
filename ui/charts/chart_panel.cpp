#include "charts/chart_panel.h"

#include "charts/legend.h"
#include "text/theme_colors.h"
#include "widgets/card.h"

#include <QApplication>
#include <QContextMenuEvent>
#include <QEvent>
#include <QHBoxLayout>
#include <QLabel>
#include <QPixmap>
#include <QToolButton>
#include <QVBoxLayout>

#include <vector>

namespace mr::ui {

ChartPanel::ChartPanel(const QString& title, QWidget* content, QWidget* parent)
    : QFrame(parent)
    , m_title(new QLabel(title))
    , m_readout(new QLabel)
    , m_tools(new QHBoxLayout)
    , m_menu(new QToolButton)
    , m_legend(new Legend)
{
    QFont bold = m_title->font();
    bold.setBold(true);
    m_title->setFont(bold);
    m_title->setBuddy(content);
    m_readout->setAlignment(Qt::AlignRight | Qt::AlignVCenter);
    // The readout gives way before anything else does.
    m_readout->setSizePolicy(QSizePolicy::Ignored, QSizePolicy::Preferred);
    m_menu->setText(QStringLiteral("⋯"));
    m_menu->setAutoRaise(true);
    m_menu->setMinimumSize(kTargetSize, kTargetSize);
    m_menu->setAccessibleName(tr("Actions for the chart: %1").arg(title));
    m_menu->setToolTip(tr("Show as a table, copy or save this chart"));
    m_menu->hide();
    connect(m_menu, &QToolButton::clicked, this,
        [this] { openMenu(m_menu->mapToGlobal(QPoint(0, m_menu->height()))); });

    auto* top = new QHBoxLayout;
    top->setSpacing(8);
    top->addWidget(m_title);
    top->addWidget(m_readout, 1);
    top->addWidget(m_menu);
    m_tools->setSpacing(8);
    auto* second = new QHBoxLayout;
    second->addWidget(m_legend, 1);
    second->addLayout(m_tools);

    auto* layout = new QVBoxLayout(this);
    layout->setContentsMargins(12, 8, 12, 10);
    layout->setSpacing(4);
    layout->addLayout(top);
    layout->addLayout(second);
    layout->addWidget(content, 1);
    applyPalette();
}

void ChartPanel::addTool(QWidget* tool)
{
    m_tools->addWidget(tool);
}

void ChartPanel::setReadout(const QString& text)
{
    m_readoutText = text;
    showReadout();
}

void ChartPanel::showReadout()
{
    const QString shown =
        m_readout->fontMetrics().elidedText(m_readoutText, Qt::ElideRight, m_readout->width());
    if (m_readout->text() != shown)
        m_readout->setText(shown);
    m_readout->setToolTip(shown == m_readoutText ? QString() : m_readoutText);
}

void ChartPanel::resizeEvent(QResizeEvent* event)
{
    QFrame::resizeEvent(event);
    layout()->activate(); // the label has its new width only then
    showReadout();
}

void ChartPanel::setExport(ChartExport chart)
{
    m_export = std::move(chart);
    m_export.title = m_title->text();
    if (!m_export.picture)
        m_export.picture = [this] { return picture(); };
    m_menu->show();
}

// Without what is to be clicked, and sharp in print.
QPixmap ChartPanel::picture()
{
    constexpr double kPictureScale = 2.0;
    std::vector<QWidget*> hidden{m_menu};
    for (int i = 0; i < m_tools->count(); ++i)
        if (QWidget* tool = m_tools->itemAt(i)->widget(); tool != nullptr && !tool->isHidden())
            hidden.push_back(tool);
    QWidget* focused = QApplication::focusWidget(); // hidden, it would lose the focus
    const bool isInside = isAncestorOf(focused);
    const QString readout = m_readout->text();
    m_readout->clear(); // it may be cut
    for (QWidget* widget : hidden)
        widget->hide();
    QPixmap picture(size() * kPictureScale);
    picture.setDevicePixelRatio(kPictureScale);
    picture.fill(Qt::transparent);
    render(&picture);
    for (QWidget* widget : hidden)
        widget->show();
    if (isInside)
        focused->setFocus();
    m_readout->setText(readout);
    return picture;
}

void ChartPanel::openMenu(const QPoint& globalPos)
{
    if (m_export.csv)
        showChartMenu(this, globalPos, m_export);
}

void ChartPanel::contextMenuEvent(QContextMenuEvent* event)
{
    openMenu(event->globalPos());
}

void ChartPanel::changeEvent(QEvent* event)
{
    QFrame::changeEvent(event);
    if (event->type() == QEvent::PaletteChange)
        applyPalette();
}

void ChartPanel::applyPalette()
{
    QPalette muted = palette();
    muted.setColor(QPalette::WindowText, themeColors(palette()).muted);
    m_readout->setPalette(muted);
}

void ChartPanel::paintEvent(QPaintEvent*)
{
    paintCard(*this, themeColors(palette()).border);
}

} // namespace mr::ui
